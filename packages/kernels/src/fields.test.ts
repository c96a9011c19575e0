import { describe, expect, it } from "@jest/globals";
import { fieldColumns, fieldKind } from "./index.js";
import { type FieldRow, jsonRows, logfmtRows } from "./testing/field-rows.js";
import { forms } from "./testing/forms.js";

const { plain, coded } = fieldKind;
type Fields = FieldRow["fields"];

describe.each(forms)("scanJsonFields, %s", (_name, kernels) => {
  const one = (line: string, names: readonly string[], early = false) =>
    jsonRows(kernels, [line], names, early)[0];

  it.each<[string, Fields]>([
    ['{"a":"x"}', { a: [plain, "x"] }],
    [' { "a" : "x" , "b" : 5 }\n', { a: [plain, "x"], b: [plain, "5"] }],
    ['{"a":"x\\"y","b":-0}', { a: [coded, 'x\\"y'], b: [plain, "-0"] }],
    ['{"a":1.50,"b":true}', { a: [plain, "1.50"], b: [plain, "true"] }],
    [
      '{"a":false,"b":12345678901234567890}',
      { a: [plain, "false"], b: [plain, "12345678901234567890"] },
    ],
    ['{"a":"","b":1e5}', { a: [plain, ""], b: [plain, "1e5"] }],
    ['{"a":null,"b":[1,"]",{"a":1}]}', {}],
    ['{"a":null,"a":[],"a":{},"a":"late"}', { a: [plain, "late"] }],
    ['{"a":"first","a":"second"}', { a: [plain, "first"] }],
    ['{"a":{"b":{"c":"deep"}}}', { a_b_c: [plain, "deep"] }],
    ['{"a.b":{"c":"deep"}}', { a_b_c: [plain, "deep"] }],
    ['{"a":{"b-c":"deep"}}', { a_b_c: [plain, "deep"] }],
    ['{"a b c":1,"a":{"b":{"c":2}}}', { a_b_c: [plain, "1"] }],
    ['{"a":{"x":1},"b":2}', { b: [plain, "2"] }],
    ['{"x":{"a":1},"a":2}', { a: [plain, "2"] }],
    ['{"9l":1}', { _9l: [plain, "1"] }],
    ['{"_9l":1}', { _9l: [plain, "1"] }],
    ['{"n":{"9l":1}}', { n_9l: [plain, "1"] }],
    ['{"9":{"l":1}}', { _9_l: [plain, "1"] }],
    ['{"":{"a":1},"b":2}', { a: [plain, "1"], b: [plain, "2"] }],
    ['{"":5}', {}],
    ['{"a":1,}', { a: [plain, "1"] }],
    ['{"a":1} trailing', { a: [plain, "1"] }],
    ["{}", {}],
    ['{"a_rather_long_name_with-dashes":1}', { a_rather_long_name_with_dashes: [plain, "1"] }],
    [
      '{"a_rather_long_name":{"with-dashes":"x"}}',
      { a_rather_long_name_with_dashes: [plain, "x"] },
    ],
    [`{"x":"${"é".repeat(30)}","a":"\xff"}`, { a: [coded, "\xff"] }],
    [`{"x":{"y":"}","z":"${"\\\\".repeat(9)}"},"a":1}`, { a: [plain, "1"] }],
    [`{"x":[${'["[\\"",1],'.repeat(20)}{}],"a":1}`, { a: [plain, "1"] }],
  ])("reads %j", (line, want) => {
    const names = ["a", "b", "a_b_c", "_9l", "n_9l", "_9_l", "a_rather_long_name_with_dashes"];
    expect(one(line, names)).toEqual({ isRead: true, fields: want });
    expect(one(line, names, true)).toEqual({ isRead: true, fields: want });
  });

  it.each([
    "",
    "[1,2,3]",
    "42",
    "plain text",
    "{",
    '{"unterminated":"',
    '{"a":1,"b',
    '{"a":1,"b"',
    '{"a":1,"b":',
    '{"a":1',
    '{"a":1,',
    '{"a":1 "b":2}',
    '{"a":1,b:2}',
    '{"a":1,"b":nul}',
    '{"a":1,"b":}',
    '{"a":1,"b":[1,2}',
    '{"a":1,"x":{"b":2',
    '{"a":1,"x":{"b"}}',
    '{"a":1,"ünï":2}',
    '{"a":1,"\\u0062":2}',
    '{"a":1," b":2}',
    `{"a":1,"b":${'{"b":'.repeat(64)}2${"}".repeat(65)}`,
  ])("does not judge %j", (line) => {
    expect(one(line, ["a", "b"])).toEqual({ isRead: false, fields: {} });
  });

  it("leaves a line once it has all fields, and objects without any", () => {
    expect(one('{"a":1,"b":2,broken', ["a", "b"], true)?.isRead).toBe(true);
    expect(one('{"x":{broken},"a":1}', ["a"], true)?.isRead).toBe(true);
    expect(one('{"x":{broken},"a":1}', ["a"])?.isRead).toBe(false);
  });

  it("keeps rows apart", () => {
    const lines = ['{"a":"x', '{"a":1}', "", '{"b":"', '{"a":"}"}', '{"a', '":2}'];
    const found = jsonRows(kernels, lines, ["a"], false).map(({ fields }) => fields.a?.[1]);
    expect(found).toEqual([undefined, "1", undefined, undefined, "}", undefined, undefined]);
  });

  it("reads only the selected rows", () => {
    const bytes = Buffer.from('{"a":1}{"a":2}{"a":3}{"a":4}');
    const offsets = Uint32Array.of(0, 7, 14, 21, 28);
    const out = fieldColumns(1, 4);
    const selection = { rows: Uint32Array.of(1, 3, 0), count: 2 };
    kernels.scanJsonFields(bytes, offsets, selection, ["a"], out, { complete: true, enough: 0 });
    expect([...out.start.subarray(0, 2)]).toEqual([12, 26]);
  });

  it("leaves a line when it has enough of the fields", () => {
    const bytes = Buffer.from('{"a":1,"b":2,broken');
    const out = fieldColumns(2, 1);
    const selection = { rows: Uint32Array.of(0), count: 1 };
    const input = [bytes, Uint32Array.of(0, bytes.length), selection, ["a", "b"], out] as const;
    kernels.scanJsonFields(...input, { complete: false, enough: 1 });
    expect([...out.isRead, ...out.kind]).toEqual([1, plain, fieldKind.absent]);
    kernels.scanJsonFields(...input, { complete: false, enough: 0 });
    expect([...out.isRead, ...out.kind]).toEqual([0, fieldKind.absent, fieldKind.absent]);
  });

  it("takes as many names as a mask has bits", () => {
    const names = Array.from({ length: 32 }, (_, i) => `f${i}`);
    const line = JSON.stringify(Object.fromEntries(names.map((name) => [name, name])));
    const want = Object.fromEntries(names.map((name) => [name, [plain, name]]));
    expect(one(line, names, true)?.fields).toEqual(want);
    expect(() => one(line, [...names, "more"])).toThrow("33 fields asked for");
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
    expect(row?.fields).toEqual({ a: [coded, 'esc \\"q\\" \\u00e9'], b: [plain, "plain"] });
  });

  it("keeps empty values when told", () => {
    const keepEmpty = true;
    expect(values('a= b="" c', { keepEmpty })).toEqual({ a: "", b: "", c: "" });
    expect(values("a= a=2", { keepEmpty })).toEqual({ a: "" });
    expect(values("a=1 a=2 a", { keepEmpty, lastWins: true })).toEqual({ a: "" });
    expect(values("a=1 b=1 a=2", { lastWins: true })).toEqual({ a: "2", b: "1" });
  });

  it("leaves a line when it has enough of the fields", () => {
    expect(values("a=1 b=2 a=3", { lastWins: true, enough: 3 })).toEqual({ a: "1", b: "2" });
    expect(values("a=1 b=2 c==", { strict: true, enough: 3 })).toEqual({ a: "1", b: "2" });
  });

  it.each(["a=1 b==2 c=3", 'a=1 "b"=2 c=3', "a=1 =2 c=3", 'a=1 b="x', 'a=1 x="\\x"'])(
    "does not judge %j when strict",
    (line) => {
      expect(logfmtRows(kernels, ["a=1 b=2", line], names, { strict: true })).toEqual([
        { isRead: true, fields: { a: [plain, "1"], b: [plain, "2"] } },
        { isRead: false, fields: {} },
      ]);
    },
  );

  it("does not judge keys beyond ASCII", () => {
    expect(logfmtRows(kernels, ["a=1 \xfc=2"], names)[0]).toEqual({
      isRead: false,
      fields: {},
    });
  });
});
