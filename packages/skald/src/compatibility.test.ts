import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "@jest/globals";
import { wholeApi } from "./index.js";

const packages = new URL("../../", import.meta.url);
const page = readFileSync(new URL("../docs/compatibility.md", packages), "utf8");

/** What stands in backquotes, by endpoint. */
const namedBy = new Map<string, Set<string>>();
for (const [, endpoint = "", what = ""] of page.matchAll(/^\| ([A-Z, ]+ `[^`]+`) \| (.*?) \| /gm)) {
  const named = namedBy.get(endpoint) ?? new Set();
  namedBy.set(endpoint, named);
  for (const [, name = ""] of what.matchAll(/`([^`]+)`/g)) named.add(name);
}

it.each(
  wholeApi().map(({ methods, paths, docs }) => [`${methods.join(", ")} \`${paths[0]}\``, docs]),
)("%s is there with all its parameters and statuses", (endpoint, docs) => {
  if (typeof docs !== "object") throw new Error("nothing is known about it");
  const names = (docs.params ?? []).map(({ name }) => name);
  const statuses = Object.keys({ ...docs.answers, ...docs.errors });
  expect([...(namedBy.get(String(endpoint)) ?? [])].sort()).toEqual([...names, ...statuses].sort());
});

it("names tests that are there, and no endpoint that is not", () => {
  const files = [...page.matchAll(/`([\w./-]+\.test\.ts)`/g)].map(([, file = ""]) => file);
  expect(files.filter((file) => !existsSync(new URL(file, packages)))).toEqual([]);
  const served = wholeApi().map(({ methods, paths }) => `${methods.join(", ")} \`${paths[0]}\``);
  expect([...namedBy.keys()].filter((endpoint) => !served.includes(endpoint))).toEqual([]);
});
