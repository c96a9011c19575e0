import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Ingester, Querier as QuerierContract } from "@skald/contracts";
import {
  type Endpoint,
  Frontend,
  type QueryEndpoint,
  queryEndpoints,
  queryRequest,
  queryRoutes,
} from "@skald/frontend";
import { dayNs, type SegmentRef, steadyClock, systemClock } from "@skald/model";
import { CorruptSegments, Querier } from "@skald/querier";
import { WorkerPool } from "@skald/runtime";
import { defaultLimits } from "@skald/runtime/config";
import { ScanPool } from "@skald/scan";
import { makeDirectory, makeHead, row } from "@skald/scan/testing";
import { openHeadBlock, openSegmentFile, readTexts, sealSegment } from "@skald/storage";
import { type HttpRequest, type HttpResponse, HttpServer } from "@skald/transport";
import { counterPlaces, type ShareJob } from "./testing/counting-worker.js";
import { waitFor } from "./testing/server.js";

const threads = 2;
const segmentCount = 4;
const linesPerSegment = 3000;
/** No line matches these expressions, but every byte must be looked at: together they cost about a second. */
const filters = ["g-p", "h-q", "i-r", "j-s", "k-t"].map(
  (last) => `!~ \`(x|y|xy|yx)+[0-9a-f]{3}(z|zz)?[${last}]$\``,
);
const heavy = `sum(count_over_time({app="a"} ${filters.join(" ")} [1d]))`;

const directory = makeDirectory();
const counters = new Int32Array(new SharedArrayBuffer(8));
const pool = new WorkerPool({
  url: new URL("./testing/counting-worker.js", import.meta.url),
  size: threads,
  maxQueued: 1000,
});
const checks = () => Atomics.load(counters, counterPlaces.checks);
let timeoutMs = 0;
/** The number of checks when the signal of the last query fired. */
let checksAtAbort = 0;
let aborted = false;
let blocks = 0;
let endNs = 0n;
let url = "";
let server: HttpServer;

beforeAll(async () => {
  const share: ShareJob = { counters, threads };
  const lane = { lane: "query" } as const;
  await Promise.all(Array.from({ length: threads }, () => pool.run("share", share, lane)));
  const refs = Array.from({ length: segmentCount }, (_, i) => sealLines(i));
  endNs = (refs.at(-1) as SegmentRef).maxNs;
  const querier = watched(querierOf(refs));
  const frontend = new Frontend({ clock: systemClock });
  const endpoints = queryEndpoints(frontend, { parquetAnswers: false });
  const tenancy = { authEnabled: false, noAuthTenant: "t", multiTenantQueries: false };
  const serve = async (name: QueryEndpoint, request: HttpRequest): Promise<HttpResponse> => {
    const limitsOf = () => ({ ...defaultLimits, query_timeout: timeoutMs });
    const plain = queryRequest(name, request, { ...tenancy, limitsOf });
    const asked = { ...plain, params: request.params };
    const endpoint: Endpoint<unknown> = endpoints[name];
    const context = { ...plain, querier, signal: request.signal };
    return (await endpoint.answer(endpoint.plan(asked, plain), asked, context)) as HttpResponse;
  };
  server = new HttpServer({
    address: "127.0.0.1",
    port: 0,
    readTimeoutMs: 60_000,
    readHeaderTimeoutMs: 0,
    writeTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    gracefulShutdownMs: 0,
    maxConnections: 0,
    maxBodyBytes: 10_000,
    compressResponses: false,
    pathPrefix: "",
    rawRoutes: new Map(),
    routes: queryRoutes(serve),
  });
  url = `http://127.0.0.1:${await server.start()}`;
});

afterAll(async () => {
  await server.stop();
  await pool.close();
  directory.remove();
});

/** Seals about 12 MB of lines that the expressions almost match. */
function sealLines(number: number): SegmentRef {
  const filler = "xyxyyxabc".repeat(450);
  const start = number * linesPerSegment;
  const rows = Array.from({ length: linesPerSegment }, (_, i) =>
    row("a", start + i, `${i} ${filler}`),
  );
  const head = makeHead(rows, { id: `head${number}`, rowsPerBlock: 250 });
  const id = `s${number}`;
  const path = `${directory.path}/${id}.parquet`;
  const heads = [{ blocks: head.blocks.map(openHeadBlock), streamTexts: readTexts(head.texts) }];
  const { minNs, maxNs, sizeBytes } = sealSegment({ tenant: "t", id, path, heads });
  const location = { kind: "file", path } as const;
  const opened = openSegmentFile({ id, tenant: "t", location });
  blocks += opened.segment.blockCount;
  opened.close();
  return { kind: "segment", id, tenant: "t", minNs, maxNs, sizeBytes, location };
}

function querierOf(refs: readonly SegmentRef[]): Querier {
  const ingester = { select: async () => ({ sources: [] }) } as Partial<Ingester> as Ingester;
  const catalog = { list: async () => refs };
  const corrupt = new CorruptSegments({ clock: steadyClock, onFound: () => undefined });
  return new Querier({ ingester, catalog, scanner: new ScanPool(pool), threads, corrupt });
}

/** Notes the number of checks at the time when a query is cancelled. */
function watched(querier: Querier): QuerierContract {
  return {
    run: (kind, request, options) => {
      if (kind === "query") {
        aborted = false;
        options.signal.addEventListener("abort", () => {
          checksAtAbort = checks();
          aborted = true;
        });
      }
      return querier.run(kind, request, options);
    },
  };
}

const ask = (signal?: AbortSignal) => {
  const params = new URLSearchParams({ query: heavy, time: String(endNs) });
  return fetch(`${url}/loki/api/v1/query?${params}`, signal === undefined ? {} : { signal });
};

/** Resolves when every thread has run one more job, and so has ended what it was doing before. */
async function poolIsIdle(): Promise<void> {
  Atomics.store(counters, counterPlaces.threads, 0);
  const share: ShareJob = { counters, threads };
  const lane = { lane: "query" } as const;
  await Promise.all(Array.from({ length: threads }, () => pool.run("share", share, lane)));
}

/** When the signal fires, a thread may have checked the flag but not counted the check, and may be inside a block. */
const checksAfterAbort = 2 * threads;

describe("a heavy query over 50 MB of sealed data", () => {
  it("has enough blocks to be stopped among", () => {
    expect(endNs - (endNs % dayNs)).toBeGreaterThan(0n);
    expect(blocks).toBeGreaterThan(150);
  });

  it("stops within a block of each thread when its client leaves", async () => {
    const before = checks();
    const client = new AbortController();
    const answer = ask(client.signal);
    await waitFor(() => checks() > before + 5);
    client.abort();
    await expect(answer).rejects.toThrow("aborted");
    await waitFor(() => aborted);
    await poolIsIdle();
    expect(checks() - checksAtAbort).toBeLessThanOrEqual(checksAfterAbort);
    expect(checks() - before).toBeLessThan(blocks);
    const after = checks();
    await poolIsIdle();
    expect(checks()).toBe(after);
  });

  it("stops within a block of each thread at the query timeout, and answers 504", async () => {
    const before = checks();
    timeoutMs = 60;
    const answer = await ask();
    timeoutMs = 0;
    expect(answer.status).toBe(504);
    expect(await answer.text()).toMatch(/^request timed out, decrease the duration of the request/);
    await poolIsIdle();
    expect(checks() - checksAtAbort).toBeLessThanOrEqual(checksAfterAbort);
    expect(checks() - before).toBeLessThan(blocks);
  });
});
