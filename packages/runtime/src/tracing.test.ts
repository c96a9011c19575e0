import { afterEach, describe, expect, it } from "@jest/globals";
import { createLogger } from "./log.js";
import {
  beginPart,
  beginServed,
  currentTrace,
  formatTraceparent,
  installTracing,
  isTracing,
  parseTraceparent,
  runSpan,
  type SpanFacts,
  type TraceContext,
  traced,
  tracedApart,
  within,
} from "./tracing.js";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const caller: TraceContext = { traceId, spanId, isSampled: true };

function record(isSampled: (id: string, parent?: TraceContext) => boolean = () => true) {
  const spans: SpanFacts[] = [];
  installTracing({ take: (span) => spans.push(span), isSampled });
  return spans;
}

afterEach(() => installTracing(undefined));

describe("traceparent", () => {
  it.each([
    ["sampled", `00-${traceId}-${spanId}-01`, caller],
    ["not sampled", `00-${traceId}-${spanId}-00`, { ...caller, isSampled: false }],
    ["other flags", `00-${traceId}-${spanId}-03`, caller],
    ["a later version", `cc-${traceId}-${spanId}-01-what-comes`, caller],
    ["more than its version has", `00-${traceId}-${spanId}-01-more`, undefined],
    ["no version", `ff-${traceId}-${spanId}-01`, undefined],
    ["no trace", `00-${"0".repeat(32)}-${spanId}-01`, undefined],
    ["no span", `00-${traceId}-${"0".repeat(16)}-01`, undefined],
    ["capitals", `00-${traceId.toUpperCase()}-${spanId}-01`, undefined],
    ["nothing", undefined, undefined],
    ["two of them", [`00-${traceId}-${spanId}-01`], undefined],
  ])("with %s", (_name, header, want) => {
    expect(parseTraceparent(header, undefined)).toEqual(want);
  });

  it("is written as it is read", () => {
    for (const isSampled of [true, false]) {
      const context = { ...caller, isSampled };
      expect(parseTraceparent(formatTraceparent(context), undefined)).toEqual(context);
    }
  });

  it("keeps the state beside it, unless that is too long", () => {
    const header = formatTraceparent(caller);
    expect(parseTraceparent(header, ["a=1", "b=2"])?.state).toBe("a=1,b=2");
    expect(parseTraceparent(header, "x".repeat(513))).toEqual(caller);
  });
});

describe("a span", () => {
  it("is part of that within which it was begun, and of none apart", async () => {
    const spans = record();
    await traced("outer", { attributes: { a: 1, none: undefined } }, async () => {
      await traced("inner", {}, async (span) => span.set({ b: "x".repeat(2000) }));
      await tracedApart("apart", {}, async () => undefined);
    });
    const [inner, apart, outer] = spans;
    expect(spans.map(({ name }) => name)).toEqual(["inner", "apart", "outer"]);
    expect(inner?.parent).toEqual(outer?.context);
    expect([outer?.parent, apart?.parent]).toEqual([undefined, undefined]);
    expect(apart?.context.traceId).not.toBe(outer?.context.traceId);
    expect(outer?.attributes).toEqual({ a: 1 });
    expect(String(inner?.attributes.b)).toHaveLength(1024);
    expect(outer?.startMs).toBeLessThanOrEqual(inner?.startMs as number);
    expect(inner?.endMs).toBeLessThanOrEqual(outer?.endMs as number);
  });

  it("says what it failed with, and fails with it", async () => {
    const spans = record();
    const failed = traced("failing", {}, () => Promise.reject(new Error("no disk")));
    await expect(failed).rejects.toThrow("no disk");
    expect(spans[0]?.error).toBe("no disk");
  });

  it("goes on with the trace of another process, and with what that says of it", async () => {
    const spans = record((_, parent) => parent?.isSampled === true);
    const from = { ...caller, state: "a=1" };
    await runSpan(beginServed("served", {}, from), async () => beginPart("part")?.end());
    await runSpan(beginServed("unkept", {}, { ...from, isSampled: false }), async (span) => {
      expect(span.context).toMatchObject({ traceId, isSampled: false, state: "a=1" });
      expect(currentTrace()).toEqual(span.context);
    });
    expect(spans.map(({ name }) => name)).toEqual(["part", "served"]);
    for (const { context } of spans) expect(context).toMatchObject({ traceId, state: "a=1" });
    expect(spans[1]?.parent).toEqual(from);
  });

  it("is not begun outside of a trace where it is only a part", () => {
    record();
    expect(beginPart("part")).toBeUndefined();
    within(caller, () => expect(beginPart("part")?.context.traceId).toBe(traceId));
  });

  it("is none where there are none", async () => {
    expect(isTracing()).toBe(false);
    await traced("a", {}, async (span) => {
      span.set({ a: 1 });
      expect(currentTrace()).toBeUndefined();
    });
    within(caller, () => expect(currentTrace()).toBeUndefined());
  });
});

it("a line of the log names the trace within which it is written", async () => {
  record();
  const lines: string[] = [];
  const log = createLogger({ target: { write: (line) => lines.push(line) } }).child({ a: 1 });
  within(caller, () => log.info("in it", { b: 2 }));
  log.info("outside");
  const [inside, outside] = lines.map((line) => JSON.parse(line));
  expect([inside.traceID, inside.a, inside.b, outside.traceID]).toEqual([traceId, 1, 2, undefined]);
});
