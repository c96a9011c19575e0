import type { SelectRequest } from "@skald/contracts";
import type { HeadView } from "@skald/storage";
import type { Head } from "../head/head.js";
import type { Tenant } from "./tenant.js";

/**
 * The unsealed heads that hold rows of the streams in the range at this moment, with their matching streams. Taken in
 * one go with the local segments, so a head that is being sealed is there either as head or as segment, under one id.
 */
export function selectHeads(request: SelectRequest, tenant: Tenant): HeadView[] {
  const found: HeadView[] = [];
  let matched: Uint32Array | undefined;
  for (const head of tenant.unsealed()) {
    const blocks = head.view(timeIn(head, request.fromNs), timeIn(head, request.toNs));
    if (blocks.length === 0) continue;
    matched ??= tenant.matchStreams(request.matchers);
    const streams = matched.filter((stream) => head.chains.has(stream));
    if (streams.length === 0) continue;
    head.viewed = true;
    found.push(viewOf(head, { blocks, streams, tenant }));
  }
  return found;
}

function viewOf(
  head: Head,
  { blocks, streams, tenant }: Pick<HeadView, "blocks" | "streams"> & { tenant: Tenant },
): HeadView {
  const { minTime, maxTime } = head.bounds();
  return {
    kind: "head",
    id: head.id,
    tenant: head.tenant,
    minNs: head.baseNs + BigInt(minTime),
    maxNs: head.baseNs + BigInt(maxTime),
    streams,
    texts: Array.from(streams, (stream) => tenant.streams.text(stream)),
    blocks,
  };
}

/** A time as ns since the start of the head's day; far away it is only roughly right, which is enough to compare. */
function timeIn(head: Head, ns: bigint): number {
  return Number(ns - head.baseNs);
}
