import { describe, expect, it } from "@jest/globals";
import { decodeDoor } from "../decode-door.js";
import { decodeRecords, noMapping } from "../testing/doors.js";
import { untimedNs } from "../testing/otlp.js";

const seconds = 1_795_168_800;
const ns = BigInt(seconds) * 1_000_000_000n;

describe("a bulk", () => {
  const mapping = { labels: ["app", "_index"], time: ["@timestamp"] };
  const doc = (app: string) => `{"app":"${app}","@timestamp":"2026-11-20T10:00:00Z"}`;

  it("gives a row for each document that is created or indexed", () => {
    const body = `{"create":{"_index":"logs","_id":"1"}}\n${doc("a")}\n\n{ "index" : {} }\r\n${doc("b")}`;
    const input = {
      format: "bulk",
      encoding: "identity",
      mapping: { ...noMapping, ...mapping },
    } as const;
    const bulk = decodeDoor({ ...input, body: Buffer.from(body) }, 1 << 20);
    expect("actions" in bulk && [...bulk.actions]).toEqual([1, 0]);
    expect(decodeRecords("bulk", body, mapping).rows).toEqual([
      { stream: '{_index="logs", app="a"}', ns, line: doc("a"), metadata: {}, record: 0 },
      { stream: '{app="b"}', ns, line: doc("b"), metadata: {}, record: 1 },
    ]);
    expect(decodeRecords("bulk", body).rows[0]!.metadata).toEqual({ _index: "logs" });
  });

  it("refuses what cannot be stored one by one", () => {
    const body = [
      '{"delete":{"_id":"1"}}',
      '{"update":{"_id":"1"}}\n{"doc":{}}',
      `{"create":{}}\n${doc("a")}`,
      '{"create":{}}\n{"half":',
      '{"create":{}}\n{"@timestamp":"x"}',
      `{"index":{}}\n${doc("b")}`,
      '{"create":{}}',
    ].join("\n");
    const { rows, refused } = decodeRecords("bulk", body, mapping);
    expect(rows.map(({ record }) => record)).toEqual([2, 5]);
    expect(refused).toEqual({
      0: expect.stringMatching(/^delete is not supported/),
      1: expect.stringMatching(/^update is not supported/),
      3: expect.stringMatching(/^invalid JSON/),
      4: expect.stringMatching(/^time 'x'/),
      6: expect.stringMatching(/^the bulk ends before the document/),
    });
  });

  it.each([
    ["a document without an action", doc("a"), /expected an action/],
    ["half an action", '{"create":{"_index', /unexpected end of a string/],
    ["a million actions", '{"index":{}}\n{}\n'.repeat(1_000_000), /more than 131072 actions/],
  ])("with %s is refused as a whole", (_name, body, text) => {
    expect(() => decodeRecords("bulk", body)).toThrow(text);
  });

  it("of one document may have line feeds", () => {
    expect(decodeRecords("document", '{\n "a": 1\n}\n').rows[0]!.line).toBe('{\n "a": 1\n}');
    expect(decodeRecords("document", "{}{}").refused[0]).toMatch(/unexpected text/);
  });
});

describe("events of a collector", () => {
  const labels = ["host", "sourcetype"];

  it("are texts or objects, with their time and fields wherever these stand", () => {
    const body = `{"event":"a\\nb","time":${seconds}.25,"host":"h","fields":{"x":"1","y":[1]},"source":"s"}
      {"host":"h","sourcetype":"st","event":{"line":"l","time":"no time"},"time":"${seconds}"}{"event":5}`;
    expect(decodeRecords("hec", body, { labels }).rows).toEqual([
      {
        stream: '{host="h"}',
        ns: ns + 250_000_000n,
        line: "a\nb",
        metadata: { source: "s", x: "1", y: "[1]" },
        record: 0,
      },
      {
        stream: '{host="h", sourcetype="st"}',
        ns,
        line: '{"line":"l","time":"no time"}',
        metadata: {},
        record: 1,
      },
      { stream: "{}", ns: untimedNs, line: "5", metadata: {}, record: 2 },
    ]);
    const message = decodeRecords("hec", body, { labels, message: ["line"] });
    expect(message.rows[1]).toMatchObject({ line: "l", metadata: { time: "no time" } });
  });

  it("that cannot be stored are refused; behind half an object nothing is read", () => {
    const body =
      '{"host":"h"}{"event":""}{"event":null}{"event":"a","time":"x"}{"event":"b"}{"event":"c"';
    const { rows, refused } = decodeRecords("hec", body);
    expect(rows.map(({ line, record }) => [line, record])).toEqual([["b", 4]]);
    expect(refused).toEqual({
      0: "the object has no event",
      1: "the event is blank",
      2: "the event is blank",
      3: expect.stringMatching(/^time 'x'/),
      5: expect.stringMatching(/^invalid JSON .*; what follows was not read$/),
    });
  });

  it("may be raw lines", () => {
    const { rows } = decodeRecords("text_lines", "a \r\n\n{b", { labels, extra: [["host", "h"]] });
    expect(rows.map(({ stream, line }) => [stream, line])).toEqual([
      ['{host="h"}', "a"],
      ['{host="h"}', "{b"],
    ]);
  });
});

describe("logs of Datadog", () => {
  const mapping = { labels: ["service", "env"], message: ["message"], time: ["timestamp"] };

  it("have tags as fields, and their status also as level", () => {
    const body = `[{"message":"m","status":"warn","timestamp":${seconds}000,"service":"s","ddtags":"env:prod,team:a:b,,x"},
      {"message":{"lambda":1},"ddtags":"a:1,a:2"}]`;
    expect(decodeRecords("datadog", body, mapping).rows).toEqual([
      {
        stream: '{env="prod", service="s"}',
        ns,
        line: "m",
        metadata: { status: "warn", level: "warn", team: "a:b", ddtags: "env:prod,team:a:b,,x" },
        record: 0,
      },
      {
        stream: "{}",
        ns: untimedNs,
        line: '{"lambda":1}',
        metadata: { a: "2", ddtags: "a:1,a:2" },
        record: 1,
      },
    ]);
    expect(decodeRecords("datadog", '{"message":"one"}', mapping).rows[0]!.line).toBe("one");
    expect(decodeRecords("datadog", "[]", mapping).records).toBe(0);
  });

  it("that cannot be stored are refused one by one, half a body as a whole", () => {
    const { rows, refused } = decodeRecords(
      "datadog",
      '[{"message":"a","timestamp":"x","t":[1]},5,{"message":"b"}]',
      mapping,
    );
    expect(rows.map(({ line, record }) => [line, record])).toEqual([["b", 2]]);
    expect(Object.keys(refused)).toEqual(["0", "1"]);
    for (const half of ['[{"message":"a"},{"mess', '[{"message":"a"}', '{"a":1}{', "text"]) {
      expect(() => decodeRecords("datadog", half, mapping)).toThrow(/invalid JSON/);
    }
  });
});

describe("entries of a journal", () => {
  const mapping = {
    labels: ["_HOSTNAME"],
    message: ["MESSAGE"],
    time: ["__REALTIME_TIMESTAMP"],
    ignore: ["__*"],
  };
  const binary = (name: string, value: Buffer) => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(value.length));
    return Buffer.concat([Buffer.from(`${name}\n`), length, value, Buffer.from("\n")]);
  };
  const entry = (message: string | Buffer, rest = "") =>
    Buffer.concat([
      Buffer.from(`__CURSOR=x\n__REALTIME_TIMESTAMP=${seconds}000000\n_HOSTNAME=h\n`),
      typeof message === "string"
        ? Buffer.from(`MESSAGE=${message}\n`)
        : binary("MESSAGE", message),
      Buffer.from(`${rest}\n`),
    ]);

  it("have texts and any bytes", () => {
    const bytes = Buffer.from("a\n\n=b\0\n");
    const body = Buffer.concat([entry("one=1", "PRIORITY=4\n"), entry(bytes, "_PID=7\n")]);
    expect(decodeRecords("journal", body, mapping).rows).toEqual([
      {
        stream: '{_HOSTNAME="h"}',
        ns,
        line: "one=1",
        metadata: { PRIORITY: "4", level: "warn" },
        record: 0,
      },
      { stream: '{_HOSTNAME="h"}', ns, line: bytes.toString(), metadata: { _PID: "7" }, record: 1 },
    ]);
  });

  it.each([
    ["half a line", Buffer.from("MESSAGE=ab")],
    ["no end", Buffer.from("MESSAGE=ab\n")],
    ["half a length", Buffer.from("MESSAGE\n\x05\0")],
    ["half its bytes", binary("MESSAGE", Buffer.from("abc")).subarray(0, -2)],
  ])("with %s are refused", (_name, half) => {
    const { rows, refused } = decodeRecords("journal", Buffer.concat([entry("a"), half]), mapping);
    expect(rows).toHaveLength(1);
    expect(refused).toEqual({ 1: expect.stringMatching(/ends within a field/) });
  });

  it("that are none are refused as a whole", () => {
    const wrong = binary("A", Buffer.from("abc"));
    wrong[wrong.length - 1] = 0x41;
    expect(() => decodeRecords("journal", wrong, mapping)).toThrow(/does not end with a line feed/);
    expect(() => decodeRecords("journal", `${"A".repeat(300)}\n`, mapping)).toThrow(
      /more than 256/,
    );
    const endless = Buffer.from(`A\n${"\xff".repeat(8)}\n`, "latin1");
    expect(() => decodeRecords("journal", endless, mapping)).toThrow(/makes no sense/);
  });
});
