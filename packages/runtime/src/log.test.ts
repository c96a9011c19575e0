import { describe, expect, it } from "@jest/globals";
import { invalidArgument, SkaldError, unavailable } from "@skald/model";
import { createLogger } from "./log.js";
import type { LogLevel } from "./logger.js";
import { NewerFiles } from "./logger.js";

function capture(format: "json" | "logfmt", level?: LogLevel) {
  const lines: string[] = [];
  const target = { write: (line: string) => void lines.push(line) };
  const counted: LogLevel[] = [];
  const log = createLogger({ format, target, ...(level === undefined ? {} : { level }) });
  log.onLine((written) => void counted.push(written));
  return { lines, counted, log };
}

describe("createLogger", () => {
  it("writes one JSON object per line", () => {
    const { lines, log, counted } = capture("json");
    log.child({ component: "ingester" }).info("flushed", { entries: 3, ns: 10n });
    const { ts, ...rest } = JSON.parse(lines[0] as string);
    expect(rest).toEqual({
      level: "info",
      component: "ingester",
      entries: 3,
      ns: "10",
      msg: "flushed",
    });
    expect(ts).toMatch(/^\d{4}-.*Z$/);
    expect(lines[0]).toMatch(/\n$/);
    expect(counted).toEqual(["info"]);
  });

  it("writes logfmt", () => {
    const { lines, log } = capture("logfmt");
    log.warn("slow query", { query: '{a="b"}', ok: true, empty: "", at: { x: 1 }, none: null });
    expect(lines[0]?.replace(/ts=\S+/, "ts=T")).toBe(
      'level=warn ts=T query="{a=\\"b\\"}" ok=true empty="" at="{\\"x\\":1}" none=null msg="slow query"\n',
    );
  });

  it("changes the level for children too", () => {
    const { lines, log } = capture("json", "warn");
    const child = log.child({ a: 1 });
    child.info("no");
    log.setLevel("debug");
    child.debug("yes");
    expect(lines).toHaveLength(1);
    expect([child.level(), child.isEnabled("debug")]).toEqual(["debug", true]);
    log.setLevel("error");
    expect(child.isEnabled("warn")).toBe(false);
  });

  it.each(["loud", "", "DEBUG", "fatal"])("refuses the level %j", (level) => {
    const { log } = capture("json");
    expect(() => log.setLevel(level)).toThrow(invalidArgument(`unrecognized log level "${level}"`));
    expect(log.level()).toBe("info");
  });

  it("prints errors with code and causes, and the stack of a bug", () => {
    const { lines, log } = capture("json");
    const cause = new Error("connection refused");
    log.error("failed", { error: unavailable("read chunk k", { cause }) });
    log.error("failed", { error: cause });
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      error: "read chunk k: connection refused",
      code: "unavailable",
    });
    expect(JSON.parse(lines[1] as string).stack).toContain("log.test");
  });
});

it("tells of each file of a newer version once", () => {
  const told: unknown[] = [];
  const files = new NewerFiles({ error: (_message, fields) => told.push(fields?.error) });
  const errors = ["a", "b", "a"].map((name) => new SkaldError("newer_version", name));
  for (const error of errors) expect(files.tell(error)).toBe(true);
  expect(files.tell(new Error("a"))).toBe(false);
  expect(told).toEqual(errors.slice(0, 2));
});
