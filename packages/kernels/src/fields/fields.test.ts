import { describe, expect, it } from "@jest/globals";
import { fieldColumns, fieldKind, fieldStatus } from "../index.js";
import { type FieldRow, jsonRows, logfmtRows } from "../testing/field-rows.js";
import { forms } from "../testing/forms.js";

const { text, escaped, number, boolean } = fieldKind;
type Fields = FieldRow["fields"];

describe.each(forms)("scanJsonFields, %s", (_name, kernels) => {
  const one = (line: string, names: readonly string[], complete = true) =>
    jsonRows(kernels, [line], names, complete)[0];

  it.each<[string, Fields]>([
    ['{"a":"x"}', { a: [text, "x"] }],
    [' { "a" : "x" , "b" : 5 }\n', { a: [text, "x"], b: [number, "5"] }],
    ['{"a":"x\\"y","b":-0}', { a: [escaped, 'x\\"y'], b: [number, "-0"] }],
    ['{"a":1.50,"b":true}', { a: [number, "1.50"], b: [boolean, "true"] }],
    [
      '{"a":false,"b":12345678901234567890}',
      { a: [boolean, "false"], b: [number, "12345678901234567890"] },
    ],
    ['{"a":"","b":1e5}', { a: [text, ""], b: [number, "1e5"] }],
    ['{"a":null,"b":[1,"]",{"a":1}]}', {}],
    ['{"a":null,"a":[],"a":{},"a":"late"}', { a: [text, "late"] }],
    ['{"a":"first","a":"second"}', { a: [text, "first"] }],
    ['{"a":{"b":{"c":"deep"}}}', { a_b_c: [text, "deep"] }],
    ['{"a.b":{"c":"deep"}}', { a_b_c: [text, "deep"] }],
    ['{"a":{"b-c":"deep"}}', { a_b_c: [text, "deep"] }],
    ['{"a b c":1,"a":{"b":{"c":2}}}', { a_b_c: [number, "1"] }],
    ['{"a":{"x":1},"b":2}', { b: [number, "2"] }],
    ['{"x":{"a":1},"a":2}', { a: [number, "2"] }],
    ['{"9l":1}', { _9l: [number, "1"] }],
    ['{"_9l":1}', { _9l: [number, "1"] }],
    ['{"n":{"9l":1}}', { n_9l: [number, "1"] }],
    ['{"9":{"l":1}}', { _9_l: [number, "1"] }],
    ['{"":{"a":1},"b":2}', { a: [number, "1"], b: [number, "2"] }],
    ['{"":5}', {}],
    ['{"a":1,}', { a: [number, "1"] }],
    ['{"a":1} trailing', { a: [number, "1"] }],
    ["{}", {}],
    ['{"a_rather_long_name_with-dashes":1}', { a_rather_long_name_with_dashes: [number, "1"] }],
    ['{"a_rather_long_name":{"with-dashes":"x"}}', { a_rather_long_name_with_dashes: [text, "x"] }],
    [`{"x":"${"é".repeat(30)}","a":"\xff"}`, { a: [text, "\xff"] }],
    [`{"x":{"y":"}","z":"${"\\\\".repeat(9)}"},"a":1}`, { a: [number, "1"] }],
    [`{"x":[${'["[\\"",1],'.repeat(20)}{}],"a":1}`, { a: [number, "1"] }],
  ])("reads %j", (line, want) => {
    const names = ["a", "b", "a_b_c", "_9l", "n_9l", "_9_l", "a_rather_long_name_with_dashes"];
    expect(one(line, names)).toEqual({ status: fieldStatus.ok, fields: want });
    expect(one(line, names, false)).toEqual({ status: fieldStatus.ok, fields: want });
  });

  it.each<[string, keyof typeof fieldStatus, Fields]>([
    ["", "openObject", {}],
    ["[1,2,3]", "openObject", {}],
    ["42", "openObject", {}],
    ["plain text", "openObject", {}],
    ["{", "malformed", {}],
    ['{"unterminated":"', "openString", {}],
    ['{"a":1,"b', "malformed", { a: [number, "1"] }],
    ['{"a":1,"b"', "malformed", { a: [number, "1"] }],
    ['{"a":1,"b":', "malformed", { a: [number, "1"] }],
    ['{"a":1', "openArray", { a: [number, "1"] }],
    ['{"a":1,', "openArray", { a: [number, "1"] }],
    ['{"a":1 "b":2}', "openObject", { a: [number, "1"] }],
    ['{"a":1,b:2}', "openObject", { a: [number, "1"] }],
    ['{"a":1,"b":nul}', "unknownValue", { a: [number, "1"] }],
    ['{"a":1,"b":}', "unknownValue", { a: [number, "1"] }],
    ['{"a":1,"b":[1,2}', "openArray", { a: [number, "1"] }],
    ['{"a":1,"x":{"b":2', "openObject", { a: [number, "1"] }],
    ['{"a":1,"x":{"b"}}', "malformed", { a: [number, "1"] }],
    ['{"a":1,"ünï":2}', "unsure", {}],
    ['{"a":1,"\\u0062":2}', "unsure", {}],
    ['{"a":1," b":2}', "unsure", {}],
    [`{"a":1,"b":${'{"b":'.repeat(64)}2${"}".repeat(65)}`, "unsure", {}],
  ])("ends %j as %s", (line, status, want) => {
    expect(one(line, ["a", "b"])).toEqual({ status: fieldStatus[status], fields: want });
  });

  it("leaves a line once it has all fields, and objects without any", () => {
    expect(one('{"a":1,"b":2,broken', ["a", "b"], false)?.status).toBe(fieldStatus.ok);
    expect(one('{"x":{broken},"a":1}', ["a"], false)?.status).toBe(fieldStatus.ok);
    expect(one('{"x":{broken},"a":1}', ["a"])?.status).toBe(fieldStatus.openObject);
  });

  it("keeps rows apart", () => {
    const lines = ['{"a":"x', '{"a":1}', "", '{"b":"', '{"a":"}"}', '{"a', '":2}'];
    const found = jsonRows(kernels, lines, ["a"], true).map(({ fields }) => fields.a?.[1]);
    expect(found).toEqual([undefined, "1", undefined, undefined, "}", undefined, undefined]);
  });

  it("reads only the selected rows", () => {
    const bytes = Buffer.from('{"a":1}{"a":2}{"a":3}{"a":4}');
    const offsets = Uint32Array.of(0, 7, 14, 21, 28);
    const out = fieldColumns(1, 4);
    const selection = { rows: Uint32Array.of(1, 3, 0), count: 2 };
    kernels.scanJsonFields(bytes, offsets, selection, ["a"], out, { complete: true });
    expect([...out.start.subarray(0, 2)]).toEqual([12, 26]);
  });

  it("takes more names than a mask has bits", () => {
    const names = Array.from({ length: 40 }, (_, i) => `f${i}`);
    const line = JSON.stringify(Object.fromEntries(names.map((name) => [name, name])));
    const want = Object.fromEntries(names.map((name) => [name, [text, name]]));
    expect(one(line, names)?.fields).toEqual(want);
    expect(one(line, names.slice(0, 32))?.fields).toEqual(
      Object.fromEntries(Object.entries(want).slice(0, 32)),
    );
  });
});

describe.each(forms)("scanLogfmtFields, %s", (_name, kernels) => {
  const names = ["a", "b", "c", "d", "key_with_dot", "_1st", "t"];
  const values = (line: string, options = {}) =>
    Object.fromEntries(
      Object.entries(logfmtRows(kernels, [line], names, options)[0]!.fields).map(
        ([name, [, value]]) => [name, value],
      ),
    );

  it.each<[string, Readonly<Record<string, string>>]>([
    ["a=1 b=\"two words\" c='single' d", { a: "1", b: "two words", c: "'single'" }],
    ["a=1 a=2 a=3", { a: "1" }],
    ['"quoted key"=v a=b', { a: "b" }],
    ["a==b c=d", { c: "d" }],
    ['a="open', {}],
    ["key.with.dot=1 key-dash=2 1st=3", { key_with_dot: "1", _1st: "3" }],
    ["a= b= c=", {}],
    ["a= a=2", { a: "2" }],
    ["a=1,b=2", {}],
    ["   spaced   =  a=out  ", { a: "out" }],
    ["a=b\tc=d", { a: "b", c: "d" }],
    ["url=http://x/?q=1&r=2 t=1", { t: "1" }],
    ["plain words only", {}],
    ["", {}],
    ['a="x"b=y', { a: "x", b: "y" }],
    ['a=x"y b=1', { b: "1" }],
    ['a="bad \\x"b=1 c=2', { c: "2" }],
    ['a="bad \\u12"b=1 c=2', { c: "2" }],
    ['a="control \t \\n" c=2', { c: "2" }],
    ['a="control \t" c=2', { a: "control \t", c: "2" }],
    ["a=\xff c=2", { a: "\xff", c: "2" }],
    [`x=${"long".repeat(20)} x_${"long".repeat(20)}=1 a=1`, { a: "1" }],
  ])("reads %j", (line, want) => {
    expect(values(line)).toEqual(want);
  });

  it("tells texts with escapes", () => {
    const [row] = logfmtRows(kernels, ['a="esc \\"q\\" \\u00e9" b="plain"'], names);
    expect(row?.fields).toEqual({ a: [escaped, 'esc \\"q\\" \\u00e9'], b: [text, "plain"] });
  });

  it("keeps empty values when told", () => {
    const keepEmpty = true;
    expect(values('a= b="" c', { keepEmpty })).toEqual({ a: "", b: "", c: "" });
    expect(values("a= a=2", { keepEmpty })).toEqual({ a: "" });
    expect(values("a=1 a=2 a", { keepEmpty, lastWins: true })).toEqual({ a: "" });
    expect(values("a=1 b=1 a=2", { lastWins: true })).toEqual({ a: "2", b: "1" });
  });

  it.each<[string, number, Readonly<Record<string, string>>]>([
    ["a=1 b=2", fieldStatus.ok, { a: "1", b: "2" }],
    ["a=1 b==2 c=3", fieldStatus.brokenPair, { a: "1" }],
    ['a=1 "b"=2 c=3', fieldStatus.brokenPair, { a: "1" }],
    ["a=1 =2 c=3", fieldStatus.brokenPair, { a: "1" }],
    ['a=1 b="x', fieldStatus.brokenPair, { a: "1" }],
    ['a=1 x="\\x"', fieldStatus.brokenPair, { a: "1" }],
  ])("stops %j at the first broken pair when strict", (line, status, want) => {
    expect(logfmtRows(kernels, [line], names, { strict: true })[0]?.status).toBe(status);
    expect(values(line, { strict: true })).toEqual(want);
  });

  it("is unsure about keys beyond ASCII", () => {
    expect(logfmtRows(kernels, ["a=1 \xfc=2"], names)[0]).toEqual({
      status: fieldStatus.unsure,
      fields: {},
    });
  });
});
