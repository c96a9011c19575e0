import type { PushRefusal } from "@skald/contracts";
import { type Batch, type BatchStream, dayNs, formatRfc3339, formatSize } from "@skald/model";
import { type BehindRow, timeOf } from "./admission.js";

/** Lines of one refusal text, however many entries it stands for. */
const maxEntriesNamed = 10;

/** Rows of a stream that are further behind its newest row than the window allows. */
export function tooFarBehind(
  tenant: string,
  batch: Batch,
  stream: BatchStream,
  behind: readonly BehindRow[],
): PushRefusal {
  const reasons = behind.slice(0, maxEntriesNamed).map(({ row, oldestDay, oldestTime }) => {
    const time = formatSeconds(nsOf(batch, row));
    const oldest = formatSeconds(BigInt(oldestDay) * dayNs + BigInt(Math.floor(oldestTime)));
    return `entry too far behind, entry timestamp is: ${time}, oldest acceptable timestamp is: ${oldest}`;
  });
  return {
    status: 400,
    reason: "too_far_behind",
    message: wrap(tenant, batch, stream, { rows: behind.map(({ row }) => row), reasons }),
    entries: behind.length,
    bytes: behind.reduce((sum, { row }) => sum + rowBytes(batch, row), 0),
  };
}

/** All rows of a stream, which together are more than its rate limit has left. */
export function streamRateLimited(
  tenant: string,
  batch: Batch,
  stream: BatchStream,
  { bytes, limitBytes }: { bytes: number; limitBytes: number },
): PushRefusal {
  const reason = `Per stream rate limit exceeded (limit: ${formatSize(limitBytes)}/sec) while attempting to ingest for stream '${stream.text}' totaling ${formatSize(bytes)}, consider splitting a stream via additional labels or contact your Loki administrator to see if the limit can be increased`;
  const entries = stream.rowEnd - stream.rowStart;
  const rows = Array.from(
    { length: Math.min(entries, maxEntriesNamed) },
    (_, i) => stream.rowStart + i,
  );
  return {
    status: 429,
    reason: "per_stream_rate_limit",
    message: wrap(tenant, batch, stream, { rows, reasons: rows.map(() => reason), total: entries }),
    entries,
    bytes,
  };
}

/** All rows of a stream that would be one too many for the tenant. */
export function streamLimited(tenant: string, stream: BatchStream, bytes: number): PushRefusal {
  return {
    status: 429,
    reason: "stream_limit",
    message: `maximum active stream limit exceeded when trying to create stream ${stream.text}, reduce the number of active streams (reduce labels or reduce label values), or contact your Loki administrator to see if the limit can be increased, user: '${tenant}'`,
    entries: stream.rowEnd - stream.rowStart,
    bytes,
  };
}

/** Size of a row for limits: line, metadata names and values. */
export function rowBytes(batch: Batch, row: number): number {
  let bytes = batch.lineLength[row]!;
  for (let pair = batch.metaStart[row]!; pair < batch.metaStart[row + 1]!; pair++) {
    const name = batch.metaNames[batch.metaName[pair]!] as string;
    bytes += name.length + batch.metaValueLength[pair]!;
  }
  return bytes;
}

interface Ignored {
  readonly rows: readonly number[];
  /** Of the first rows, aligned with them. */
  readonly reasons: readonly string[];
  /** Rows ignored, when more than are given. */
  readonly total?: number;
}

function wrap(tenant: string, batch: Batch, stream: BatchStream, ignored: Ignored): string {
  let text = "";
  for (const [i, reason] of ignored.reasons.entries()) {
    const time = formatGoTime(nsOf(batch, ignored.rows[i] as number));
    text += `entry with timestamp ${time} ignored, reason: '${reason}',\n`;
  }
  const total = ignored.total ?? ignored.rows.length;
  const of = stream.rowEnd - stream.rowStart;
  return `${text}user '${tenant}', total ignored: ${total} out of ${of} for stream: ${stream.text}`;
}

function nsOf(batch: Batch, row: number): bigint {
  const { day, time } = timeOf(batch, row);
  return BigInt(day) * dayNs + BigInt(time);
}

/** `2026-11-20 21:11:23.506 +0000 UTC` */
function formatGoTime(ns: bigint): string {
  return formatRfc3339(ns).replace("T", " ").replace("Z", " +0000 UTC");
}

/** `2026-11-20T21:11:23Z`: the fraction cut off. */
function formatSeconds(ns: bigint): string {
  return formatRfc3339(ns).replace(/\.\d+Z$/, "Z");
}
