import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { ChunkFiles, directoryFiles } from "./files.js";
import { TestStore } from "./testing/stores.js";

it("opens the files of a folder as paths, which threads read", async () => {
  const root = mkdtempSync(join(tmpdir(), "skald-loki-"));
  mkdirSync(join(root, "shop"));
  writeFileSync(join(root, "shop/one"), "1");
  expect(await directoryFiles(root).open("shop/one")).toBe(join(root, "shop/one"));
  await expect(directoryFiles(root).open("shop/two")).rejects.toMatchObject({ code: "not_found" });
  rmSync(root, { recursive: true });
});

it("learns how a store names its chunks, also from several at a time", async () => {
  const names = ["shop/a/1:2:3", "shop/a/4:5:6", "shop/a/7:8:9"] as const;
  const encode = (name: string) => `shop/a/${Buffer.from(name.slice(7)).toString("base64")}`;
  const store = new TestStore(new Map(names.map((name) => [encode(name), Buffer.from(name)])));
  const asked: string[] = [];
  store.open = (name) => {
    asked.push(name);
    return store.read(name);
  };
  const chunks = new ChunkFiles(store);
  await Promise.all([chunks.open(names[0]), chunks.open(names[1])]);
  asked.length = 0;
  expect(await chunks.open(names[2])).toEqual(Buffer.from(names[2]));
  expect(asked).toEqual([encode(names[2])]);
});
