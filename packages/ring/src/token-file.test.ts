import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { deleteTokenFile, readTokenFile, writeTokenFile } from "./lifecycler.js";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skald-tokens-"));
});
afterAll(() => rm(directory, { recursive: true }));

it("keeps tokens, also in a directory that is not there yet", async () => {
  const path = join(directory, "below", "a.tokens");
  await writeTokenFile(path, Uint32Array.of(1, 2, 4_294_967_295));
  expect(await readFile(path, "utf8")).toBe('{"tokens":[1,2,4294967295]}\n');
  expect(await readTokenFile(path)).toEqual(Uint32Array.of(1, 2, 4_294_967_295));
  await deleteTokenFile(path);
  await deleteTokenFile(path);
  expect(await readTokenFile(path)).toBeUndefined();
});

it("leaves a file of a newer version as it is", async () => {
  const path = join(directory, "newer.tokens");
  await writeFile(path, '{"version":2,"tokens":[1]}');
  await expect(readTokenFile(path)).rejects.toMatchObject({ code: "newer_version" });
  await writeFile(path, '{"version":1,"tokens":[1]}');
  expect(await readTokenFile(path)).toEqual(Uint32Array.of(1));
});

it.each([
  ["cut short", '{"tokens":[1,2'],
  ["empty", ""],
  ["without tokens", '{"tokens":[]}'],
  ["with something else", '{"tokens":[1,"a"]}'],
  ["with a token too large", '{"tokens":[4294967296]}'],
])("takes a file that is %s for none", async (_, text) => {
  const path = join(directory, "b.tokens");
  await writeFile(path, text);
  expect(await readTokenFile(path)).toBeUndefined();
});
