import { describe, expect, it } from "@jest/globals";
import { type LogResult, linesOf } from "@skald/logql";
import { labelsFromObject, paddingBytes } from "@skald/model";
import { detectFields } from "./detected-fields.js";

interface Row {
  readonly line: string;
  readonly stream?: Record<string, string>;
  readonly metadata?: Record<string, string>;
  readonly parsed?: Record<string, string>;
}

function resultOf(rows: readonly Row[]): LogResult {
  const text = rows.map(({ line }) => line).join("");
  const offsets = new Uint32Array(rows.length + 1);
  rows.forEach(({ line }, i) => {
    offsets[i + 1] = offsets[i]! + Buffer.byteLength(line);
  });
  const labels = ({ stream = { app: "a" }, metadata = {}, parsed = {} }: Row) => ({
    labels: labelsFromObject({ ...stream, ...metadata, ...parsed }),
    categories: {
      stream: labelsFromObject(stream),
      structuredMetadata: labelsFromObject(metadata),
      parsed: labelsFromObject(parsed),
    },
  });
  return {
    kind: "streams",
    rowCount: rows.length,
    timestamps: new BigInt64Array(rows.length),
    labelSet: Uint32Array.from(rows, (_, i) => i),
    lines: linesOf({
      bytes: Buffer.concat([Buffer.from(text), Buffer.alloc(paddingBytes)]),
      offsets,
    }),
    labels: rows.map(labels),
    warnings: [],
  };
}

/** `label:type:parsers:path:values` of each field. */
const told = (rows: readonly Row[], limit = 100) =>
  detectFields(resultOf(rows), limit)
    .map(({ label, type, parsers, jsonPath = [], values }) =>
      [label, type, parsers.join("+"), jsonPath.join("/"), [...values].join("|")].join(":"),
    )
    .sort();

describe("detectFields", () => {
  it.each<[string, Row[], string[]]>([
    ["no rows", [], []],
    ["a line without fields", [{ line: "nothing here" }], []],
    [
      "JSON, with the way to each value",
      [{ line: '{"status":200,"http":{"x-id":"é\\n"},"list":[1],"none":null}' }],
      ["http_x_id:string:json:http/x-id:é\n", "status:int:json:status:200"],
    ],
    ["logfmt", [{ line: "took=5ms flag empty=" }], ["took:duration:logfmt::5ms"]],
    ["one field in both", [{ line: '{"n":1}' }, { line: "n=2" }], ["n:int:json+logfmt:n:1|2"]],
    [
      "structured metadata",
      [
        { line: "x", metadata: { trace: "t1" } },
        { line: "x", metadata: { trace: "t1" } },
      ],
      ["trace:string:::t1"],
    ],
    ["a name that the stream has", [{ line: '{"app":"b"}' }], ["app_extracted:string:json:app:b"]],
    [
      "what the query parsed, but not its errors",
      [{ line: '{"a":"1', parsed: { a: "1", __error__: "JSONParserErr" } }],
      ["a:int:logfmt::1"],
    ],
    [
      "the type of most values",
      [{ line: "v=1KB s=up" }, { line: "v=2MB s=1" }, { line: "v=7 s=down" }],
      ["s:string:logfmt::up|1|down", "v:bytes:logfmt::1KB|2MB|7"],
    ],
    [
      "numbers, whole and not",
      [{ line: "v=1" }, { line: "v=2" }, { line: "v=1.5", stream: { app: "c" } }],
      ["v:float:logfmt::1|2|1.5"],
    ],
  ])("finds in %s", (_case, rows, want) => {
    expect(told(rows)).toEqual(want);
  });

  it("finds no more fields than asked for", () => {
    expect(told([{ line: "a=1 b=2 c=3" }], 2)).toHaveLength(2);
  });
});
