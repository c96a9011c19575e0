import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { loadKernels } from "./load.js";
import type { RowSelection } from "./shared/search.js";
import { defaultLevelFields, detect } from "./testing/level-lines.js";

const twin = loadKernels("twin");
const wasm = loadKernels("wasm");

/** Pieces of which lines of every format and their faults are made. */
const piece = fc.constantFrom(
  ...[
    "level",
    "Level",
    "lvl",
    "severity",
    "msg",
    "error",
    "ERR",
    "warn",
    "Warning",
    "info",
    "inf",
    "trace",
  ],
  ...[
    "critical",
    "fatal",
    "dbg",
    "debug",
    "x",
    "é",
    "\ud83d",
    "\u0000",
    "0",
    "-1.5",
    "true",
    "a.b",
  ],
  ...[
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "=",
    "==",
    '"',
    '\\"',
    "\\",
    ":",
    ",",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
  ],
  ...['":"', '","', '{"', '"}', '=" ', "|", "'", "!", "padding of a longer line, "],
);
const line = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
const objectLine = line.map((text) => `{${text}}`);

describe("levels", () => {
  it("are the same in both forms", () => {
    const lines = fc.array(fc.oneof(line, objectLine), { maxLength: 8 });
    fc.assert(
      fc.property(lines, fc.integer({ min: -1, max: 4 }), (rows, jsonMaxDepth) => {
        const options = { fields: defaultLevelFields, jsonMaxDepth };
        expect(detect(wasm, rows, options)).toEqual(detect(twin, rows, options));
      }),
      { numRuns: testRuns(500) },
    );
  });

  it("of well-formed objects are those of JSON.parse", () => {
    const value = fc.oneof(
      fc.constantFrom("info", "WARN", "nothing", "err"),
      fc.jsonValue({ maxDepth: 2 }),
    );
    const object = fc.dictionary(fc.constantFrom("level", "a", "lvl", "severity", "b"), value);
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("level", "x", "y"), fc.oneof(value, object)),
        (log) => {
          const options = { fields: ["level", "lvl", "severity"], jsonMaxDepth: 2 };
          const found = firstLevel(log, 2, options.fields);
          const [got] = detect(wasm, [JSON.stringify(log)], options);
          const codes: Readonly<Record<string, number>> = { info: 4, warn: 5, err: 6 };
          const code = codes[String(found).toLowerCase()];
          if (code !== undefined) expect(got).toBe(code);
        },
      ),
    );
  });
});

/** The first string field with one of the names, in the order of the text. */
function firstLevel(value: unknown, depth: number, names: readonly string[]): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth === 0)
    return undefined;
  for (const [key, item] of Object.entries(value)) {
    if (names.includes(key) && typeof item === "string") return item;
    const inner = firstLevel(item, depth - 1, names);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function columnOf(lines: readonly Uint8Array[]): { bytes: Uint8Array; offsets: Uint32Array } {
  const offsets = new Uint32Array(lines.length + 1);
  for (let i = 0; i < lines.length; i++) offsets[i + 1] = offsets[i]! + lines[i]!.length;
  return { bytes: Uint8Array.from(Buffer.concat(lines)), offsets };
}

describe("search", () => {
  /** Few letters, so that needles are found, and nearly found, often. */
  const letters = fc.string({ unit: fc.constantFrom("a", "b", "A", "é", "@", " "), maxLength: 70 });

  it.each([["twin"], ["wasm"]])("of the %s finds what includes finds", (form) => {
    const kernels = loadKernels(form);
    fc.assert(
      fc.property(
        fc.array(letters, { maxLength: 12 }),
        letters.map((text) => text.slice(0, 6)),
        fc.record({ ignoreCase: fc.boolean(), negate: fc.boolean() }),
        fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
        (lines, needle, options, chosen) => {
          const { bytes, offsets } = columnOf(lines.map((text) => Buffer.from(text)));
          const rows = lines.flatMap((_, row) => (chosen[row] ? [row] : []));
          const selection: RowSelection = { rows: Uint32Array.from(rows), count: rows.length };
          kernels.selectContains(
            bytes,
            offsets,
            lines.length,
            Buffer.from(needle),
            selection,
            options,
          );
          const fold = (text: string) => (options.ignoreCase ? text.replaceAll("A", "a") : text);
          const want = rows.filter(
            (row) => fold(lines[row]!).includes(fold(needle)) !== options.negate,
          );
          expect([...selection.rows.subarray(0, selection.count)]).toEqual(want);
        },
      ),
      { numRuns: testRuns(400) },
    );
  });

  it.each([
    ["a needle that is found late", `${"a".repeat(3000)}b`, "a".repeat(20_000)],
    ["a needle whose ends agree everywhere", `${"ab".repeat(1000)}aab`, "ab".repeat(20_000)],
    [
      "a needle that is nearly the text",
      `b${"a".repeat(4000)}`,
      `${"ba".repeat(10)}${"a".repeat(9000)}`,
    ],
  ])("is linear for %s", (_case, needle, text) => {
    const lines = [text, `${text}${needle}`, text, `x${needle.toUpperCase()}`].map((line) =>
      Buffer.from(line),
    );
    const { bytes, offsets } = columnOf(Array.from({ length: 16 }, () => lines).flat());
    for (const ignoreCase of [false, true]) {
      const [got, want] = [wasm, twin].map((kernels) => {
        const selection = { rows: Uint32Array.from({ length: 64 }, (_, row) => row), count: 64 };
        const options = { ignoreCase, negate: false };
        kernels.selectContains(bytes, offsets, 64, Buffer.from(needle), selection, options);
        return [...selection.rows.subarray(0, selection.count)];
      });
      expect(got).toEqual(want);
      expect(got!.length).toBeGreaterThanOrEqual(16);
    }
  });
});

describe("hashes", () => {
  it("are the same in both forms", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 150 }), { maxLength: 5 }), (lines) => {
        const { bytes, offsets } = columnOf(lines);
        const [got, want] = [wasm, twin].map((kernels) => {
          const columns = [new Uint32Array(lines.length), new Uint32Array(lines.length)] as const;
          kernels.hashRows(bytes, offsets, lines.length, ...columns);
          return columns;
        });
        expect(got).toEqual(want);
      }),
    );
  });
});
