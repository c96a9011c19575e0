import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { leavesOf, unusedReason } from "@skald/runtime/config";
import { configRoot } from "./load-config.js";
import { keyNotes } from "./notes.js";

/** Keys whose help says that they change nothing. */
const acceptedOnly = ["analytics.reporting_enabled", "storage_config.use_thanos_objstore"];

/** All that the program reads of its configuration is read in its composition root, or when it is derived or checked. */
function wordsOfProgram(): Set<string> {
  const directory = new URL("../../src/", import.meta.url);
  const names = ["", "wiring/", "http/"].flatMap((folder) =>
    readdirSync(new URL(folder || ".", directory))
      .filter((name) => /(?<!\.test)\.ts$/.test(name))
      .map((name) => folder + name),
  );
  const files = [...names, "config/derive.ts", "config/check.ts"];
  const text = files.map((name) => readFileSync(new URL(name, directory), "utf8")).join("\n");
  return new Set(text.match(/\b[a-z][a-z0-9_]*\b/g));
}

describe("keyNotes", () => {
  it("name every key that the program does not read", () => {
    const words = wordsOfProgram();
    const silent = [...leavesOf(configRoot)]
      .map((leaf) => leaf.path)
      .filter((path) => !words.has(path.split(".").at(-1) as string))
      .filter((path) => unusedReason(path, keyNotes.unused) === undefined)
      .filter((path) => !acceptedOnly.includes(path));
    expect(silent).toEqual([]);
  });

  it("match keys that are there", () => {
    const paths = [...leavesOf(configRoot)].map((leaf) => leaf.path);
    const rows = keyNotes.unused.flatMap((row) =>
      (row.keys ?? [undefined]).map((key) => (key === undefined ? row : { ...row, keys: [key] })),
    );
    const dead = rows.filter((row) => !paths.some((path) => unusedReason(path, [row])));
    expect(dead).toEqual([]);
  });
});
