import type { SelectRequest } from "@skald/contracts";
import { type HeadView, shareTexts } from "@skald/storage";
import type { Head } from "../head/head.js";
import type { Tenant } from "../tenant/tenant.js";

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
    const { matchers } = request;
    found.push(viewOf(head, { blocks, streams, matchers, tenant }));
  }
  return found;
}

function viewOf(
  head: Head,
  {
    blocks,
    streams,
    matchers,
    tenant,
  }: Pick<HeadView, "blocks" | "streams" | "matchers"> & {
    tenant: Tenant;
  },
): HeadView {
  const { minTime, maxTime } = head.bounds();
  return {
    kind: "head",
    id: head.id,
    tenant: head.tenant,
    minNs: head.baseNs + BigInt(minTime),
    maxNs: head.baseNs + BigInt(maxTime),
    streams: shared(streams),
    texts: shareTexts(Array.from(streams, (stream) => tenant.streams.text(stream))),
    matchers,
    blocks,
  };
}

/** A time as ns since the start of the head's day; far away it is only roughly right, which is enough to compare. */
function timeIn(head: Head, ns: bigint): number {
  return Number(ns - head.baseNs);
}

/** The same in memory that crosses to a thread without a copy. */
function shared(numbers: Uint32Array): Uint32Array {
  const copy = new Uint32Array(new SharedArrayBuffer(numbers.byteLength));
  copy.set(numbers);
  return copy;
}
