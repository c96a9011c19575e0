import { describe, expect, it } from "@jest/globals";
import { LineParser } from "./line-formats.js";

const nowMs = Date.UTC(2026, 0, 2, 12);
const parse = (text: string, format = "auto") => new LineParser(format).parse(text, nowMs);
const iso = (ns: bigint | undefined) =>
  ns === undefined
    ? undefined
    : `${new Date(Number(ns / 1_000_000n)).toISOString().slice(0, -1)}${String(ns % 1_000_000n).padStart(6, "0")}`;

const day = "2026-01-02T10:00:00.123";
describe("formats", () => {
  it.each([
    [
      "docker",
      `{"log":"a b\\n","stream":"stderr","time":"${day}456789Z"}`,
      `${day}456789`,
      "a b",
      { stream: "stderr" },
    ],
    [
      "journald",
      '{"__REALTIME_TIMESTAMP":"1767348000123456","MESSAGE":"m","PRIORITY":"3","_SYSTEMD_UNIT":"u.service","_PID":"7"}',
      `${day}456000`,
      "m",
      { level: "error", unit: "u.service", pid: "7" },
    ],
    [
      "journald bytes",
      '{"__REALTIME_TIMESTAMP":"1767348000123456","MESSAGE":[104,105]}',
      `${day}456000`,
      "hi",
      {},
    ],
    ["json", `{"time":"${day}Z","x":1}`, `${day}000000`, `{"time":"${day}Z","x":1}`, {}],
    ["json, Unix ms", '{"ts":1767348000123}', `${day}000000`, '{"ts":1767348000123}', {}],
    ["json, Unix s", '{"ts":1767348000.123}', `${day}000000`, '{"ts":1767348000.123}', {}],
    ["json without a time", '{"x":1}', undefined, '{"x":1}', {}],
    ["cri", `${day}456789Z stdout F a b`, `${day}456789`, "a b", { stream: "stdout" }],
    [
      "syslog 5424",
      `<11>1 ${day}Z h app 9 - - m`,
      `${day}000000`,
      undefined,
      { level: "error", host: "h", app: "app", pid: "9" },
    ],
    [
      "klog",
      "E0102 10:00:00.123456   42 a/b.go:7] m",
      `${day}456000`,
      undefined,
      { level: "error" },
    ],
    [
      "nginx",
      '1.2.3.4 - - [02/Jan/2026:12:00:00 +0200] "GET / HTTP/1.1" 200 1',
      "2026-01-02T10:00:00.000000000",
      undefined,
      {},
    ],
    ["logfmt", `level=info ts=${day}Z msg="a \\"b\\""`, `${day}000000`, undefined, {}],
    ["a date with a comma", "2026-01-02 10:00:00,123 INFO m", `${day}000000`, undefined, {}],
    ["a date in brackets", "[2026-01-02 12:00:00.123 +02:00] m", `${day}000000`, undefined, {}],
    ["plain", "just words", undefined, undefined, {}],
    ["an object that is none", '{"log":', undefined, undefined, {}],
  ])("%s", (_name, text, time, line, metadata) => {
    const found = parse(text);
    expect({ time: iso(found.ns), line: found.line, metadata: found.metadata }).toEqual({
      ...{ time, line: line ?? text, metadata },
    });
  });

  it("takes a December line that is read in January for last year's", () => {
    const { ns, metadata } = parse("Dec 31 23:59:58 host cron[12]: m");
    expect(new Date(Number(ns! / 1_000_000n)).getFullYear()).toBe(2025);
    expect(metadata).toEqual({ host: "host", app: "cron", pid: "12" });
  });

  it("finds fields, also in objects, and in lines of other formats", () => {
    expect(parse('{"a":{"b":"c"},"n":5}').field("a.b")).toBe("c");
    expect(parse('{"a":{"b":"c"},"n":5}').field("n")).toBe("5");
    expect(parse('x=1 msg="a \\"b\\""').field("msg")).toBe('a "b"');
    expect(parse(`${day}Z stdout F {"id":"7"}`).field("id")).toBe("7");
    expect(parse('{"a":1}').field("__proto__")).toBeUndefined();
  });

  it("knows lines that go on", () => {
    expect(parse(`${day}Z stdout P half`).isPartial).toBe(true);
    expect(parse(`{"log":"half","stream":"stdout","time":"${day}Z"}`).isPartial).toBe(true);
  });

  it("reads one format only where one is named", () => {
    expect(parse(`ts=${day}Z`, "plain").ns).toBeUndefined();
    expect(parse(`ts=${day}Z`, "json").ns).toBeUndefined();
    expect(parse(`ts=${day}Z`, "logfmt").ns).toBeDefined();
  });
});
