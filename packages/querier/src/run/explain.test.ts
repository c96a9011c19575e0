import { afterAll, expect, it } from "@jest/globals";
import type { QueryAnswer, ScanPlan } from "@skald/contracts";
import type { LogPlan } from "@skald/logql";
import { type ReadStats, SkaldError } from "@skald/model";
import { makeDirectory, makeHead } from "@skald/scan/testing";
import { collectGarbage } from "@skald/testkit";
import { LocalScanner } from "../testing/local-scanner.js";
import { querierOf } from "../testing/querier.js";
import { never, request, sampleSegments, tenRows } from "../testing/requests.js";
import { explainScan } from "./explain.js";
import type { QueryRun } from "./query-run.js";

const directory = makeDirectory();
const segments = sampleSegments(directory.path);
const scans = new LocalScanner();
afterAll(() => {
  scans.close();
  directory.remove();
});

const bytesOf = ({ headBytes, decompressedBytes }: ReadStats) => headBytes + decompressedBytes;
const readBy = ({ stats }: QueryAnswer) => bytesOf(stats.ingester) + bytesOf(stats.store);
const maxMs = 60_000;

it.each([
  ["{app=`a`}", 1],
  ["{app=`a`} |= `a5`", 1],
  ["{app=`a`} |= `no such text`", 1],
  ["sum(count_over_time({app=`a`}[2s]))", 1],
  ["sum(count_over_time({app=`a`} |= `a` [2s]))", 1],
  ["sum(rate({app=`a`} |= `a` [1s])) / sum(count_over_time({app=`a`} |= `1` [1s]))", 2],
])("says for %s what is read", async (query, scanned) => {
  const head = makeHead(tenRows("a", 60), { id: "head" });
  const querier = querierOf(scans, { ingester: [head], store: segments });
  const asked = request(query, {}, { limit: 1000 });
  const explained = await querier.run("explain", { ...asked, maxMs }, never);
  expect(explained).toHaveLength(scanned);
  expect(explained.every(({ isExact }) => isExact)).toBe(true);
  const bytes = explained.reduce((sum, one) => sum + one.bytes, 0);
  expect(bytes).toBe(readBy(await querier.run("query", asked, never)));
  for (const { blocks, blocksToRead, sources } of explained) {
    expect(blocksToRead).toBeLessThanOrEqual(blocks);
    expect(sources).toBe(7);
  }
});

it("reads no more than the blocks of the streams that were asked for", async () => {
  const head = makeHead(tenRows("a", 60), { id: "head" });
  const querier = querierOf(scans, { ingester: [head], store: segments });
  // The range begins and ends within blocks, which are read as a whole.
  const asked = request("{app=`a`} |= `a`", {}, { limit: 1000, from: 5e6, to: 65e6 });
  const { fromNs, toNs, log } = asked.plan as LogPlan;
  const buckets = { firstNs: fromNs, stepNs: toNs - fromNs, count: 1 };
  const groupBy = { kind: "series", names: [] } as const;
  const plan = { fromNs, toNs, matchers: log.matchers, groupBy, buckets, maxGroups: 1 };
  const counted = { ...plan, tenants: asked.tenants, countsStreams: false };
  const { blockBytes, bytes } = await querier.run("volumes", counted, never);
  const read = readBy(await querier.run("query", asked, never));
  expect(blockBytes).toBe(read);
  expect(bytes[0]).toBeLessThan(read);
});

it("says that it may be any number when time was too short", async () => {
  const within = new AbortController();
  const run = {
    ...{ threads: 1, lanes: 1 },
    measure: (_task, _plan, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        within.abort();
      }),
  } as Pick<QueryRun, "threads" | "lanes" | "measure"> as QueryRun;
  const [ref] = segments;
  const source = { ref: ref!, side: "store", sequence: 0, older: [] } as const;
  const plan = request("{app=`a`}").plan as ScanPlan;
  const signals = { within: within.signal, signal: new AbortController().signal };
  const found = await explainScan({ plan, sources: [source] }, run, signals);
  expect(found).toMatchObject({ blocks: 0, sources: 1, isExact: false });
  expect(found.bytes).toBe(Number.POSITIVE_INFINITY);
});

it("says that it is not exact when its time is over, whatever was collected as garbage since", async () => {
  const slow = new LocalScanner();
  const nothing = setInterval(() => undefined, 1000);
  slow.run = async (_kind, _task, { signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    // In a turn of its own, as an answer of a thread comes: weak references live as long as theirs.
    await new Promise(setImmediate);
    collectGarbage();
    throw new SkaldError("cancelled", "the request was cancelled by the client");
  };
  const querier = querierOf(slow, { store: segments });
  const asked = { ...request("{app=`a`} |= `a`"), maxMs: 5 };
  const [explained] = await querier.run("explain", asked, never);
  clearInterval(nothing);
  slow.close();
  expect(explained).toMatchObject({ bytes: Number.POSITIVE_INFINITY, isExact: false });
});
