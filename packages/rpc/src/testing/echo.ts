import type {
  CallOptions,
  Catalog,
  Deletes,
  Distributor,
  Ingester,
  PatternIngester,
  PushOutcome,
  PushRequest,
  Querier,
  RuleGroupStatus,
  Rules,
  ScanOptions,
  Tailer,
} from "@skald/contracts";
import { encodeTexts } from "@skald/contracts";
import { querierOf, scannerOf } from "@skald/contracts/testing/fakes";
import { rowsOf } from "@skald/contracts/testing/rows-of";
import { textOf } from "@skald/contracts/testing/text-of";
import { emptyReadStats, SkaldError } from "@skald/model";

/** One service of each kind. */
export interface Services {
  readonly ingester: Ingester;
  readonly catalog: Required<Catalog>;
  readonly distributor: Distributor;
  readonly deletes: Deletes;
  readonly tailer: Tailer;
  readonly patternIngester: PatternIngester;
  readonly rules: Rules;
}

/** What an echo says of a push. */
export function textOfPush({ tenant, batch }: PushRequest): string {
  return textOf({ tenant, rows: rowsOf(batch), source: batch.source });
}

/** Waits for the end of a call when its request has the tenant `wait`, and fails when that is `fail`. */
async function behave(tenant: string, { signal }: CallOptions, seen: string[]): Promise<void> {
  if (tenant === "fail")
    throw new SkaldError("rate_limited", "too much", {
      retryAfterSeconds: 3,
      detail: { limit: 5 },
    });
  if (tenant !== "wait") return;
  seen.push("waits");
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  seen.push("was aborted");
  throw signal.reason;
}

const queryStats = {
  ingester: emptyReadStats(),
  store: { ...emptyReadStats(), downloadNs: 1.5 },
  ingestersReached: 3,
  streams: 4,
  execSeconds: 0.25,
  queueSeconds: 0,
  entriesReturned: 1,
  shards: 2,
};

const ruleGroup: RuleGroupStatus = {
  ...{ namespace: "n", name: "g", intervalMs: 60_000, limit: 0, evaluationSeconds: 0.25 },
  rules: [],
};

/** Services whose answers say what they were asked; `seen` is what happened that no answer tells. */
export function makeEchoes(seen: string[] = []): Services {
  const pushed = async (request: PushRequest, options: CallOptions): Promise<PushOutcome> => {
    await behave(request.tenant, options, seen);
    const message = textOfPush(request);
    const entries = request.batch.rowCount;
    return { refusals: [{ status: 400, reason: "echo", message, entries, bytes: message.length }] };
  };
  return {
    ingester: makeIngester(pushed, seen),
    catalog: {
      list: async (request) => [
        {
          kind: "segment",
          id: textOf(request),
          tenant: request.tenant,
          minNs: request.fromNs,
          maxNs: request.toNs,
          location: { kind: "object", key: "k" },
          sizeBytes: 2 ** 40,
        },
      ],
      count: async (request, { share }) => ({
        segments: [],
        counted: [Uint8Array.from(Buffer.from(textOf({ ...request, share })))],
        countedSegments: 2 ** 40,
        known: request.held ?? [],
      }),
    },
    distributor: { pushBatch: pushed },
    tailer: makeTailer(seen),
    patternIngester: {
      learn: async (lines) => void seen.push(textOf(lines)),
      patterns: async (request) => ({
        patterns: [
          { pattern: textOf(request), level: "info", samples: [[60, 2 ** 40]] },
          { pattern: "é <_>", level: "", samples: [] },
        ],
        lines: 2 ** 41,
      }),
    },
    rules: {
      groups: async (request) => [
        { ...ruleGroup, name: textOf(request) },
        { ...ruleGroup, lastEvaluationMs: 2 ** 40 },
      ],
      changed: async () => void seen.push("rules changed"),
    },
    deletes: {
      active: async (request) => [
        {
          id: textOf(request),
          fromNs: request.fromNs,
          toNs: request.toNs,
          log: { kind: "log", matchers: [], stages: [] },
          nowNs: 0n,
        },
      ],
    },
  };
}

/** Tells the request as a label of a dropped row, then does as the tenant says; its rows end after one more item. */
function makeTailer(seen: string[]): Tailer {
  return {
    async *tail(request, options) {
      yield { dropped: [] };
      const labels = { names: ["told"], values: [textOf(request)] };
      yield { dropped: [{ timestampNs: -1n, labels }] };
      await behave(request.tenant, options, seen).catch((error) => {
        if (!options.signal.aborted) throw error;
      });
    },
  };
}

function makeIngester(push: Ingester["push"], seen: string[]): Ingester {
  const told = async (task: unknown, { share, background }: ScanOptions) =>
    encodeTexts([textOf({ task, share, background })]);
  return {
    push,
    select: async (request, options) => {
      await behave(request.tenant, options, seen);
      return { view: textOf(request), sources: [], completeFromNs: request.fromNs };
    },
    changes: async (request) => ({
      spans: [{ token: textOf(request), changed: request.spans }],
      lookedFromNs: -1n,
    }),
    release: async (view) => void seen.push(`released ${view}`),
    flush: async (request) => void seen.push(`flushed ${textOf(request)}`),
    ...scannerOf({
      scan: told,
      volumes: told,
      streams: told,
      labels: told,
      measure: async (task, { share }) => ({
        ...{ bytes: textOf({ task, share }).length, blocks: 2, blocksToRead: 1 },
      }),
      duplicates: async (task, { share }) => ({
        blocks: Uint32Array.of(1, 7),
        rows: [Uint32Array.of(textOf({ task, share }).length), Uint32Array.of(0, 2 ** 32 - 1)],
      }),
      matches: async (task, { share, background }) => ({
        mask: { blocks: Uint32Array.of(3), rows: [Uint32Array.of(1, 2)] },
        rowCount: textOf({ task, share, background }).length,
      }),
      digests: async (task, { share, background }) => ({
        ...{ streams: Float64Array.of(2 ** 53 - 1), counts: Uint32Array.of(1) },
        minutes: Uint32Array.of(2 ** 32 - 1),
        rows: Uint32Array.of(textOf({ task, share, background }).length),
        sums: Uint32Array.of(2 ** 32 - 1, 0),
      }),
      rowHashes: async (task, { share, background }) => ({
        ...{ minute: Uint32Array.of(1), source: Uint32Array.of(2), block: Uint32Array.of(3) },
        row: Uint32Array.of(textOf({ task, share, background }).length),
        hashes: Uint32Array.of(5, 2 ** 32 - 1),
      }),
    }),
  };
}

/** Answers say what was asked. */
export const echoQuerier: Querier = querierOf({
  query: async (request) => ({
    result: { kind: "scalar", atNs: 1n, value: Number.NaN, warnings: [textOf(request)] },
    stats: queryStats,
  }),
  volumes: async (request) => ({
    groups: [{ names: ["told"], values: [textOf(request)] }],
    group: Uint32Array.of(0),
    bucket: Uint32Array.of(7),
    rows: Float64Array.of(2 ** 40),
    bytes: Float64Array.of(0.5),
    blocks: 1,
    blockBytes: 700,
    streamCount: 2,
    stats: queryStats,
    warnings: ["w"],
  }),
  streams: async (request) => [{ tenant: textOf(request), streams: [] }],
  labels: async (request) => [{ tenant: "a", texts: ["é", textOf(request)] }],
});
