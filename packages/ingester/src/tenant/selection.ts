import type { HeadRef, SelectRequest, SourceRef } from "@skald/model";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Head } from "../head/head.js";
import type { Tenant } from "./tenant.js";

/**
 * What holds rows of the streams in the range at this moment: unsealed heads with their matching streams, and local
 * segments. Taken in one go, so a head that is being sealed is there either as head or as segment, under one id.
 */
export function selectSources(
  request: SelectRequest,
  tenant: Tenant | undefined,
  segments: LocalSegments,
): SourceRef[] {
  const sources: SourceRef[] = segments.select(request.tenant, request.fromNs, request.toNs);
  if (tenant === undefined) return sources;
  let matched: number[] | undefined;
  for (const head of tenant.unsealed()) {
    const blocks = head.view(timeIn(head, request.fromNs), timeIn(head, request.toNs));
    if (blocks.length === 0) continue;
    matched ??= tenant.matchStreams(request.matchers);
    const streams = Uint32Array.from(matched.filter((stream) => head.chains.has(stream)));
    if (streams.length === 0) continue;
    head.viewed = true;
    sources.push(refOf(head, { blocks, streams, tenant }));
  }
  return sources;
}

function refOf(
  head: Head,
  { blocks, streams, tenant }: Pick<HeadRef, "blocks" | "streams"> & { tenant: Tenant },
): HeadRef {
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
