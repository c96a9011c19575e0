import { describe, expect, it } from "@jest/globals";
import { mutate, seededRandom, testRuns } from "@skald/testkit";
import fc from "fast-check";
import { loadKernels } from "./load.js";
import { fieldKind } from "./shared/fields.js";
import { jsonKeyRows, jsonRows, logfmtRows, patternRows } from "./testing/field-rows.js";

const twin = loadKernels("twin");
const wasm = loadKernels("wasm");
const names = ["a", "b", "a_b", "a_a_b", "_1", "long_name_of_a_field", "b_1"];

const key = fc.constantFrom(
  "a",
  "b",
  "1",
  "a.b",
  "a-b",
  "x y",
  "",
  "long name of a field",
  "other",
  " a",
  "é",
);
const scalar = fc.oneof(
  fc.constantFrom(
    "text",
    "",
    'with "quotes" and \\',
    "{}[],:",
    "ünï",
    "a text that is longer than sixteen bytes",
  ),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);
const { object } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
  object: fc.dictionary(key, tie("value"), { maxKeys: 6, noNullPrototype: true }),
}));
const latin1 = (text: string) => Buffer.from(text).toString("latin1");

/** Label names and texts of the scalars in an object, the first of equal names; undefined with a key that is odd. */
function flatten(
  value: object,
  prefix: string,
  into: Map<string, string>,
): Map<string, string> | undefined {
  for (const [key, item] of Object.entries(value)) {
    if (key !== key.trim() || /[^\x20-\x7e]/.test(key)) return undefined;
    const spelled = key.replace(/[^A-Za-z0-9_]/g, "_");
    const name = prefix === "" ? spelled.replace(/^(?=\d)/, "_") : `${prefix}_${spelled}`;
    if (Array.isArray(item) || item === null) continue;
    if (typeof item === "object") {
      if (flatten(item, name, into) === undefined) return undefined;
    } else if (name !== "" && !into.has(name)) into.set(name, String(item));
  }
  return into;
}

describe("json fields", () => {
  it("are those of JSON.parse", () => {
    fc.assert(
      fc.property(object, fc.constantFrom("", " "), (value, indent) => {
        const want = flatten(value, "", new Map());
        const line = latin1(JSON.stringify(value, null, indent));
        for (const kernels of [twin, wasm]) {
          const [row] = jsonRows(kernels, [line], names, false);
          // An odd key makes a row unread only where a field may be.
          if (row?.isRead === false) expect(want).toBeUndefined();
          if (want === undefined) continue;
          const got = Object.entries(row!.fields).map(([name, [kind, raw]]) => {
            const text = Buffer.from(raw, "latin1").toString();
            return [name, kind === fieldKind.coded ? JSON.parse(`"${text}"`) : text];
          });
          const wanted = names.flatMap((name) => (want.has(name) ? [[name, want.get(name)]] : []));
          expect([row?.isRead, got]).toEqual([true, wanted]);
        }
      }),
      { numRuns: testRuns(200) },
    );
  });

  it("are the same in both forms for broken lines", () => {
    fc.assert(
      fc.property(
        fc.array(object, { minLength: 1, maxLength: 6 }),
        fc.nat(),
        fc.boolean(),
        (values, seed, early) => {
          const random = seededRandom(seed);
          const lines = values.map((value) => {
            const line = Buffer.from(JSON.stringify(value));
            return Buffer.from(random(4) === 0 ? line : mutate(line, random)).toString("latin1");
          });
          expect(jsonRows(wasm, lines, names, early)).toEqual(jsonRows(twin, lines, names, early));
        },
      ),
      { numRuns: testRuns(600) },
    );
  });
});

describe("json keys", () => {
  const keys = ["a", "a.b", "x y", "", "long name of a field", "none"];

  it("are those of JSON.parse, as they stand", () => {
    fc.assert(
      fc.property(object, fc.constantFrom("", " "), fc.boolean(), (value, indent, early) => {
        const line = JSON.stringify(value, null, indent);
        const want = keys.flatMap((wanted) => {
          if (!Object.hasOwn(value, wanted)) return [];
          const item = value[wanted];
          return [[wanted, item === null ? "" : item]];
        });
        for (const kernels of [twin, wasm]) {
          const [row] = jsonKeyRows(kernels, [latin1(line)], keys, early);
          const got = Object.entries(row!.fields).map(([name, [kind, raw]]) => {
            const text = Buffer.from(raw, "latin1").toString();
            const item = value[name];
            if (kind === fieldKind.coded) return [name, JSON.parse(`"${text}"`)];
            const isText = typeof item === "string" || item === null;
            return [name, isText ? text : JSON.parse(text)];
          });
          expect([row?.isRead, got]).toEqual([true, want]);
        }
      }),
      { numRuns: testRuns(200) },
    );
  });

  it("are the same in both forms for broken lines and equal keys", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(object, object), { minLength: 1, maxLength: 6 }),
        fc.nat(),
        fc.boolean(),
        (values, seed, early) => {
          const random = seededRandom(seed);
          const lines = values.map(([one, other]) => {
            const joined = `${JSON.stringify(one).slice(0, -1)},${JSON.stringify(other).slice(1)}`;
            const line = Buffer.from(random(4) === 0 ? JSON.stringify(one) : joined);
            return Buffer.from(random(3) === 0 ? line : mutate(line, random)).toString("latin1");
          });
          expect(jsonKeyRows(wasm, lines, keys, early)).toEqual(
            jsonKeyRows(twin, lines, keys, early),
          );
        },
      ),
      { numRuns: testRuns(600) },
    );
  });
});

describe("captures of a pattern", () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "b", " ", "-", "ü"), minLength: 1, maxLength: 3 }),
    fc.constantFrom("a text that is longer than sixteen bytes", "aaaaaaaaaaaaaaaaaaab"),
  );
  const lines = fc.array(
    fc.array(text, { maxLength: 12 }).map((parts) => latin1(parts.join(""))),
    { maxLength: 6 },
  );
  const names = ["one", "two", "three", "four", "five"];
  const pattern = fc
    .tuple(
      fc.oneof(fc.constant(""), text),
      fc.array(text, { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.nat(31),
    )
    .map(([first, ends, takesRest, wanted]) => ({
      texts: [first, ...ends, ...(takesRest ? [""] : [])],
      captures: names
        .slice(0, ends.length + (takesRest ? 1 : 0))
        .map((name, i) => ((wanted >> i) & 1 ? name : "")),
    }));

  it("are what stands between its texts, in both forms", () => {
    fc.assert(
      fc.property(lines, pattern, (rows, { texts, captures }) => {
        const got = patternRows(wasm, rows, texts, captures);
        expect(got).toEqual(patternRows(twin, rows, texts, captures));
        expect(got.map(({ fields }) => fields)).toEqual(
          rows.map((row) => captured(row, texts.map(latin1), captures)),
        );
      }),
      { numRuns: testRuns(800) },
    );
  });

  /** Splits a row at the texts, one after the other. */
  function captured(row: string, [first, ...ends]: string[], captures: readonly string[]) {
    const fields: Record<string, [number, string]> = {};
    if (row === "" || !row.startsWith(first!)) return fields;
    let rest = row.slice(first!.length);
    for (const [i, end] of ends.entries()) {
      const parts = end === "" ? [rest] : rest.split(end);
      if (captures[i] !== "") fields[captures[i]!] = [fieldKind.plain, parts[0]!];
      if (parts.length === 1) break;
      rest = parts.slice(1).join(end);
    }
    return fields;
  }
});

describe("logfmt fields", () => {
  const piece = fc.constantFrom(
    ...["a", "b", "1", "a.b", "long_name_of_a_field", "text", "a text that is long", "é", "\xff"],
    ...[
      "=",
      "=",
      "=",
      " ",
      " ",
      '"',
      '="',
      '" ',
      "\\",
      '\\"',
      "\\n",
      "\\u00e9",
      "\\x",
      "\t",
      "\u0001",
      ",",
    ],
  );
  const line = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));

  it("are the same in both forms", () => {
    const options = fc.record({
      strict: fc.boolean(),
      keepEmpty: fc.boolean(),
      lastWins: fc.boolean(),
      enough: fc.constantFrom(0, 1, 5, 2 ** names.length - 1),
    });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), options, (lines, flags) => {
        const rows = lines.map(latin1);
        expect(logfmtRows(wasm, rows, names, flags)).toEqual(logfmtRows(twin, rows, names, flags));
      }),
      { numRuns: testRuns(800) },
    );
  });

  it("are what was written", () => {
    const word = fc.stringMatching(/^[a-z0-9/.:-]{1,20}$/);
    const text = fc.string({ maxLength: 30 }).map((value) => JSON.stringify(value));
    const pairs = fc.dictionary(fc.constantFrom("a", "b", "a_b", "other"), fc.oneof(word, text));
    fc.assert(
      fc.property(pairs, (wanted) => {
        const written = Object.entries(wanted);
        const [row] = logfmtRows(wasm, [written.map((pair) => pair.join("=")).join(" ")], names);
        const got = Object.entries(row!.fields).map(([name, [, raw]]) => [name, raw]);
        const want = written.map(([name, value]) => [name, value.replace(/^"(.*)"$/s, "$1")]);
        const kept = want.filter(([name, value]) => names.includes(name!) && value !== "");
        expect(Object.fromEntries(got)).toEqual(Object.fromEntries(kept));
      }),
    );
  });
});
