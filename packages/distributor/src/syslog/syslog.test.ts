import { expect, it } from "@jest/globals";
import type { PushOutcome, PushRefusal } from "@skald/contracts";
import type { RawPush } from "@skald/kernels";
import { internal, invalidArgument, SkaldError, unavailable } from "@skald/model";
import { SyslogRows } from "@skald/push";
import { type JobOptions, Ledger } from "@skald/runtime";
import { Metrics } from "@skald/runtime/metrics";
import { makeHarness, testNowMs, testNowNs } from "../testing/harness.js";
import { SyslogBatches } from "./batches.js";
import type { SyslogListener } from "./listen.js";
import { SyslogListeners } from "./syslog.js";

const mapping = { labels: { a: "b" }, labelFields: [], timeZone: "UTC", usesNamedTime: true };
const listener: SyslogListener = {
  ...{ name: "tcp/x", protocol: "tcp", host: "", port: 0, tenant: "t", framing: "auto" },
  ...{ maxMessageBytes: 1000, maxConnections: 10, mapping },
};
const message = Buffer.from("<13>1 - h a - - - hello");
const peer = Buffer.from("192.0.2.1");

function onePush(): RawPush {
  const rows = new SyslogRows(mapping);
  rows.add(message, 0, message.length, peer, 0);
  return rows.take();
}

/** Listeners whose thread is played by the test. */
async function opened(pushRows: () => Promise<PushOutcome>) {
  const metrics = new Metrics();
  const warnings: string[] = [];
  let job: JobOptions | undefined;
  let end = (_: unknown): void => undefined;
  const pushes: unknown[] = [];
  const log = {
    info: () => undefined,
    error: () => undefined,
    warn: (text: string) => warnings.push(text),
  };
  const listeners = new SyslogListeners({
    ...{ listeners: [listener], ledger: new Ledger(0), metrics, log, graceMs: 0, pushRows },
    pool: {
      run: <T>(_: string, __: unknown, options: JobOptions) => {
        job = options;
        return new Promise<T>((resolve) => {
          end = resolve as (value: unknown) => void;
          options.signal?.addEventListener("abort", () => void Promise.all(pushes).then(end));
          call("listening", { ports: [1] });
        });
      },
      close: async () => undefined,
    },
    sleep: async () => {
      await new Promise(setImmediate);
    },
  });
  const call = (name: string, payload: unknown) =>
    job?.host?.[name]?.(payload as never, { signal: new AbortController().signal });
  const push = () => {
    const pushing = call("push", { listener: 0, push: onePush() });
    pushes.push(pushing);
    return pushing;
  };
  await listeners.start();
  const lost = async (reason: string) => {
    const line = `loki_syslog_messages_dropped_total{listener="tcp/x",reason="${reason}"} `;
    const found = (await metrics.read()).text.split("\n").find((text) => text.startsWith(line));
    return Number(found?.slice(line.length) ?? 0);
  };
  return { listeners, call, lost, metrics, warnings, push };
}

/** Answers one after the other: errors and refusals, then success. */
function answering(...answers: (Error | PushRefusal)[]) {
  const calls = { count: 0 };
  const pushRows = async (): Promise<PushOutcome> => {
    const answer = answers[calls.count++];
    if (answer instanceof Error) throw answer;
    return { refusals: answer === undefined ? [] : [answer] };
  };
  return { calls, pushRows };
}

const refusal = (status: number): PushRefusal => ({
  ...{ status, reason: "r", message: "no", entries: 1, bytes: 1 },
});

it("tries a batch until it is stored", async () => {
  const busy = new SkaldError("rate_limited", "too much");
  const { calls, pushRows } = answering(
    busy,
    unavailable("no store"),
    busy,
    busy,
    busy,
    busy,
    busy,
  );
  const { lost, push, warnings } = await opened(pushRows);
  await push();
  expect(calls.count).toBe(8);
  expect(await lost("refused")).toBe(0);
  expect(warnings).toEqual(["syslog waits: rows cannot be stored now"]);
});

it.each([invalidArgument("bad"), internal("fault")])("counts what is lost by %s", async (error) => {
  const { calls, pushRows } = answering(error);
  const { lost, push, warnings } = await opened(pushRows);
  await push();
  expect(calls.count).toBe(1);
  expect(await lost("refused")).toBe(1);
  expect(warnings).toEqual(["syslog lost rows"]);
});

it.each([
  [429, 5],
  [400, 1],
])("tries rows that were refused with %i so often, and counts them: %i", async (status, times) => {
  const { calls, pushRows } = answering(...Array.from({ length: 10 }, () => refusal(status)));
  const { lost, push, warnings } = await opened(pushRows);
  await push();
  expect(calls.count).toBe(times);
  expect(await lost("refused")).toBe(1);
  expect(warnings.at(-1)).toBe(
    times > 1 ? "syslog waits: rows cannot be stored now" : "syslog lost rows",
  );
});

it("stores lines with their labels, and no other fields, for a tenant without structured metadata", async () => {
  const { distributor, stored, counter } = makeHarness({ allow_structured_metadata: false });
  const rows = new SyslogRows({ ...mapping, labelFields: ["app"] });
  const text = Buffer.from('<11>1 2026-11-20T10:00:00Z h shop 7 - [a@1 b="c"] hello');
  rows.add(text, 0, text.length, peer, testNowMs);
  const push = rows.take();
  // A batch may be pushed again.
  const metadata = push.pairCount;
  expect(await distributor.pushRows("t1", push)).toEqual({ refusals: [] });
  expect(push.pairCount).toBe(metadata);
  const stream = '{a="b", app="shop", service_name="shop"}';
  expect(stored()).toEqual([{ stream, ns: testNowNs, line: "hello", metadata: {} }]);
  const changed = { reason: "disallowed_structured_metadata" };
  expect(await counter("loki_mutated_samples_total", changed)).toBe(1);
});

it("gives batches up when their time at the end is over", async () => {
  const pushRows = () => Promise.reject(unavailable("gone"));
  const { listeners, lost, push } = await opened(pushRows);
  const pushing = push();
  await listeners.stop();
  await pushing;
  expect(await lost("shutdown")).toBe(1);
});

it("adds what the thread counted to the metrics", async () => {
  const { call, metrics } = await opened(answering().pushRows);
  const counts = { messages: 1, bytes: 2, malformed: 3, cut: 4, dropped: 5, refused: 6 };
  call("count", { listener: 0, counts: { ...counts, connections: 7 } });
  const { text } = await metrics.read();
  const told = [...text.matchAll(/^loki_syslog_(\w+)\{listener="tcp\/x".*\} (\d)$/gm)];
  expect(told.map(([, name, value]) => `${name} ${value}`)).toEqual([
    "messages_received_total 1",
    "bytes_received_total 2",
    "parse_errors_total 3",
    "messages_cut_total 4",
    "messages_dropped_total 5",
    "connections_refused_total 6",
    "connections 7",
  ]);
});

it("has no room while four batches are on their way and the next is full", async () => {
  const sent: (() => void)[] = [];
  let rooms = 0;
  const batches = new SyslogBatches(
    mapping,
    () => new Promise<void>((resolve) => sent.push(resolve)),
    () => rooms++,
  );
  const large = Buffer.alloc(1024 * 1024 - 10_000, "x");
  const addFull = () => {
    batches.add(large, 0, large.length, peer);
    batches.add(large, 0, large.length, peer);
  };
  for (let i = 0; i < 4; i++) {
    expect(batches.hasRoom).toBe(true);
    addFull();
  }
  expect(sent).toHaveLength(4);
  expect(batches.hasRoom).toBe(true);
  addFull();
  expect(batches.hasRoom).toBe(false);
  sent[0]?.();
  await Promise.resolve();
  await new Promise(setImmediate);
  expect({ sent: sent.length, rooms, room: batches.hasRoom }).toEqual({
    sent: 5,
    rooms: 1,
    room: true,
  });
  batches.add(message, 0, message.length, peer);
  const flushed = batches.flush();
  for (let i = 1; i < 6; i++) {
    sent[i]?.();
    await new Promise(setImmediate);
  }
  await flushed;
  expect(sent).toHaveLength(6);
  expect(batches.counts).toMatchObject({ messages: 11, dropped: 0 });
});
