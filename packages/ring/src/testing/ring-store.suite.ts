import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { RingStore } from "../ring-store.js";

/** A kind of store: `open` gives several handles on the same rings, which are empty at first. */
interface StoreUnderTest {
  readonly open: () => RingStore;
}

/** What every store of rings must do. */
export function describeRingStore(name: string, make: () => StoreUnderTest): void {
  describe(`the ${name} store`, () => {
    let stores: RingStore[];
    let ring: string;
    let count = 0;
    const open = (): RingStore => {
      const store = make().open();
      stores.push(store);
      return store;
    };
    beforeEach(() => {
      stores = [];
      ring = `ring-${++count}`;
    });
    afterEach(async () => {
      for (const store of stores) await store.close();
    });

    it("has no fields at first", async () => {
      expect([...(await open().read(ring))]).toEqual([]);
    });

    it("keeps a text for each instance of each ring", async () => {
      const store = open();
      await store.write(ring, "a", "1", { news: true });
      await store.write(ring, "b", "2", { news: false });
      await store.write(ring, "a", "3", { news: false });
      await store.write(`${ring}-other`, "c", "4", { news: false });
      expect(Object.fromEntries(await open().read(ring))).toEqual({ a: "3", b: "2" });
    });

    it("deletes fields, also those that are not there", async () => {
      const store = open();
      await store.write(ring, "a", "1", { news: false });
      await store.remove(ring, "a");
      await store.remove(ring, "a");
      expect([...(await store.read(ring))]).toEqual([]);
    });

    it("takes any id and text", async () => {
      const store = open();
      for (const id of ["", "a b", "ü:9095", "__proto__"]) {
        await store.write(ring, id, `{"text": "${id}\n"}`, { news: false });
        expect((await store.read(ring)).get(id)).toBe(`{"text": "${id}\n"}`);
      }
    });

    it("tells those who watch of news, in another handle too, and no longer when they stop", async () => {
      const [writer, reader] = [open(), open()];
      const told = newsOf(reader, ring);
      await told.next(() => writer.write(ring, "a", "1", { news: true }));
      expect((await reader.read(ring)).get("a")).toBe("1");
      await told.next(() => writer.remove(ring, "a"));
      told.end();
      const { count: before } = told;
      const other = newsOf(reader, ring);
      await other.next(() => writer.write(ring, "b", "1", { news: true }));
      expect(told.count).toBe(before);
    });

    it("fails when it is closed, or answers", async () => {
      const store = open();
      await store.read(ring);
      await store.close();
      await store.close();
    });
  });
}

/** Counts what a watcher is told. */
function newsOf(store: RingStore, ring: string) {
  let told = () => undefined as void;
  const news = {
    count: 0,
    end: store.watch(ring, () => {
      news.count++;
      told();
    }),
    /** Does something until it was told of: news may be lost, so it is done again. */
    next: async (act: () => Promise<void>): Promise<void> => {
      let isTold = false;
      told = () => {
        isTold = true;
      };
      while (!isTold) {
        await act();
        await store.write(ring, "again", "", { news: true });
      }
    },
  };
  return news;
}
