import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { maxLabelTextBytes, parsePushLabels } from "./labels.js";

function parse(text: string | Uint8Array, format: "protobuf" | "json" = "protobuf") {
  const bytes = Buffer.concat([Buffer.from("##"), Buffer.from(text), Buffer.from("##")]);
  return parsePushLabels(format, bytes, 2, bytes.length - 4);
}

describe("label text", () => {
  it.each<[string, string, [string, string][]]>([
    ["nothing", "", []],
    ["no labels", "{}", []],
    [
      "blanks",
      '  { a = "b" ,\n c="d" } ',
      [
        ["a", "b"],
        ["c", "d"],
      ],
    ],
    [
      "any order and repeats",
      '{z="1",a="2",z="3"}',
      [
        ["z", "1"],
        ["a", "2"],
        ["z", "3"],
      ],
    ],
    ["trailing comma", '{a="b",}', [["a", "b"]]],
    ["a quoted name", `{"a"='b'}`, [["a", "b"]]],
    ["single quotes", "{a='b\"c'}", [["a", 'b"c']]],
    ["back quotes", "{a=`b\\n\"'`}", [["a", "b\\n\"'"]]],
    [
      "metric name",
      'foo:bar{a="b"}',
      [
        ["__name__", "foo:bar"],
        ["a", "b"],
      ],
    ],
    ["metric name alone", "foo", [["__name__", "foo"]]],
    ["short escapes", '{a="\\a\\b\\f\\n\\r\\t\\v\\\\\\""}', [["a", '\x07\b\f\n\r\t\v\\"']]],
    ["single quote escape", "{a='\\''}", [["a", "'"]]],
    ["bytes of one character", '{a="\\xe4\\xb8\\x96\\344\\270\\226"}', [["a", "世世"]]],
    ["code points", '{a="\\u4e16\\U0001F600x"}', [["a", "世😀x"]]],
    ["plain text around escapes", '{a="ü\\nü"}', [["a", "ü\nü"]]],
    ["empty value", '{a=""}', [["a", ""]]],
  ])("%s", (_, text, want) => {
    expect(parse(text)).toEqual(want);
  });

  it.each([
    ['{bad-name="x"}', "1:5: parse error: unexpected character inside braces: '-'"],
    ['{a.b="x"}', "1:3: parse error: unexpected character inside braces: '.'"],
    ['{ü="x"}', "1:2: parse error: unexpected character inside braces: 'ü'"],
    ['{a="ü",-="x"}', "1:9: parse error: unexpected character inside braces: '-'"],
    ['{app="a"', "1:9: parse error: unexpected end of input inside braces"],
    ["{", "1:2: parse error: unexpected end of input inside braces"],
    ['app="a"', '1:4: parse error: unexpected "="'],
    ['{app=~"a"}', '1:5: parse error: unexpected <op:=~> in label set, expected "="'],
    ['{app!="a"}', '1:5: parse error: unexpected <op:!=> in label set, expected "="'],
    ["{app}", '1:5: parse error: unexpected "}" in label set, expected "="'],
    ["{app=}", '1:6: parse error: unexpected "}" in label set, expected string'],
    ["{app=b}", '1:6: parse error: unexpected identifier "b" in label set, expected string'],
    [
      '{a="b" c="d"}',
      '1:8: parse error: unexpected identifier "c" in label set, expected "," or "}"',
    ],
    ['{,a="b"}', '1:2: parse error: unexpected "," in label set, expected identifier or "}"'],
    ['{a="b"}}', '1:8: parse error: unexpected "}"'],
    ['{a="b"} x', '1:9: parse error: unexpected identifier "x"'],
    [
      '{"a.b"="b"}',
      '1:2: parse error: unexpected string "\\"a.b\\"" in label set, expected identifier or "}"',
    ],
    ["{a={}}", "1:4: parse error: unexpected left brace '{'"],
    ["%", "1:1: parse error: unexpected character: '%'"],
    ['{\na="b\n"}', "2:3: parse error: unterminated quoted string"],
    ['{a="b', "1:4: parse error: unterminated quoted string"],
    ["{a=`b", "1:4: parse error: unterminated raw string"],
    ['{a="\\q"}', "1:5: parse error: unknown escape sequence"],
    ['{a="\\\'"}', "1:5: parse error: unknown escape sequence"],
    ['{a="\\400"}', "1:5: parse error: escape sequence is above \\377"],
    ['{a="\\ud800"}', "1:5: parse error: escape sequence is an invalid Unicode code point"],
    ['{a="\\xff"}', "1:4: parse error: label value is not valid UTF-8"],
  ])("refuses %s", (text, message) => {
    expect(() => parse(text)).toThrow(
      new SkaldError("invalid_argument", `couldn't parse labels: ${message}`),
    );
  });

  it("refuses invalid UTF-8, too much text and too many labels", () => {
    expect(() => parse(Uint8Array.of(0x7b, 0x61, 0x3d, 0x22, 0xff, 0x22, 0x7d))).toThrow(
      "invalid UTF-8 rune",
    );
    const long = new Uint8Array(maxLabelTextBytes + 1);
    expect(() => parsePushLabels("protobuf", long, 0, long.length)).toThrow(
      /^request body too large: labels/,
    );
    const many = `{${Array.from({ length: 5000 }, (_, i) => `l${i}="v"`).join(",")}}`;
    expect(() => parse(many)).toThrow(/more than 4096 labels$/);
  });

  it("reads a value of 15 MiB, with and without escapes", () => {
    const value = "x".repeat(15 * 1024 * 1024);
    expect(parse(`{a="${value}"}`)[0]?.[1]).toHaveLength(value.length);
    expect(parse(`{a="${value}\\n"}`)[0]?.[1]).toHaveLength(value.length + 1);
  });
});

describe("stream object", () => {
  it.each<[string, string, [string, string][]]>([
    ["missing", "", []],
    ["null", " null ", []],
    ["empty", "{ }", []],
    [
      "strings",
      '{"a":"b", "c" : "d\\n\\u00fc\\\\"}',
      [
        ["a", "b"],
        ["c", "d\nü\\"],
      ],
    ],
    [
      "numbers as written",
      '{"a":5,"b":-1.50e+3,"c":0}',
      [
        ["a", "5"],
        ["b", "-1.50e+3"],
        ["c", "0"],
      ],
    ],
    ["last of equal names", '{"a":"1","a":"2"}', [["a", "2"]]],
  ])("%s", (_, text, want) => {
    expect(parse(text, "json")).toEqual(want);
  });

  it.each([
    ['{"bad-name":"x"}', "1:5: parse error: unexpected character inside braces: '-'"],
    ['{"z":"1","a.b":"x"}', "1:3: parse error: unexpected character inside braces: '.'"],
    ['{"ü":"x"}', "1:2: parse error: unexpected character inside braces: 'ü'"],
    ['{"":"x"}', '1:2: parse error: unexpected "=" in label set, expected identifier or "}"'],
    ['{"a=\\"1\\",b":"x"}', "illegal label name"],
    ['{"a":null}', "value of label 'a' must be a string"],
    ['{"a":true}', "value of label 'a' must be a string"],
    ['{"a":["b"]}', "value of label 'a' must be a string"],
    ['{"a":{"b":"c"}}', "value of label 'a' must be a string"],
    ['{"a":"b"', "expected ',' or '}' behind a label value"],
    ['{"a":"b', "a string of the stream object is not closed"],
    ['{"a":"\\q"}', "a string of the stream object is malformed"],
    ['{"a" "b"}', "expected ':' behind a label name"],
    ["[1]", "the stream of a push must be an object"],
  ])("refuses %s", (text, message) => {
    expect(() => parse(text, "json")).toThrow(
      new SkaldError("invalid_argument", `couldn't parse labels: ${message}`),
    );
  });
});
