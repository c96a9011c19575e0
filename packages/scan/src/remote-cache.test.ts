import { cpSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { decodeOutcome } from "@skald/contracts";
import type { LogPlan } from "@skald/logql";
import { errorCodeOf, type SegmentRef } from "@skald/model";
import { corruptSegmentOf, SegmentCache } from "@skald/storage";
import { options, putFile, remoteSegments, taskOf } from "./testing/remote.js";
import { logPlan, rowsOf } from "./testing/scans.js";

const remote = remoteSegments();

describe("the cache of a scanner of the store", () => {
  const plan = logPlan("{app=~`.+`} |= `needle`", { limit: 1000 });
  const scan = async ({ scanner }: ReturnType<typeof remote.setUp>) => {
    const { partial } = decodeOutcome<LogPlan>(
      await scanner.run("scan", taskOf(plan, remote.objects), options),
    );
    return rowsOf(plan, [partial]).length;
  };
  const found = 21 + 1;
  const filesOf = (name: string) =>
    readdirSync(join(remote.directory, name)).map((file) => join(remote.directory, name, file));

  it("outlives the process", async () => {
    const first = remote.setUp();
    await first.cache.open();
    expect(await scan(first)).toBe(found);
    await first.cache.close();
    remote.reads = [];
    const second = remote.setUp({ name: first.name });
    await second.cache.open();
    expect(second.cache.bytes).toBe(first.cache.bytes);
    expect(await scan(second)).toBe(found);
    expect(remote.reads).toEqual([]);
    // What is no file of it goes, and what is of another size.
    truncateSync(filesOf(first.name)[0] as string, 65_537 * 3);
    writeFileSync(
      join(remote.directory, first.name, `${"0".repeat(32)}-${"0".repeat(12)}.slots`),
      "torn",
    );
    const third = remote.setUp({ name: first.name });
    await third.cache.open();
    expect(await scan(third)).toBe(found);
    expect(filesOf(first.name)).toHaveLength(3);
    expect(third.cache.bytes).toBe(first.cache.bytes);
  });

  it("fetches again what the disk did not keep", async () => {
    const first = remote.setUp();
    await first.cache.open();
    await scan(first);
    await first.cache.close();
    for (const path of filesOf(first.name)) {
      const bytes = readFileSync(path);
      const slots = Math.floor(bytes.byteLength / 65_537);
      // All but the index and the bytes that say what is there.
      bytes.fill(0, 0, (slots - 3) * 65_536);
      writeFileSync(path, bytes);
    }
    remote.reads = [];
    const second = remote.setUp({ name: first.name });
    await second.cache.open();
    expect(await scan(second)).toBe(found);
    expect(remote.reads.length).toBeGreaterThan(0);
  });

  it("names the object when the store's copy is damaged", async () => {
    const [object] = remote.objects as [SegmentRef];
    const body = await remote.store.get(object.id, { signal: options.signal });
    const bad: SegmentRef = { ...object, id: "bad", location: { kind: "object", key: "bad" } };
    await remote.store.put("bad", Buffer.from(body).fill(0, 0, body.byteLength >> 1), {
      signal: options.signal,
    });
    const { scanner, cache } = remote.setUp();
    await cache.open();
    const failure = await scanner
      .run("scan", taskOf(plan, [bad]), options)
      .catch((error: unknown) => error);
    expect(corruptSegmentOf(failure)).toBe("bad");
  });

  it("holds no more than it may, but what is in use", async () => {
    const small = remote.setUp({ maxBytes: 1_000_000 });
    await small.cache.open();
    expect(await scan(small)).toBe(found);
    expect(await scan(small)).toBe(found);
    await small.cache.close();
    expect(small.cache.bytes).toBeLessThanOrEqual(1_000_000);
    const held = filesOf(small.name).reduce((sum, path) => sum + statSync(path).blocks * 512, 0);
    expect(held).toBeLessThan(1_100_000);
  });

  it("leaves a part of the disk to others", async () => {
    const setup = remote.setUp();
    await setup.cache.open();
    expect(await scan(setup)).toBe(found);
    const before = setup.cache.bytes;
    expect(before).toBeGreaterThan(3_000_000);
    remote.disk.freeBytes = 4e8;
    const [first] = remote.objects as [SegmentRef];
    await setup.cache.drop(first.id);
    // Without a filter: its index alone.
    await setup.scanner.run(
      "measure",
      taskOf(logPlan("{app=`app1`}", { limit: 2000 }), [first]),
      options,
    );
    // But for what was in use.
    expect(setup.cache.bytes).toBeLessThanOrEqual(2 * 65_536);
    expect(await scan(setup)).toBe(found);
  });

  it("drops what the store has no more, also what an earlier process left", async () => {
    const secret = (name: string) =>
      filesOf(name).filter((path) => readFileSync(path).subarray(-10).includes("s0")).length;
    const before = remote.setUp();
    await before.cache.open();
    expect(await scan(before)).toBe(found);
    expect([filesOf(before.name).length, secret(before.name)]).toEqual([3, 1]);
    const copy = remote.setUp();
    cpSync(join(remote.directory, before.name), join(remote.directory, copy.name), {
      recursive: true,
    });
    await copy.cache.open();
    const held = copy.cache.bytes;
    const [gone] = remote.objects as [SegmentRef];
    await remote.store.delete(gone.id, options);
    try {
      for (const { cache, name } of [before, copy]) {
        await cache.dropGone("other", options);
        expect(secret(name)).toBe(1);
        await cache.dropGone("", options);
        expect([filesOf(name).length, secret(name)]).toEqual([2, 0]);
        expect(cache.bytes).toBeLessThan(held);
      }
    } finally {
      await putFile(remote.store, remote.files[0] as SegmentRef);
    }
    // A cache of another store is nobody's.
    const other = new SegmentCache({
      ...{ directory: join(remote.directory, before.name), storeName: "other", maxBytes: 1e9 },
      store: remote.store,
    });
    await before.cache.close();
    await other.open();
    expect(filesOf(before.name)).toEqual([]);
  });

  it("fails with the store's error, and goes on later", async () => {
    const setup = remote.setUp();
    await setup.cache.open();
    remote.isDown = true;
    const failure = await scan(setup).catch((error: unknown) => error);
    expect(errorCodeOf(failure)).toBe("unavailable");
    remote.isDown = false;
    expect(await scan(setup)).toBe(found);
    remote.isDown = true;
    expect(await scan(setup)).toBe(found);
  });

  it("fetches for several queries once, and stops when nobody waits", async () => {
    const setup = remote.setUp();
    await setup.cache.open();
    const abort = new AbortController();
    const gone = setup.scanner.run("scan", taskOf(plan, remote.objects), {
      ...options,
      signal: abort.signal,
    });
    const others = [scan(setup), scan(setup)];
    abort.abort(new Error("gone"));
    await expect(gone).rejects.toThrow("gone");
    expect(await Promise.all(others)).toEqual([found, found]);
    const places = remote.reads.map(({ key, offset }) => `${key} ${offset}`);
    expect(new Set(places).size).toBe(places.length);
  });
});
