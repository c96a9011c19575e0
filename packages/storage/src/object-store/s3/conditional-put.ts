import { randomUUID } from "node:crypto";
import type { PutOutcome } from "../object-store.js";
import { S3Failure } from "./calls.js";

/** The calls that a conditional put needs. */
interface ConditionalCalls {
  /** Fails with status 412 when `ifAbsent` is given and the object is there. */
  put(key: string, body: Uint8Array, ifAbsent: boolean, signal: AbortSignal): Promise<void>;
  exists(key: string, signal: AbortSignal): Promise<boolean>;
  delete(key: string, signal: AbortSignal): Promise<void>;
}

/** Keys that begin with it are no objects of ours. */
export const probePrefix = ".skald-probe-";

/**
 * Puts an object only when it is not there. S3 has a condition for this (`If-None-Match: *`), but some servers that speak S3
 * ignore it, refuse it, or answer it wrongly. So the first put probes the bucket with an object of its own: do two puts of
 * one key end as they should? Where they do not, the object is looked up before it is put, one put of a key at a time.
 * Within this process that is exact; between processes the last of two writers that did not see each other wins.
 */
export class ConditionalPut {
  readonly #calls: ConditionalCalls;
  readonly #onFallback: (why: string) => void;
  #probing: Promise<boolean> | undefined;
  /** Puts of a key that are under way, without the condition. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(calls: ConditionalCalls, onFallback: (why: string) => void = () => {}) {
    this.#calls = calls;
    this.#onFallback = onFallback;
  }

  async run(
    key: string,
    put: (ifAbsent: boolean) => Promise<void>,
    signal: AbortSignal,
  ): Promise<PutOutcome> {
    if (!(await this.#isOffered(signal))) return this.#inTurn(key, put, signal);
    try {
      await put(true);
      return "stored";
    } catch (error) {
      if (isRefused(error)) return "exists";
      throw error;
    }
  }

  /** Probes the store once for all callers. */
  async #isOffered(signal: AbortSignal): Promise<boolean> {
    this.#probing ??= this.#probe(new AbortController().signal).catch((error: unknown) => {
      this.#probing = undefined;
      throw error;
    });
    const ended = untilAborted(signal);
    try {
      return await Promise.race([this.#probing, ended.promise]);
    } finally {
      ended.forget();
    }
  }

  async #probe(signal: AbortSignal): Promise<boolean> {
    const key = probePrefix + randomUUID();
    const body = Buffer.from("asks whether If-None-Match is honoured\n");
    try {
      await this.#calls.put(key, body, true, signal);
    } catch (error) {
      return this.#unsupported(error, "refused a put of what was not there");
    }
    try {
      await this.#calls.put(key, body, true, signal);
      this.#onFallback("the store ignored the condition of a put");
      return false;
    } catch (error) {
      return isRefused(error) || this.#unsupported(error, "answered a put of what was there with");
    } finally {
      await this.#calls.delete(key, signal).catch(() => {});
    }
  }

  /** Only an answer of the store says something about it; without one the probe is repeated. */
  #unsupported(error: unknown, what: string): false {
    const isAnswer = error instanceof S3Failure && error.status >= 400 && !error.passes;
    if (!isAnswer || error.status === 401 || error.status === 403 || error.status === 404)
      throw error;
    this.#onFallback(`the store ${what}: ${error.message}`);
    return false;
  }

  async #inTurn(
    key: string,
    put: (ifAbsent: boolean) => Promise<void>,
    signal: AbortSignal,
  ): Promise<PutOutcome> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const turn = before
      .catch(() => {})
      .then(async (): Promise<PutOutcome> => {
        if (await this.#calls.exists(key, signal)) return "exists";
        await put(false);
        return "stored";
      });
    this.#turns.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    }
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof S3Failure && error.status === 412;
}

/** Rejects with the reason of an abort. */
function untilAborted(signal: AbortSignal): { promise: Promise<never>; forget(): void } {
  let onAbort = () => {};
  const promise = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  return { promise, forget: () => signal.removeEventListener("abort", onAbort) };
}
