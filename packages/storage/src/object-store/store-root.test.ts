import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { FsStore } from "./fs-store.js";

const made: string[] = [];
afterAll(() => {
  for (const directory of made) rmSync(directory, { recursive: true });
});
const { signal } = new AbortController();

/** A store with one object, and its places. */
async function makeStore() {
  const directory = mkdtempSync(join(tmpdir(), "skald-store-root-"));
  made.push(directory);
  const root = join(directory, "mount", "chunks");
  const rememberIn = join(directory, "data", "store.json");
  const open = async (at = root) => {
    const store = new FsStore(at, { rememberIn });
    await store.open();
    return store;
  };
  const store = await open();
  await store.put("a/b", Buffer.from("body"), { signal });
  return { directory, root, rememberIn, store, open };
}

async function keysOf(store: FsStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("", { signal })) keys.push(key);
  return keys;
}

/** What each call answers. */
async function outcomes(store: FsStore): Promise<string[]> {
  const calls = [
    keysOf(store),
    store.get("a/b", { signal }),
    store.getRange("a/b", { offset: 0, length: 1 }, { signal }),
    store.stat("other", { signal }),
    store.put("c", Buffer.from("body"), { signal }),
    store.putFile("d", "/etc/hostname", { signal, ifAbsent: true }),
  ];
  const settled = await Promise.allSettled(calls);
  return settled.map((one) => (one.status === "fulfilled" ? "ok" : errorCodeOf(one.reason)));
}

const unavailable = Array(6).fill("unavailable");

describe("the root of a store", () => {
  it.each(["while the process runs", "before it starts"])(
    "that is gone %s makes the store unavailable until it is back",
    async (when) => {
      const { directory, root, open, ...first } = await makeStore();
      const aside = join(directory, "aside");
      renameSync(root, aside);
      const store = when === "before it starts" ? await open() : first.store;
      expect(await outcomes(store)).toEqual(unavailable);
      expect(existsSync(root)).toBe(false);
      mkdirSync(root);
      expect(await outcomes(store)).toEqual(unavailable);
      expect(readdirSync(root)).toEqual([]);
      await expect(keysOf(store)).rejects.toThrow(
        /^the object store in .*chunks is not there; mount it, or delete .*store.json to begin/,
      );
      rmSync(root, { recursive: true });
      renameSync(aside, root);
      expect(await outcomes(store)).toEqual(["ok", "ok", "ok", "not_found", "ok", "ok"]);
      expect(await keysOf(store)).toEqual(["a/b", "c", "d"]);
    },
  );

  it("that is another one's makes it unavailable too", async () => {
    const { root, store } = await makeStore();
    const other = await makeStore();
    rmSync(root, { recursive: true });
    renameSync(other.root, root);
    expect(await outcomes(store)).toEqual(unavailable);
    await expect(keysOf(store)).rejects.toThrow(/holds another object store: \S+, not \S+$/);
  });

  it("is made at the first start, and at that of another directory", async () => {
    const { root, rememberIn, open } = await makeStore();
    expect(await keysOf(await open())).toEqual(["a/b"]);
    const moved = await open(`${root}-2`);
    expect(await keysOf(moved)).toEqual([]);
    rmSync(rememberIn);
    rmSync(root, { recursive: true });
    expect(await keysOf(await open())).toEqual([]);
  });

  it("of an older version gets its marker, and one of another process is taken as it is", async () => {
    const { root, rememberIn, open, store } = await makeStore();
    rmSync(rememberIn);
    rmSync(join(root, ".skald-store"));
    const [a, b] = [new FsStore(root), new FsStore(root)];
    await Promise.all([a.open(), b.open(), open()]);
    for (const one of [a, b, await open()]) expect(await keysOf(one)).toEqual(["a/b"]);
    expect(await outcomes(store)).toEqual(unavailable);
    expect(readdirSync(root).filter((name) => name.startsWith(".skald"))).toHaveLength(1);
  });

  it("whose marker is damaged gets it back from a process that remembers it", async () => {
    const { root, open } = await makeStore();
    const marker = join(root, ".skald-store");
    const good = readFileSync(marker, "utf8");
    for (const damaged of ["", good.slice(0, 10), "{}", "null"]) {
      writeFileSync(marker, damaged);
      expect(await keysOf(await open())).toEqual(["a/b"]);
      expect(readFileSync(marker, "utf8")).toBe(good);
    }
    expect(readdirSync(root).filter((name) => name.startsWith(".skald"))).toHaveLength(1);
  });

  it.each([
    ["marker", ({ root }: { root: string }) => join(root, ".skald-store")],
    ["memory of it", ({ rememberIn }: { rememberIn: string }) => rememberIn],
  ])("whose %s is of a newer version is left as it is", async (_, pathOf) => {
    const made = await makeStore();
    const path = pathOf(made);
    const newer = readFileSync(path, "utf8").replace("{", '{"version":2,');
    writeFileSync(path, newer);
    const code = async () => keysOf(await made.open()).then(() => "", errorCodeOf);
    expect(await code().catch(errorCodeOf)).toBe("newer_version");
    expect(readFileSync(path, "utf8")).toBe(newer);
  });

  it("whose marker is damaged, and remembered nowhere, is unavailable", async () => {
    const { root } = await makeStore();
    writeFileSync(join(root, ".skald-store"), "no marker");
    const store = new FsStore(root);
    expect(await outcomes(store)).toEqual(unavailable);
    await expect(keysOf(store)).rejects.toThrow(/\.skald-store is damaged: write \{"id"/);
  });

  it("is learned anew from its marker by a process whose memory is damaged", async () => {
    const { directory, root, rememberIn, open } = await makeStore();
    const good = readFileSync(rememberIn, "utf8");
    writeFileSync(rememberIn, good.slice(0, 20));
    expect(await keysOf(await open())).toEqual(["a/b"]);
    expect(readFileSync(rememberIn, "utf8")).toBe(good);

    writeFileSync(rememberIn, "");
    renameSync(root, join(directory, "aside"));
    await expect(open()).rejects.toThrow(
      /chunks is not there; .* delete .*store.json, which is damaged/,
    );
    expect(existsSync(root)).toBe(false);
  });
});
