// A store with the rows of the benchmark kit, merged: what a settled day is made of.
import { closeSync, openSync, readSync } from "node:fs";
import { parseSegmentKey } from "../../packages/storage/dist/index.js";
import { readMetric } from "../../packages/test/dist/testing/client.js";
import { waitFor } from "../../packages/test/dist/testing/server.js";

/** Flags of a server whose limits are out of the way, and whose compactor looks at the store each second. */
export const fillFlags = [
  "-server.worker-threads=2",
  "-validation.reject-old-samples=false",
  "-distributor.ingestion-rate-limit-mb=10000",
  "-distributor.ingestion-burst-size-mb=10000",
  "-ingester.per-stream-rate-limit=10GB",
  "-ingester.per-stream-rate-limit-burst=10GB",
  "-ingester.max-global-streams-per-user=0",
  "-querier.max-query-series=100000",
  "-validation.max-entries-limit=100000",
  "-compactor.compaction-interval=1s",
  "-compactor.retention-delete-delay=1s",
];

const connections = 4;
const containerHeaderBytes = 8;
const bodyHeaderBytes = 12;
const mergeTimeoutMs = 1_800_000;
const compactorRuns = "loki_boltdb_shipper_compact_tables_operation_total";
/** Runs without a change after which there is nothing left to do: what was merged goes with the next but one. */
const quietRuns = 5;

/** Posts bodies of a file of the kit until they hold so many MB of lines; answers how many lines there were. */
export async function pushBodies(url, path, mb, tenant = "fake") {
  const file = openSync(path, "r");
  const header = Buffer.alloc(bodyHeaderBytes);
  let at = containerHeaderBytes;
  let rawBytes = 0;
  let lines = 0;
  const next = () => {
    if (rawBytes >= mb * 1e6 || readSync(file, header, 0, bodyHeaderBytes, at) < bodyHeaderBytes)
      return undefined;
    const body = Buffer.alloc(header.readUInt32LE(0));
    readSync(file, body, 0, body.length, at + bodyHeaderBytes);
    at += bodyHeaderBytes + body.length;
    rawBytes += header.readUInt32LE(4);
    lines += header.readUInt32LE(8);
    return body;
  };
  const headers = { "content-type": "application/x-protobuf", "x-scope-orgid": tenant };
  const pushAll = async () => {
    for (let body = next(); body !== undefined; body = next()) {
      const answer = await fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
      if (answer.status !== 204) throw new Error(`${answer.status}: ${await answer.text()}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, pushAll));
  closeSync(file);
  return { rawBytes, lines };
}

/** Uploads everything and waits until the compactor finds nothing to do any more; answers the keys of the segments. */
export async function settle(url, listKeys) {
  const flushed = await fetch(`${url}/flush`, { method: "POST" });
  if (flushed.status !== 204) throw new Error(`flush: ${flushed.status} ${await flushed.text()}`);
  const isSegment = (key) => parseSegmentKey(key) !== undefined;
  const segments = async () => (await listKeys()).filter(isSegment);
  const runs = () => readMetric(url, compactorRuns, { status: "success" });
  let before = "";
  let since = await runs();
  await waitFor(async () => {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const now = (await segments()).join();
    if (now !== before) since = await runs();
    before = now;
    return (await runs()) - since >= quietRuns;
  }, mergeTimeoutMs);
  return segments();
}
