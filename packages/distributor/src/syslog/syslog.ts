import type { PushOutcome, PushRefusal } from "@skald/contracts";
import type { RawPush } from "@skald/kernels";
import { errorCodeOf, SkaldError } from "@skald/model";
import {
  type Ledger,
  type Logger,
  retry,
  type Sleep,
  sleep,
  type WorkerPool,
} from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import type { SyslogBatch, SyslogListener, SyslogNews } from "./listen.js";

export interface SyslogDeps {
  readonly listeners: readonly SyslogListener[];
  /** A pool of one thread that serves `syslogJobs`. */
  readonly pool: Pick<WorkerPool, "run" | "close">;
  /** Stores rows; rejects with a SkaldError when none was stored. */
  readonly pushRows: (tenant: string, push: RawPush) => Promise<PushOutcome>;
  readonly ledger: Ledger;
  readonly metrics: Pick<Metrics, "counter" | "gauge">;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Time that batches get at the end, ms. */
  readonly graceMs: number;
  readonly sleep?: Sleep;
}

/** Pauses between two tries of a batch. */
const minBackoffMs = 100;
const maxBackoffMs = 5000;
/** Tries of a batch some rows of which were refused for now: the limit of a stream must not hold up all others forever. */
const maxPartialTries = 5;
const restartPauseMs = 1000;
/** A listener says at most this often that it cannot store. */
const warnPeriodMs = 10_000;
const tooManyRequests = 429;

/**
 * The syslog listeners of the process. Their ports are on a thread of their own, which hands over batches of rows. A batch that
 * cannot be stored now is tried again and again; meanwhile the thread stops reading from connections and drops datagrams.
 */
export class SyslogListeners {
  readonly #deps: SyslogDeps;
  readonly #counters: ReturnType<typeof countersOf>;
  /** Fires when the ports shall close. */
  readonly #stop = new AbortController();
  /** Fires when no batch may be tried again. */
  readonly #giveUp = new AbortController();
  readonly #lastWarnMs = new Map<number, number>();
  #running: Promise<void> = Promise.resolve();

  constructor(deps: SyslogDeps) {
    this.#deps = deps;
    this.#counters = countersOf(deps.metrics);
  }

  /** Opens the ports; rejects if one cannot be opened. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#running = this.#run(resolve, reject);
    });
  }

  /** Closes the ports; resolves when all that arrived is stored, or its time is over. */
  async stop(): Promise<void> {
    this.#stop.abort();
    const end = setTimeout(() => this.#giveUp.abort(), this.#deps.graceMs);
    await this.#running;
    clearTimeout(end);
    await this.#deps.pool.close();
  }

  /** Keeps the thread running until the end. */
  async #run(onOpen: () => void, onFailure: (error: unknown) => void): Promise<void> {
    const { listeners, log, pool } = this.#deps;
    const { signal } = this.#stop;
    let isOpen = false;
    const host = {
      listening: ({ ports }: { readonly ports: readonly number[] }) => {
        isOpen = true;
        for (const [i, { name }] of listeners.entries())
          log.info("listening for syslog", { listener: name, syslogPort: ports[i] });
        return { value: onOpen() };
      },
      push: async (batch: SyslogBatch) => ({ value: await this.#store(batch) }),
      count: (news: SyslogNews) => ({ value: this.#count(news) }),
    };
    while (!signal.aborted) {
      try {
        await pool.run<void>("listen", listeners, { lane: "background", signal, host });
      } catch (error) {
        if (!isOpen) onFailure(error);
        if (!isOpen || signal.aborted) return;
        log.error("the thread of syslog died", { error });
        await sleep(restartPauseMs, signal).catch(() => undefined);
      }
    }
  }

  /** Resolves when the rows are stored, or were given up, which is counted. */
  async #store({ listener, push }: SyslogBatch): Promise<void> {
    const { tenant } = this.#deps.listeners[listener]!;
    try {
      const refusals = await retry((attempt) => this.#tryToStore(tenant, push, attempt), {
        ...{ maxRetries: Number.POSITIVE_INFINITY, minBackoffMs, maxBackoffMs },
        signal: this.#giveUp.signal,
        sleep: this.#deps.sleep ?? sleep,
        isRetriable,
        onRetry: (error) => this.#warn(listener, "syslog waits: rows cannot be stored now", error),
      });
      for (const { entries, message } of refusals)
        this.#lose(listener, entries, "refused", message);
    } catch (error) {
      const reason = this.#giveUp.signal.aborted ? "shutdown" : "refused";
      this.#lose(listener, push.rowCount, reason, error);
    }
  }

  #lose(listener: number, rows: number, reason: string, error: unknown): void {
    const { name } = this.#deps.listeners[listener]!;
    this.#counters.dropped.inc({ listener: name, reason }, rows);
    this.#warn(listener, "syslog lost rows", error, { rows, reason });
  }

  /** Resolves with the refusals of rows that no further try would store. */
  async #tryToStore(
    tenant: string,
    push: RawPush,
    attempt: number,
  ): Promise<readonly PushRefusal[]> {
    const { ledger, pushRows } = this.#deps;
    const claim = ledger.open(tenant);
    try {
      claim.receive(bytesOf(push));
      const { refusals } = await pushRows(tenant, push);
      const refusal = refusals.find(({ status }) => status === tooManyRequests);
      // The rows that were stored are found again by the ingester, and count once.
      if (refusal !== undefined && attempt + 1 < maxPartialTries)
        throw new SkaldError("rate_limited", refusal.message);
      return refusals;
    } finally {
      claim.close();
    }
  }

  #warn(listener: number, message: string, error: unknown, fields: object = {}): void {
    const nowMs = performance.now();
    if (nowMs - (this.#lastWarnMs.get(listener) ?? Number.NEGATIVE_INFINITY) < warnPeriodMs) return;
    this.#lastWarnMs.set(listener, nowMs);
    const { name, tenant } = this.#deps.listeners[listener]!;
    this.#deps.log.warn(message, { listener: name, tenant, ...fields, error });
  }

  #count({ listener: at, counts }: SyslogNews): void {
    const listener = this.#deps.listeners[at]!.name;
    const counters = this.#counters;
    counters.messages.inc({ listener }, counts.messages);
    counters.bytes.inc({ listener }, counts.bytes);
    counters.malformed.inc({ listener }, counts.malformed);
    counters.cut.inc({ listener }, counts.cut);
    counters.dropped.inc({ listener, reason: "no_room" }, counts.dropped);
    counters.refused.inc({ listener }, counts.refused);
    counters.connections.set({ listener }, counts.connections);
  }
}

/** Whether another try may succeed. */
function isRetriable(error: unknown): boolean {
  const code = errorCodeOf(error);
  return code === "rate_limited" || code === "unavailable" || code === "deadline_exceeded";
}

/** Memory of a push. */
function bytesOf(push: RawPush): number {
  let bytes = 0;
  for (const value of Object.values(push)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}

function countersOf(metrics: SyslogDeps["metrics"]) {
  const counter = (what: string, help: string, ...more: string[]) =>
    metrics.counter(`syslog_${what}_total`, help, ["listener", ...more]);
  return {
    messages: counter("messages_received", "Syslog messages that were taken."),
    bytes: counter("bytes_received", "Bytes of syslog messages that were taken."),
    malformed: counter("parse_errors", "Syslog messages whose header could not be read."),
    cut: counter("messages_cut", "Syslog messages that were not taken to their end."),
    dropped: counter("messages_dropped", "Syslog messages that were lost.", "reason"),
    refused: counter("connections_refused", "Connections that a syslog listener closed."),
    connections: metrics.gauge("syslog_connections", "Open connections.", ["listener"]),
  };
}
