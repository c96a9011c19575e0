import { describe, expect, it } from "@jest/globals";
import snappy from "snappy";
import { noTimestampSeconds, type RawPushLimits, scanLegacyJsonPush } from "./index.js";
import { forms } from "./testing/forms.js";
import {
  latin1,
  type PlainPush,
  pushRequestType,
  toPlain,
  wideLimits,
} from "./testing/push-oracle.js";

const utf8 = (text: string) => new TextEncoder().encode(text);
const row = (nanoseconds: bigint, line: string, pairs: [string, string][] = []) => ({
  seconds: Number(nanoseconds / 1_000_000_000n),
  nanos: Number(nanoseconds % 1_000_000_000n),
  line: latin1(line),
  pairs,
});
const time = 1_700_000_000_123_456_789n;

describe.each(forms)("protobuf push, %s", (_name, kernels) => {
  const decode = (message: Uint8Array, limits: RawPushLimits = wideLimits) =>
    toPlain(kernels.decodeSnappyProtobufPush(snappy.compressSync(Buffer.from(message)), limits));

  it("decodes streams, entries and metadata", () => {
    const message = pushRequestType.encode({
      streams: [
        {
          labels: '{a="b"}',
          hash: 7,
          entries: [
            {
              timestamp: { seconds: 1_700_000_000, nanos: 123_456_789 },
              line: utf8("übung"),
              structuredMetadata: [
                { name: "k", value: "v" },
                { name: "", value: "w" },
              ],
              parsed: [{ name: "x", value: "y" }],
            },
            { timestamp: { seconds: -5, nanos: 1 }, line: utf8("") },
          ],
        },
        { labels: "{}", entries: [] },
      ],
      format: "f",
    });
    expect(decode(message.finish())).toEqual([
      {
        labels: '{a="b"}',
        rows: [
          row(time, "übung", [
            ["k", "v"],
            ["", "w"],
          ]),
          { seconds: -5, nanos: 1, line: "", pairs: [] },
        ],
      },
      { labels: "{}", rows: [] },
    ]);
  });

  const cases: [string, number[], PlainPush[]][] = [
    ["an empty message", [], []],
    [
      "an entry without a timestamp",
      [10, 2, 18, 0],
      [{ labels: "", rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "an empty timestamp",
      [10, 4, 18, 2, 10, 0],
      [{ labels: "", rows: [{ seconds: 0, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "labels after entries, the last wins",
      [10, 8, 18, 0, 10, 1, 65, 10, 1, 66],
      [{ labels: "B", rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "timestamps merge",
      [10, 14, 18, 12, 10, 4, 8, 1, 16, 2, 10, 4, 16, 3, 16, 4],
      [{ labels: "", rows: [{ seconds: 1, nanos: 4, line: "", pairs: [] }] }],
    ],
    [
      "unknown fields of every wire type",
      [40, 1, 49, 1, 2, 3, 4, 5, 6, 7, 8, 58, 1, 9, 69, 1, 2, 3, 4, 75, 8, 1, 76, 10, 0],
      [{ labels: "", rows: [] }],
    ],
    ["a tag padded with a zero byte", [138, 0, 0], [{ labels: "", rows: [] }]],
    [
      "invalid UTF-8 in a line",
      [10, 6, 18, 4, 18, 2, 255, 254],
      [
        {
          labels: "",
          rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "\xff\xfe", pairs: [] }],
        },
      ],
    ],
  ];
  it.each(cases)("reads %s", (_case, message, want) => {
    expect(decode(Uint8Array.from(message))).toEqual(want);
  });

  const tenBytes = (last: number) => [255, 255, 255, 255, 255, 255, 255, 255, 255, last];
  it.each([
    ["a stream that breaks off", [10, 5, 10], "unexpected end"],
    ["a string longer than its stream", [10, 2, 10, 9], "unexpected end"],
    ["a length beyond 32 bits", [10, 255, 255, 255, 255, 127], "unexpected end"],
    ["streams as a varint", [8, 1], "wrong wire type"],
    ["a line as fixed32", [10, 7, 18, 5, 21, 1, 2, 3, 4], "wrong wire type"],
    ["seconds as bytes", [10, 6, 18, 4, 10, 2, 10, 0], "wrong wire type"],
    ["field number 0", [0, 1], "illegal field tag"],
    ["wire type 6", [46], "illegal field tag"],
    ["a varint of 11 bytes", [...tenBytes(255), 1], "varint is too long"],
    ["a varint beyond 64 bits", [40, ...tenBytes(2)], "varint is too long"],
    ["an end of group alone", [44], "groups"],
    ["a group that is not closed", [43], "unexpected end"],
    ["groups nested too deeply", Array.from({ length: 80 }, () => 43), "groups"],
    ["negative nanos", [10, 15, 18, 13, 10, 11, 16, ...tenBytes(1)], "nanos"],
    ["nanos of a second", [10, 10, 18, 8, 10, 6, 16, 128, 148, 235, 220, 3], "nanos"],
    ["seconds out of range", [10, 11, 18, 9, 10, 7, 8, 255, 255, 255, 255, 255, 127], "seconds"],
  ])("refuses %s", (_case, message, text) => {
    const decoding = () => decode(Uint8Array.from(message));
    expect(decoding).toThrow(text);
    expect(decoding).toThrow(expect.objectContaining({ code: "corrupt" }));
  });

  it.each([
    ["streams", { maxStreams: 1 }],
    ["entries", { maxRows: 2 }],
    ["structured metadata pairs", { maxPairs: 2 }],
    ["bytes decompressed", { maxDecodedBytes: 20 }],
  ])("refuses more %s than the limit", (text, limit) => {
    const stream = [10, 6, 18, 4, 26, 0, 26, 0];
    const one = [...stream, 10, 4, 18, 2, 26, 0, 10, 2, 18, 0];
    const tooMany = () =>
      decode(Uint8Array.from([...one, 10, 0, 10, 0]), { ...wideLimits, ...limit });
    expect(tooMany).toThrow(text);
    expect(tooMany).toThrow(expect.objectContaining({ code: "too_large" }));
  });
});

describe.each(forms)("json push, %s", (_name, kernels) => {
  const scan = (body: string | Uint8Array, limits: RawPushLimits = wideLimits) =>
    toPlain(kernels.scanJsonPush(typeof body === "string" ? utf8(body) : body, limits));
  const one = (values: string) => `{"streams":[{"stream":{"a":"b"},"values":[${values}]}]}`;
  const oneStream = (...rows: PlainPush["rows"]) => [{ labels: '{"a":"b"}', rows }];

  it.each<[string, string, PlainPush[]]>([
    ["a row", one(`["${time}","x"]`), oneStream(row(time, "x"))],
    [
      "metadata",
      one(`["${time}","x",{"k":"v","l":""}]`),
      oneStream(
        row(time, "x", [
          ["k", "v"],
          ["l", ""],
        ]),
      ),
    ],
    [
      "equal metadata keys",
      one(`["1","x",{"k":"v","k":"w"}]`),
      oneStream(
        row(1n, "x", [
          ["k", "v"],
          ["k", "w"],
        ]),
      ),
    ],
    [
      "blanks everywhere",
      ' {\n"streams" : [ { "stream" : { "a" : 1 } , "values" : [ [ "1" ,\t"x" , { } ] ] } ] } \r\n',
      [{ labels: '{ "a" : 1 }', rows: [row(1n, "x")] }],
    ],
    [
      "values before stream",
      '{"streams":[{"values":[["1","x"]],"stream":{}}]}',
      [{ labels: "{}", rows: [row(1n, "x")] }],
    ],
    [
      "unknown keys",
      '{"n":[1,-2.5e+3,0.1,true,false,null,{"a":{"b":[[],{}]}}],"streams":[{"x":"\\"","stream":{},"values":[]}]}',
      [{ labels: "{}", rows: [] }],
    ],
    [
      "the last of equal keys",
      '{"streams":[{}],"streams":[{"stream":{"a":"1"},"values":[["1","x",{"a":"b"}]],"stream":{"a":"2"},"values":[["2","y"]]}]}',
      [{ labels: '{"a":"2"}', rows: [row(2n, "y")] }],
    ],
    ["a key with an escape", '{"stre\\u0061ms":[{}]}', [{ labels: "", rows: [] }]],
    ["null", "null", []],
    ["an empty object", "{}", []],
    ["null streams", '{"streams":null}', []],
    [
      "null stream and values",
      '{"streams":[{"stream":null,"values":null}]}',
      [{ labels: "", rows: [] }],
    ],
    [
      "a body of the first API",
      '{"streams":[{"labels":"{}","entries":[{"ts":"x"}]}]}',
      [{ labels: "", rows: [] }],
    ],
    [
      "an empty entry",
      one("[]"),
      oneStream({ seconds: noTimestampSeconds, nanos: 0, line: "", pairs: [] }),
    ],
    ["an entry without a line", one('["7"]'), oneStream(row(7n, ""))],
    [
      "negative time",
      one('["-1","x"]'),
      oneStream({ seconds: -1, nanos: 999_999_999, line: "x", pairs: [] }),
    ],
    [
      "negative whole seconds",
      one('["-2000000000","x"]'),
      oneStream({ seconds: -2, nanos: 0, line: "x", pairs: [] }),
    ],
    [
      "the greatest time",
      one('["0009223372036854775807","x"]'),
      oneStream({ seconds: 9_223_372_036, nanos: 854_775_807, line: "x", pairs: [] }),
    ],
    [
      "the least time",
      one('["-9223372036854775808","x"]'),
      oneStream({ seconds: -9_223_372_037, nanos: 145_224_192, line: "x", pairs: [] }),
    ],
    [
      "escapes",
      one('["1","\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00|"]'),
      oneStream(row(1n, '"\\/\b\f\n\r\té€😀|')),
    ],
    [
      "lone surrogates",
      one('["1","\\ud83d|\\ude00|\\ud83d\\u0041\\ud83d\\ud83d\\ude00"]'),
      oneStream(row(1n, "\ufffd|\ufffd|\ufffdA\ufffd😀")),
    ],
    ["raw control characters", one('["1","a\nb\tc\u0000"]'), oneStream(row(1n, "a\nb\tc\u0000"))],
  ])("reads %s", (_case, body, want) => {
    expect(scan(body)).toEqual(want);
  });

  it("keeps invalid UTF-8 as it is", () => {
    const body = Buffer.from(one('["1","\xff\\n\xc3"]'), "latin1");
    expect(scan(body)).toEqual(oneStream({ seconds: 0, nanos: 1, line: "\xff\n\xc3", pairs: [] }));
  });

  it.each([
    ["nothing", "", "EOF"],
    ["blanks", "  ", "unexpected end"],
    ["an array", "[]", "must be an object"],
    ["a body that breaks off", '{"streams":', "unexpected end"],
    ["text behind the body", '{"streams":[]} trailing', "unexpected text"],
    ["streams as object", '{"streams":{}}', "streams must be an array"],
    ["null among the streams", '{"streams":[null]}', "must be an object"],
    ["a stream of text", '{"streams":[{"stream":"x"}]}', "stream must be an object"],
    ["values as text", '{"streams":[{"values":"none"}]}', "values must be an array"],
    ["an entry of text", one('"x"'), "array of timestamp and line"],
    ["a numeric timestamp", one('[1,"x"]'), "timestamp must be a string"],
    ["an empty timestamp", one('["","x"]'), "64-bit decimal"],
    ["a lone sign", one('["-","x"]'), "64-bit decimal"],
    ["a float timestamp", one('["1.5e18","x"]'), "64-bit decimal"],
    ["a timestamp of 20 digits", one('["99999999999999999999","x"]'), "64-bit decimal"],
    ["a timestamp beyond 64 bits", one('["9223372036854775808","x"]'), "64-bit decimal"],
    ["a numeric line", one('["1",5]'), "line must be a string"],
    ["numeric metadata", one('["1","x",5]'), "must be an object of strings"],
    ["null metadata", one('["1","x",null]'), "must be an object of strings"],
    ["metadata in an array", one('["1","x",["a"]]'), "must be an object of strings"],
    ["a number in metadata", one('["1","x",{"k":1}]'), "values must be strings"],
    ["null in metadata", one('["1","x",{"k":null}]'), "values must be strings"],
    ["four items", one('["1","x",{},"y"]'), "at most"],
    ["a comma at the end of an array", one('["1","x"],'), "must be an array"],
    ["a comma at the end of an object", '{"streams":[],}', "unexpected character"],
    ["two commas", '{"a":[1,,2]}', "unexpected character"],
    ["a bad word", '{"a":trux}', "unexpected character"],
    ["a bad number", '{"a":01}', "unexpected character"],
    ["a bare minus", '{"a":-}', "unexpected character"],
    ["a point without digits", '{"a":1.}', "unexpected character"],
    ["an exponent without digits", '{"a":1e+}', "unexpected character"],
    ["crossed brackets", '{"a":[{]}}', "unexpected character"],
    ["a bad escape", one('["1","\\x"]'), "illegal escape"],
    ["a bad unicode escape", one('["1","\\u12G4"]'), "illegal escape"],
    ["a bad escape in a skipped text", '{"a":"\\u12"}', "illegal escape"],
    ["an open string", '{"a":"x', "not closed"],
    ["an open line", '{"streams":[{"values":[["1","x\\n', "not closed"],
    ["an escape at the end", '{"a":"\\', "unexpected end"],
    ["deep nesting", `{"a":${"[".repeat(513)}`, "nested too deeply"],
    ["very deep nesting", `{"a":${'{"a":'.repeat(200_000)}`, "nested too deeply"],
  ])("refuses %s", (_case, body, text) => {
    expect(() => scan(body)).toThrow(text);
    expect(() => scan(body)).toThrow(expect.objectContaining({ code: "corrupt" }));
  });

  it("reads nesting up to the limit", () => {
    expect(scan(`{"a":${"[".repeat(512)}${"]".repeat(512)}}`)).toEqual([]);
  });

  it.each([
    ["streams", { maxStreams: 1 }],
    ["entries", { maxRows: 1 }],
    ["structured metadata pairs", { maxPairs: 1 }],
    ["bytes decompressed", { maxDecodedBytes: 20 }],
  ])("refuses more %s than the limit", (text, limit) => {
    const body = '{"streams":[{"values":[["1","x",{"a":"","b":""}],["1","x"]]},{}]}';
    const tooMany = () => scan(body, { ...wideLimits, ...limit });
    expect(tooMany).toThrow(text);
    expect(tooMany).toThrow(expect.objectContaining({ code: "too_large" }));
  });
});

describe("legacy json push", () => {
  const scan = (body: unknown, limits = wideLimits) =>
    toPlain(scanLegacyJsonPush(utf8(JSON.stringify(body)), limits));
  const entry = (ts: unknown) => ({ streams: [{ labels: "{}", entries: [{ ts, line: "x" }] }] });

  it("reads labels, entries and metadata", () => {
    const body = {
      streams: [
        {
          labels: '{a="b"}',
          entries: [
            { ts: "2023-11-14T22:13:20.123456789Z", line: "ü", structuredMetadata: { k: "v" } },
          ],
        },
        {},
      ],
    };
    expect(scan(body)).toEqual([
      { labels: '{a="b"}', rows: [row(time, "ü", [["k", "v"]])] },
      { labels: "", rows: [] },
    ]);
  });

  it.each<[string, number, number]>([
    ["1970-01-01T00:00:00Z", 0, 0],
    ["1970-01-01T02:00:00.5+01:30", 1800, 500_000_000],
    ["1969-12-31t23:59:59.999999999z", -1, 999_999_999],
    ["0001-01-01T00:00:00Z", noTimestampSeconds, 0],
    ["2024-02-29T12:00:00-00:30", 1_709_209_800, 0],
  ])("reads the time %s", (ts, seconds, nanos) => {
    expect(scan(entry(ts))[0]!.rows).toEqual([{ seconds, nanos, line: "x", pairs: [] }]);
  });

  it.each([
    ["x"],
    [5],
    ["2023-02-29T00:00:00Z"],
    ["2023-01-01 00:00:00Z"],
    ["2023-01-01T24:00:00Z"],
  ])("refuses the time %p", (ts) => expect(() => scan(entry(ts))).toThrow("json: ts"));

  it.each<[unknown, string]>([
    [[], "body must be an object"],
    [{ streams: {} }, "streams must be an array"],
    [{ streams: [{ labels: 5 }] }, "labels must be a string"],
    [{ streams: [{ entries: [{ structuredMetadata: { a: 1 } }] }] }, "must be strings"],
  ])("refuses %j", (body, text) => {
    expect(() => scan(body)).toThrow(text);
  });

  it("counts against the limits", () => {
    const limits = { ...wideLimits, maxRows: 0 };
    expect(() => scan(entry("1970-01-01T00:00:00Z"), limits)).toThrow("more than 0 entries");
  });
});
