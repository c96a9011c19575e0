import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import * as field from "./field.js";
import { expandEnv, loadSettings } from "./load-settings.js";
import { readSchema } from "./settings.js";
import { nearest } from "./undeclared.js";
import { formatDurationMs, formatSizeBytes, parseDurationMs, parseSizeBytes } from "./value.js";

const item = field.section("", { name: field.text("", "name") });
const root = readSchema(
  field.section("", {
    a: field.section("A.", {
      wait: field.duration("1s", "", "a.wait"),
      on: field.toggle(false, "", "a.on"),
    }),
    list: field.list([], "", "list"),
    items: field.sections(item, ""),
  }),
);
const plan = {
  root,
  ignored: [{ why: "", keys: ["named.*", "-named.*"] }],
  defaultYaml: "",
  usage: "",
  version: "",
  targets: "",
  derive: () => [],
  check: () => ({ problems: [], warnings: [] }),
};

/** Texts that are nearly YAML of the schema above. */
const yaml = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "a",
        "wait",
        "on",
        "list",
        "items",
        "named",
        "name",
        ": ",
        "\n",
        "\n  ",
        "- ",
      ),
      fc.constantFrom(
        "{",
        "}",
        "[",
        "]",
        ",",
        "&x ",
        "*x",
        "<<",
        "!!int ",
        "| ",
        '"',
        "#",
        "1s",
        "yes",
      ),
      fc.string({ maxLength: 4 }),
    ),
    { maxLength: 30 },
  )
  .map((parts) => parts.join(""));

describe("values", () => {
  it("print durations that are read back the same", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 43 }), (ms) => {
        expect(parseDurationMs(formatDurationMs(ms))).toEqual({ value: ms });
      }),
    );
  });

  it("print sizes that are read back the same", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 45 }), (bytes) => {
        expect(parseSizeBytes(String(formatSizeBytes(bytes)))).toEqual({ value: bytes });
      }),
    );
  });
});

describe("whatever a user writes", () => {
  it("ends in a configuration or in errors, never in an exception", () => {
    fc.assert(
      fc.property(
        yaml,
        fc.array(fc.oneof(yaml, fc.constantFrom("-a.on", "-list=x"))),
        (text, argv) => {
          const surroundings = { env: {}, readFile: () => text };
          const loaded = loadSettings(plan, ["-config.file=f", ...argv], surroundings);
          if (loaded.kind === "exit" && loaded.code !== 0)
            expect(loaded.text).toMatch(/^(?:MULTIPLE CONFIG|CONFIG ERROR: )/);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("expands without an exception, and leaves texts without ${ alone", () => {
    fc.assert(
      fc.property(yaml, (text) => {
        expect(expandEnv(text.replaceAll("${", ""), {}).text).toBe(text.replaceAll("${", ""));
        expandEnv(`\${${text}}`, {});
      }),
    );
  });

  it("has its own nearest word when it is one of the words", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1 }), (words) => {
        expect(nearest(words[0] as string, words)).toBe(words[0]);
      }),
    );
  });
});
