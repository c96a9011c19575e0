import { type LogExpr, parseQuery } from "@skald/logql";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore, type ObjectStore } from "@skald/storage";
import type { AskedDelete } from "../deletion/delete-request.js";
import { DeleteRequests, type DeletionMode } from "../deletion/delete-requests.js";
import { type LocalCopy, RequestStore } from "../deletion/request-store.js";

export const signal: AbortSignal = new AbortController().signal;
export const hourMs = 3_600_000;

/** A time of day that tests move. */
interface TestClock {
  ms: number;
  nowMs(): number;
}

export function testClock(ms = 1_800_000_000_000): TestClock {
  return {
    ms,
    nowMs() {
      return this.ms;
    },
  };
}

interface MadeRequests {
  readonly deletes: DeleteRequests;
  readonly metrics: Metrics;
  readonly damaged: string[];
}

/** The delete requests of one process over a store; requests can be cancelled for an hour. */
export function makeRequests(
  store: ObjectStore = new MemoryStore(),
  clock: TestClock = testClock(),
  modes: Readonly<Record<string, DeletionMode>> = {},
  copy?: LocalCopy,
  pendingLimit = 0,
): MadeRequests {
  const damaged: string[] = [];
  const metrics = new Metrics();
  const onDamaged = (key: string) => damaged.push(key);
  const requests = new RequestStore({ store, prefix: "index/", onDamaged });
  const deletes = new DeleteRequests({
    ...{
      requests,
      clock,
      metrics,
      log: silentLogger(),
      cancelPeriodMs: hourMs,
      redactPeriodMs: 2 * hourMs,
    },
    modeOf: (tenant) => modes[tenant] ?? "filter-and-delete",
    pendingLimitOf: () => pendingLimit,
    ...(copy === undefined ? {} : { copy }),
  });
  return { deletes, metrics, damaged };
}

export function asked(query: string, ...boundsMs: number[]): AskedDelete {
  return { query, boundsMs, log: parseQuery(query) as LogExpr };
}

/** The value of a metric by its name and labels; 0 when there is none. */
export async function metricOf(metrics: Metrics, name: string): Promise<number> {
  const { text } = await metrics.read();
  const line = text.split("\n").find((one) => one.startsWith(`loki_${name} `));
  return Number(line?.split(" ").at(-1) ?? 0);
}
