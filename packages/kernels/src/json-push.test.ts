import { describe, expect, it } from "@jest/globals";
import { noTimestampSeconds, type RawPushLimits } from "./index.js";
import { forms } from "./testing/forms.js";
import { type PlainPush, plainRow as row, toPlain, wideLimits } from "./testing/push-oracle.js";

const utf8 = (text: string) => new TextEncoder().encode(text);
const time = 1_700_000_000_123_456_789n;

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
      "metadata keys that are numbers, in their order",
      one(`["1","x",{"k":"v","31":"w"}]`),
      oneStream(
        row(1n, "x", [
          ["k", "v"],
          ["31", "w"],
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
    [
      "more items than an entry has",
      one('["1","x",{"k":"v"},{"more":[1,"]"]},7]'),
      oneStream(row(1n, "x", [["k", "v"]])),
    ],
    ["a second document", `${one('["1","x"]')}\n${one('["2","y"]')}`, oneStream(row(1n, "x"))],
    ["text behind the body", '{"streams":[]} } trailing', []],
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
    ["what is no json behind an entry", one('["1","x",{},y]'), "unexpected character"],
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
