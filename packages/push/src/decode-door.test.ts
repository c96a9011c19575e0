import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { parseDoorEncoding } from "./decode-door.js";
import { parseMapping } from "./doors/mapping.js";
import { decodeRecords, noMapping } from "./testing/doors.js";
import { untimedNs } from "./testing/otlp.js";

const ns = 1_795_168_800_123_456_789n;

describe("a line of JSON", () => {
  it("is kept as it came, with labels and the time of the named fields", () => {
    const line =
      '{"a": 12345678901234567890, "k8s":{"pod":"p\\u00e4"},"_time":"1795168800123456789", "n":null}';
    const { rows, refused } = decodeRecords("json_lines", ` ${line}\r\n\n`, {
      labels: ["k8s.pod", "a", "missing"],
      time: ["_time"],
    });
    expect(refused).toEqual({});
    expect(rows).toEqual([
      { stream: '{a="12345678901234567890", k8s_pod="pä"}', ns, line, metadata: {}, record: 0 },
    ]);
  });

  it("whose message is named gives it as the line, and the rest as metadata", () => {
    const { rows } = decodeRecords(
      "json_lines",
      '{"msg":"a\\tb","level":"warn","n":1e400,"o":{"p":[1, {"q":2}],"e":{}},"gone":1,"x-1":2,"ts":"2026-11-20T10:00:00.5+01:00"}\n{"level":"info","n":5}',
      {
        message: ["msg"],
        labels: ["level"],
        time: ["ts"],
        ignore: ["gone", "x-*"],
        extra: [["dc", "eu"]],
      },
    );
    expect(rows).toEqual([
      {
        stream: '{level="warn"}',
        ns: BigInt(Date.UTC(2026, 10, 20, 9)) * 1_000_000n + 500_000_000n,
        line: "a\tb",
        metadata: { dc: "eu", n: "1e400", o_p: '[1, {"q":2}]' },
        record: 0,
      },
      {
        stream: '{level="info"}',
        ns: untimedNs,
        line: '{"level":"info","n":5}',
        metadata: { dc: "eu" },
        record: 1,
      },
    ]);
  });

  it.each([
    ['{"a":1,"b":2,"c":3}', ["a"], '{"b":2,"c":3}'],
    ['{"a":1 , "b":2,"c":3}', ["a", "b"], '{ "c":3}'],
    ['{"a":1,"b":{"x":1,"y":2}, "c":3}', ["c", "b.y"], '{"a":1,"b":{"x":1}}'],
    ['{"a":1}', ["a"], "{}"],
    ['{"aa":1,"ab":{"c":2},"b":1}', ["a*"], '{"b":1}'],
  ])("%s without %p is %s", (line, ignore, want) => {
    expect(decodeRecords("json_lines", line, { ignore }).rows[0]!.line).toBe(want);
  });

  it("takes the first of several fields for the message and the time", () => {
    const { rows } = decodeRecords(
      "json_lines",
      '{"t2":"1795168800","t1":"2026-11-20 10:00:01Z","m2":"b","m1":"a"}\n{"t2":1795168800.25,"m2":"b"}',
      { message: ["m1", "m2"], time: ["t1", "t2"] },
    );
    expect(
      rows.map(({ line, metadata, ns: at }) => ({ line, metadata, at: at / 1_000_000n })),
    ).toEqual([
      { line: "a", metadata: { m2: "b", t2: "1795168800" }, at: 1_795_168_801_000n - 0n },
      { line: "b", metadata: {}, at: 1_795_168_800_250n },
    ]);
  });

  it.each([
    ["half an object", '{"a":1', /invalid JSON at byte/],
    ["a list", "[1]", /expected an object/],
    ["two objects", '{"a":1}{"a":2}', /unexpected text behind/],
    ["a bad escape", '{"a":"\\x"}', /invalid escape/],
    ["a NUL", '{"a":"\0"}', /invalid character in a string/],
    ["deep nesting", `${'{"a":'.repeat(1000)}1${"}".repeat(1000)}`, /256 levels/],
    ["deep lists", `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`, /256 levels/],
    ["a time that is none", '{"ts":"yesterday"}', /time 'yesterday' is neither RFC 3339/],
    ["a long label", `{"app":"${"x".repeat(70_000)}"}`, /label app has 70000 bytes/],
  ])("that is %s is refused, and the others are not", (_name, bad, reason) => {
    const body = `{"app":"a","ts":"1795168800"}\n${bad}\n{"app":"b","ts":"1795168801"}`;
    for (const message of [[], ["m"]]) {
      const { rows, refused, records } = decodeRecords("json_lines", body, {
        labels: ["app"],
        time: ["ts"],
        message,
      });
      expect(refused).toEqual({ 1: expect.stringMatching(reason) });
      expect(rows.map(({ stream, record }) => [stream, record])).toEqual([
        ['{app="a"}', 0],
        ['{app="b"}', 2],
      ]);
      expect(records).toBe(3);
    }
  });

  it("with 10,000 fields and invalid UTF-8 is a line as it came", () => {
    const fields = Array.from({ length: 10_000 }, (_, i) => `"f${i}":${i}`).join(",");
    const body = Buffer.from(`{${fields},"x":"\xff"}`, "latin1");
    const { rows } = decodeRecords("json_lines", body);
    expect(rows[0]!.line).toBe(body.toString());
  });

  it("of a name without letters is refused only where names are needed", () => {
    expect(decodeRecords("json_lines", '{"ü":1}').refused).toEqual({});
    expect(decodeRecords("json_lines", '{"m":"a","ü":1}', { message: ["m"] }).refused).toEqual({
      0: expect.stringMatching(/field 'ü' has no ASCII letter or digit/),
    });
  });

  it("is refused with all others when too many are", () => {
    expect(() => decodeRecords("json_lines", "x\n".repeat(10_001))).toThrow(
      /more than 10000 records cannot be read/,
    );
  });
});

describe("encodings", () => {
  const body = Buffer.from('{"a":1}\n');
  it.each([
    ["", body],
    ["gzip", gzipSync(body)],
    ["deflate", deflateSync(body)],
    ["deflate", deflateRawSync(body)],
    ...(zstdCompressSync === undefined ? [] : [["zstd", zstdCompressSync(body)] as const]),
  ])("%s is undone", (name, packed) => {
    const encoding = parseDoorEncoding(name);
    expect(decodeRecords("json_lines", packed, {}, { encoding }).rows).toHaveLength(1);
  });

  it("bombs are refused, and so are unknown ones", () => {
    const bomb = gzipSync(Buffer.alloc(40 * 1024 * 1024));
    expect(() => decodeRecords("json_lines", bomb, {}, { encoding: "gzip" })).toThrow(
      /inflates to more than/,
    );
    expect(() => parseDoorEncoding("br")).toThrow(/not supported: send gzip, deflate or zstd/);
  });
});

describe("parseMapping", () => {
  const parse = (query: string, headers: Record<string, string> = {}, maxLabels = 15) =>
    parseMapping(
      { params: new URLSearchParams(query), headers },
      { ...noMapping, labels: ["host"], time: ["time"] },
      maxLabels,
    );

  it.each([
    [
      "our parameters",
      "labels=a,b.c&message_field=m,n&time_field=t&ignore_fields=x,y*&extra_fields=k=v,l=m=n",
      {},
    ],
    [
      "parameters of VictoriaLogs",
      "_stream_fields=a, b.c,&_msg_field=m,n&_time_field=t&ignore_fields=x,y*&extra_fields=k=v,l=m=n",
      {},
    ],
    [
      "our headers",
      "_stream_fields=z",
      {
        "x-skald-labels": "a,b.c",
        "x-skald-message-field": "m,n",
        "x-skald-time-field": "t",
        "x-skald-ignore-fields": "x,y*",
        "x-skald-extra-fields": "k=v,l=m=n",
      },
    ],
    [
      "headers of VictoriaLogs",
      "",
      {
        "vl-stream-fields": "a,b.c",
        "vl-msg-field": "m,n",
        "vl-time-field": "t",
        "vl-ignore-fields": "x,y*",
        "vl-extra-fields": "k=v,l=m=n",
      },
    ],
  ])("reads %s", (_name, query, headers) => {
    expect(parse(query, headers as Record<string, string>)).toEqual({
      labels: ["a", "b.c"],
      message: ["m", "n"],
      time: ["t"],
      ignore: ["x", "y*"],
      extra: [
        ["k", "v"],
        ["l", "m=n"],
      ],
    });
  });

  it("has the defaults of its door, and an empty list is a list", () => {
    expect(parse("labels=")).toMatchObject({ labels: [], time: ["time"] });
    expect(parse("")).toMatchObject({ labels: ["host"], time: ["time"] });
  });

  it.each([
    ["many labels", "labels=a,b,c", /3 fields would become labels, the limit is 2/],
    [
      "a label twice",
      "labels=a.b,a_b",
      /'a_b' cannot become a label: it gives the label a_b again/,
    ],
    ["a label without a name", "labels=-", /'-' cannot become a label: it has no letter or digit/],
    ["a field without a value", "extra_fields=a", /extra_fields: 'a' is not name=value/],
    [
      "many names",
      `ignore_fields=${"a,".repeat(300)}`,
      /ignore_fields has 300 names; the limit is 256/,
    ],
  ])("refuses %s", (_name, query, text) => {
    expect(() => parse(query, {}, 2)).toThrow(text);
  });
});
