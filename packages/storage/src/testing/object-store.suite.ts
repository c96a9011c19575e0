import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import type { ObjectStore } from "../object-store/object-store.js";

/** What every object store must do; each implementation's test calls it with a way to make an empty one. */
export function describeObjectStore(
  name: string,
  make: () => Promise<{ store: ObjectStore; directory: string }>,
): void {
  describe(name, () => {
    const { signal } = new AbortController();
    let store: ObjectStore;
    let directory: string;
    beforeEach(async () => {
      ({ store, directory } = await make());
    });

    const text = async (key: string) => Buffer.from(await store.get(key, { signal })).toString();
    const keys = async (prefix: string, after?: string) => {
      const found: string[] = [];
      const options = after === undefined ? { signal } : { signal, after };
      for await (const info of store.list(prefix, options)) found.push(info.key);
      return found;
    };
    const put = (key: string, body = key) => store.put(key, Buffer.from(body), { signal });
    const codeOf = async (call: Promise<unknown>) => {
      try {
        await call;
        return "no error";
      } catch (error) {
        // An abort's error comes from outside of Jest's realm, where it is no instance of Error.
        return (error as Error).name === "AbortError" ? "cancelled" : errorCodeOf(error);
      }
    };

    it("gives back what was put", async () => {
      expect(await put("a/b/c.parquet", "body")).toBe("stored");
      expect(await text("a/b/c.parquet")).toBe("body");
    });

    it("replaces an object", async () => {
      await put("a/b", "old");
      await put("a/b", "new one");
      expect(await text("a/b")).toBe("new one");
    });

    it("keeps its own copy of what was put", async () => {
      const body = Buffer.from("body");
      await store.put("a", body, { signal });
      body.fill(0);
      expect(await text("a")).toBe("body");
    });

    it("stores an empty object", async () => {
      await put("empty", "");
      expect(await text("empty")).toBe("");
    });

    it("stores a file", async () => {
      const path = join(directory, "local-file");
      writeFileSync(path, "from a file");
      expect(await store.putFile("x/y", path, { signal })).toBe("stored");
      expect(await text("x/y")).toBe("from a file");
    });

    it("stores a synced file that is to be new, once", async () => {
      const path = join(directory, "synced-file");
      writeFileSync(path, "from a file");
      const options = { signal, ifAbsent: true, isSynced: true };
      expect(await store.putFile("x/z", path, options)).toBe("stored");
      expect(await store.putFile("x/z", path, options)).toBe("exists");
      rmSync(path);
      expect(await text("x/z")).toBe("from a file");
      await expect(store.putFile("x/new", path, options)).rejects.toThrow();
    });

    it("leaves what is there when asked to", async () => {
      const options = { signal, ifAbsent: true };
      expect(await store.put("a/b", Buffer.from("first"), options)).toBe("stored");
      expect(await store.put("a/b", Buffer.from("second"), options)).toBe("exists");
      expect(await text("a/b")).toBe("first");
    });

    it("lets one of several conditional puts through", async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          store.put("race", Buffer.from(String(i)), { signal, ifAbsent: true }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome === "stored")).toHaveLength(1);
      expect(await text("race")).toBe(String(outcomes.indexOf("stored")));
    });

    it.each([
      ["from the start", 0, 3, "abc"],
      ["in the middle", 2, 3, "cde"],
      ["to the end", 4, 2, "ef"],
      ["nothing", 3, 0, ""],
    ])("reads a range %s", async (_, offset, length, want) => {
      await put("range", "abcdef");
      const bytes = await store.getRange("range", { offset, length }, { signal });
      expect(Buffer.from(bytes).toString()).toBe(want);
    });

    it("refuses a range beyond the end", async () => {
      await put("range", "abcdef");
      expect(await codeOf(store.getRange("range", { offset: 4, length: 3 }, { signal }))).toBe(
        "internal",
      );
    });

    it("says what does not exist", async () => {
      await put("a/b");
      expect(await codeOf(store.get("a/c", { signal }))).toBe("not_found");
      expect(await codeOf(store.get("a/b/c", { signal }))).toBe("not_found");
      expect(await codeOf(store.getRange("z", { offset: 0, length: 1 }, { signal }))).toBe(
        "not_found",
      );
    });

    it("lists by prefix in the order of the keys", async () => {
      for (const key of ["b/2", "a/1", "a.x", "a/1.x", "a0", "b/1/z", "b/10"]) await put(key);
      expect(await keys("")).toEqual(["a.x", "a/1", "a/1.x", "a0", "b/1/z", "b/10", "b/2"]);
      expect(await keys("b/")).toEqual(["b/1/z", "b/10", "b/2"]);
      expect(await keys("b/1")).toEqual(["b/1/z", "b/10"]);
      expect(await keys("c")).toEqual([]);
    });

    it("lists what comes after a key", async () => {
      for (const key of ["a/1", "a/2/x", "a/2/y", "b"]) await put(key);
      expect(await keys("", "a/2/x")).toEqual(["a/2/y", "b"]);
      expect(await keys("a/", "a/1")).toEqual(["a/2/x", "a/2/y"]);
      expect(await keys("", "a/2")).toEqual(["a/2/x", "a/2/y", "b"]);
      expect(await keys("", "b")).toEqual([]);
    });

    it("lists folders", async () => {
      for (const key of ["a.x", "a/1", "a/b/2", "ab/c/3", "ab/d/4", "b/5", "file"]) await put(key);
      const folders = async (prefix: string) => {
        const found: string[] = [];
        for await (const folder of store.folders(prefix, { signal })) found.push(folder);
        return found;
      };
      expect(await folders("")).toEqual(["a/", "ab/", "b/"]);
      expect(await folders("a")).toEqual(["a/", "ab/"]);
      expect(await folders("ab/")).toEqual(["ab/c/", "ab/d/"]);
      expect(await folders("a/1")).toEqual([]);
      expect(await folders("c/")).toEqual([]);
    });

    it("tells of one object what a listing does", async () => {
      await put("sized/a", "12345");
      await put("sized/ab", "1");
      for await (const info of store.list("sized/a", { signal })) {
        expect(await store.stat(info.key, { signal })).toEqual(info);
      }
      for (const absent of ["sized", "sized/", "sized/a/b", "other"]) {
        const code = absent.endsWith("/") ? "invalid_argument" : "not_found";
        expect(await codeOf(store.stat(absent, { signal }))).toBe(code);
      }
    });

    it("lists sizes", async () => {
      await put("sized", "12345");
      for await (const info of store.list("", { signal })) {
        expect(info.sizeBytes).toBe(5);
        expect(info.modifiedMs).toBeGreaterThan(0);
      }
    });

    it("deletes, and does not mind what is gone", async () => {
      await put("a/b/c");
      await put("a/d");
      await store.delete("a/b/c", { signal });
      await store.delete("a/b/c", { signal });
      expect(await keys("")).toEqual(["a/d"]);
      // The key of what was a directory is free again.
      await put("a/b", "object now");
      expect(await text("a/b")).toBe("object now");
    });

    it("survives puts and deletes in one directory at the same time", async () => {
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          await put(`busy/${i}`);
          await store.delete(`busy/${i}`, { signal });
        }),
      );
      expect(await keys("")).toEqual([]);
    });

    it.each(["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a\\b", "a\0b", "x".repeat(1025)])(
      "refuses the key %j",
      async (key) => {
        expect(await codeOf(put(key))).toBe("invalid_argument");
        expect(await codeOf(store.get(key, { signal }))).toBe("invalid_argument");
        expect(await codeOf(store.delete(key, { signal }))).toBe("invalid_argument");
      },
    );

    it("stops on an abort", async () => {
      await put("a");
      const aborted = { signal: AbortSignal.abort() };
      expect(await codeOf(store.put("b", Buffer.from("b"), aborted))).toBe("cancelled");
      expect(await codeOf(store.get("a", aborted))).toBe("cancelled");
      expect(await codeOf(store.stat("a", aborted))).toBe("cancelled");
      expect(await codeOf(store.getRange("a", { offset: 0, length: 1 }, aborted))).toBe(
        "cancelled",
      );
      expect(await codeOf(store.delete("a", aborted))).toBe("cancelled");
      const listing = async () => {
        for await (const info of store.list("", aborted)) expect(info).toBeUndefined();
      };
      expect(await codeOf(listing())).toBe("cancelled");
      expect(await keys("")).toEqual(["a"]);
    });
  });
}
