import { expect, it } from "@jest/globals";
import type { ScheduledAnswer, ScheduledCall } from "@skald/contracts";
import { type ErrorCode, errorStatus, SkaldError } from "@skald/model";
import { Metrics } from "@skald/runtime/metrics";
import { RetriedCalls } from "./retried-calls.js";

const call: ScheduledCall = {
  ...{ method: "query", tenant: "t", actors: [], avoid: [] },
  body: Uint8Array.of(1),
};
const answered: ScheduledAnswer = { body: Uint8Array.of(2), queueSeconds: 0 };
const failed = (code: ErrorCode, querier: string, isFinal = false): ScheduledAnswer => ({
  error: { code, message: `${code} of ${querier}`, ...(isFinal && { isFinal }) },
  ...{ querier, queueSeconds: 0 },
});

interface Tried {
  /** The code that it failed with; undefined: it was answered. */
  readonly code: string | undefined;
  /** Whom each try avoided. */
  readonly avoided: readonly (readonly string[])[];
  readonly pausesMs: readonly number[];
  readonly metrics: string;
}

/** Runs a call that is answered with, or throws, what is given, in order. */
async function tried(
  outcomes: readonly (ScheduledAnswer | Error)[],
  { maxRetries = 5, asked = call, signal = new AbortController().signal } = {},
): Promise<Tried> {
  const metrics = new Metrics();
  const pausesMs: number[] = [];
  const avoided: (readonly string[])[] = [];
  const calls = new RetriedCalls({
    ...{ maxRetries, metrics, random: () => 0.5 },
    sleep: async (ms, own) => {
      pausesMs.push(ms);
      own?.throwIfAborted();
    },
  });
  const run = async ({ avoid }: ScheduledCall) => {
    const outcome = outcomes[avoided.length] as ScheduledAnswer | Error;
    avoided.push(avoid);
    if (outcome instanceof Error) throw outcome;
    return outcome;
  };
  const code = await calls.run(asked, run, signal).then(
    () => undefined,
    (error) => (error as SkaldError).code ?? String(error),
  );
  return { code, avoided, pausesMs, metrics: (await metrics.read()).text };
}

it("runs what failed elsewhere, with pauses that grow, and counts", async () => {
  const { code, avoided, pausesMs, metrics } = await tried([
    failed("unavailable", "a"),
    new SkaldError("unavailable", "no query scheduler is known"),
    failed("unavailable", "b"),
    answered,
  ]);
  expect(code).toBeUndefined();
  expect(avoided).toEqual([[], ["a"], ["a"], ["a", "b"]]);
  expect(pausesMs).toEqual([187.5, 375, 750]);
  expect(metrics).toMatch(/^loki_query_frontend_retries_sum 3$/m);
  expect(metrics).toMatch(/^loki_query_frontend_retries_count 1$/m);
});

it.each([
  [0, 1],
  [2, 3],
  [5, 6],
])("tries again %d times at most", async (maxRetries, tries) => {
  const outcomes = Array.from({ length: 9 }, (_, i) => failed("unavailable", `q${i}`));
  const { code, avoided } = await tried(outcomes, { maxRetries });
  expect(code).toBe("unavailable");
  expect(avoided).toHaveLength(tries);
});

const retried: readonly ErrorCode[] = ["unavailable", "internal"];
const final = (Object.keys(errorStatus) as ErrorCode[]).filter((code) => !retried.includes(code));
it.each(final)("does not try again what is %s", async (code) => {
  expect(await tried([failed(code, "a")])).toMatchObject({ code, avoided: [[]] });
});

it("tries a fault of the program once in another querier", async () => {
  const faults = ["a", "b", "c"].map((name) => failed("internal", name));
  expect(await tried(faults)).toMatchObject({ code: "internal", avoided: [[], ["a"]] });
});

it("does not try again what queriers were lost by", async () => {
  const lost = failed("unavailable", "a", true);
  expect(await tried([lost])).toMatchObject({ code: "unavailable", avoided: [[]] });
});

it("ends with its query", async () => {
  const query = new AbortController();
  const outcome = failed("unavailable", "a");
  const gone = new SkaldError("cancelled", "the client is gone");
  const outcomes = [
    new Proxy(outcome, { get: (of, key) => (query.abort(gone), Reflect.get(of, key)) }),
  ];
  const { avoided, pausesMs } = await tried(outcomes, { signal: query.signal });
  expect([avoided.length, pausesMs.length]).toEqual([1, 0]);
  const early = await tried([answered], { signal: query.signal });
  expect(early).toMatchObject({ code: "cancelled", avoided: [] });
});

it("does not wait for what has changed", async () => {
  const asked: ScheduledCall = { ...call, method: "changes" };
  const { avoided, metrics } = await tried([failed("unavailable", "a")], { asked });
  expect(avoided).toEqual([[]]);
  expect(metrics).toMatch(/^loki_query_frontend_retries_count 0$/m);
});
