import fc from "fast-check";
import type { PlainRow } from "../../testing/memory-block.js";

/** Names of labels and fields, such as clash, and such as must be sanitised. */
export const name = fc.constantFrom(
  "a",
  "b",
  "c",
  "app",
  "level",
  "a_b",
  "user",
  "app_extracted",
  "__error__",
);

const word = fc.constantFrom(
  "",
  "x",
  "error",
  "info",
  "10",
  "2.5",
  "1e3",
  "abc",
  "5ms",
  "1h30m",
  "10KB",
  "2KiB",
  "10.0.0.1",
  "::1",
  "ü",
  "a b",
  "1_0",
  "-3",
);

const jsonScalar = fc.oneof(
  word.map((text) => JSON.stringify(text)),
  fc.constantFrom(
    "1",
    "-2.5",
    "true",
    "false",
    "null",
    "nul",
    '"q\\u00e9\\n"',
    '"bad\\q"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"\ufffd"',
    '"open',
    "1x",
    "",
  ),
);

const { jsonValue } = fc.letrec<{ jsonValue: string; jsonObject: string }>((tie) => ({
  jsonValue: fc.oneof(
    { depthSize: "small", maxDepth: 3 },
    jsonScalar,
    fc.array(tie("jsonValue"), { maxLength: 3 }).map((items) => `[${items.join(",")}]`),
    tie("jsonObject"),
  ),
  jsonObject: fc
    .array(
      fc.tuple(
        fc.constantFrom(
          "a",
          "b",
          "c",
          "level",
          "app",
          "user",
          "a.b",
          "9x",
          "ü",
          " k ",
          "\\u0061",
          "_entry",
          "",
          "bad\\q",
        ),
        fc.constantFrom(":", ":", ":", " : ", ""),
        tie("jsonValue"),
      ),
      { maxLength: 5 },
    )
    .map((members) => `{${members.map(([k, colon, v]) => `"${k}"${colon}${v}`).join(",")}}`),
}));

const pair = fc.tuple(
  fc.constantFrom("a", "b", "c", "level", "app", "user", "a.b", "9x", "ü", "=", '"q"', "flag", "x"),
  fc.constantFrom("=", "=", "=", "", " = ", "=="),
  fc.oneof(
    word,
    fc.constantFrom(
      '"two words"',
      '"esc \\" \\n"',
      '"open',
      '"bad \\q"',
      '"\\ud800"',
      '"\ttab \\n"',
      '"a"b',
      "\ufffd",
      "'s'",
    ),
  ),
);

const logfmtLine = fc
  .array(pair, { maxLength: 6 })
  .map((pairs) => pairs.map((parts) => parts.join("")).join(" "));

/** Texts that are hard on parsers. */
const text = fc
  .array(
    fc.constantFrom(
      "error",
      "ERROR",
      "info",
      " ",
      "<",
      ">",
      "-",
      "10.0.0.1",
      "256.1.1.1",
      "::1",
      "\u001b[31m",
      "\u001b[1;33m",
      "\u001b]0;x\u0007",
      "\u009b2K",
      "\u001b;",
      "ü",
      "😀",
      "a",
      "x",
      "\n",
      "took 5ms",
      "=",
      "ſ",
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

/** A line of any format, whole or not. */
export const line = fc.oneof(
  jsonValue,
  jsonValue.chain((full) => fc.nat(full.length).map((end) => full.slice(0, end))),
  logfmtLine,
  text,
);

/** A row with its labels and metadata. */
export const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.constantFrom({ app: "x" }, { app: "y", level: "warn" }, { env: "p", a: "1" }),
  ts: fc.nat(1_000_000_000).map((ns) => 1_700_000_000_000_000_000n + BigInt(ns)),
  line,
  metadata: fc.dictionary(fc.constantFrom("user", "level", "a", "trace", "__error__"), word, {
    maxKeys: 3,
  }),
});
