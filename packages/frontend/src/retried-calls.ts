import { bodyOf, type ScheduledAnswer, type ScheduledCall } from "@skald/contracts";
import { errorCodeOf } from "@skald/model";
import { retry, type Sleep } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";

/** The pauses between tries: together, with jitter, four to eight seconds, in which a scheduler starts again. */
const minBackoffMs = 250;
const maxBackoffMs = 5000;
/** A fault of the program may be one of that machine; where a second querier has it too, so will the others. */
const maxFaults = 1;
const buckets = [0, 1, 2, 3, 4, 5];

export interface RetriedCallsOptions {
  /** Tries of a call after the first one. */
  readonly maxRetries: number;
  readonly metrics: Metrics;
  readonly sleep?: Sleep;
  /** In [0, 1): the seed of the jitter. */
  readonly random?: () => number;
}

/** Has calls of queries run again that failed where another querier, or the same one later, may have the answer. */
export class RetriedCalls {
  readonly #options: RetriedCallsOptions;
  readonly #retries;

  constructor(options: RetriedCallsOptions) {
    this.#options = options;
    const help = "How often calls of queriers were tried again.";
    this.#retries = options.metrics.histogram("query_frontend_retries", help, [], buckets);
  }

  /** The answer of a call; throws what it failed with the last time. */
  async run(
    call: ScheduledCall,
    run: (call: ScheduledCall) => Promise<ScheduledAnswer>,
    signal: AbortSignal,
  ): Promise<ScheduledAnswer> {
    // What has changed is not worth the wait: without it what is kept is asked for again.
    if (call.method === "changes") return run(call);
    const { sleep, random } = this.#options;
    const avoid: string[] = [];
    let retries = 0;
    let faults = 0;
    let isFinal = false;
    const attempt = async () => {
      const answer = await run(avoid.length === 0 ? call : { ...call, avoid: [...avoid] });
      if (answer.querier !== undefined) avoid.push(answer.querier);
      isFinal = answer.error?.isFinal === true;
      bodyOf(answer);
      return answer;
    };
    const isRetriable = (error: unknown) => {
      const code = errorCodeOf(error);
      if (code === "internal") return !isFinal && ++faults <= maxFaults;
      return code === "unavailable" && !isFinal;
    };
    try {
      return await retry(attempt, {
        ...{ maxRetries: this.#options.maxRetries, minBackoffMs, maxBackoffMs },
        ...{ signal, isRetriable },
        onRetry: () => {
          retries++;
        },
        ...(sleep === undefined ? {} : { sleep }),
        ...(random === undefined ? {} : { random }),
      });
    } finally {
      this.#retries.observe(retries);
    }
  }
}
