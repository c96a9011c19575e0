import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { describeObjectStore } from "../testing/object-store.suite.js";
import { FsStore } from "./fs-store.js";

const made: string[] = [];
const makeDirectory = () => {
  const directory = mkdtempSync(join(tmpdir(), "skald-fs-store-"));
  made.push(directory);
  return directory;
};
afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true });
});
const { signal } = new AbortController();

describeObjectStore("fs store", async () => {
  const directory = makeDirectory();
  return { store: new FsStore(join(directory, "objects")), directory };
});

it("leaves no unfinished files and no empty directories", async () => {
  const root = makeDirectory();
  const store = new FsStore(root);
  await store.put("a/b/c", Buffer.from("1"), { signal });
  await store.put("a/b/c", Buffer.from("2"), { signal, ifAbsent: true });
  await store.delete("a/b/c", { signal });
  expect(readdirSync(root)).toEqual([".skald-store", ".tmp"]);
  await store.close();
  expect(readdirSync(join(root, ".tmp"))).toEqual([]);
});

it("removes what processes that are gone left unfinished, and nothing of those that live", async () => {
  const root = makeDirectory();
  const living = new FsStore(root);
  await living.put("a", Buffer.from("1"), { signal });
  const folders = readdirSync(join(root, ".tmp"));
  writeFileSync(join(root, ".tmp", folders[0] as string, "being written"), "half");
  const dead = join(root, ".tmp", randomUUID());
  mkdirSync(dead);
  for (const name of ["lock", "lock.owner", randomUUID()]) writeFileSync(join(dead, name), "");
  writeFileSync(join(root, ".tmp", randomUUID()), "as older versions left it");
  writeFileSync(join(root, ".tmp", "note of somebody else"), "");
  await new FsStore(root).open();
  expect(readdirSync(join(root, ".tmp")).sort()).toEqual([...folders, "note of somebody else"]);
  expect(readdirSync(join(root, ".tmp", folders[0] as string))).toContain("being written");
  await living.close();
});

it("neither lists nor gives what a crash left unfinished", async () => {
  const root = makeDirectory();
  const store = new FsStore(root);
  await store.put("a", Buffer.from("1"), { signal });
  writeFileSync(join(root, ".tmp", "left"), "half");
  const keys: string[] = [];
  for await (const { key } of store.list("", { signal })) keys.push(key);
  expect(keys).toEqual(["a"]);
  await expect(store.get(".tmp/left", { signal })).rejects.toThrow("cannot exist");
});

it("keeps an object when the file it was made from is removed", async () => {
  const directory = makeDirectory();
  const store = new FsStore(join(directory, "objects"));
  const path = join(directory, "file");
  writeFileSync(path, "body");
  await store.putFile("kept", path, { signal });
  rmSync(path);
  expect(Buffer.from(await store.get("kept", { signal })).toString()).toBe("body");
  expect(existsSync(path)).toBe(false);
});

it("says that the directory cannot be used", async () => {
  const directory = makeDirectory();
  const path = join(directory, "file");
  writeFileSync(path, "no directory");
  const store = new FsStore(path);
  await expect(store.put("a", Buffer.from("1"), { signal })).rejects.toMatchObject({
    code: "unavailable",
  });
});
