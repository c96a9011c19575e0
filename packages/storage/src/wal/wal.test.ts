import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { SkaldError } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { syncInTurn } from "../syncs.js";
import {
  bodies,
  failingDisk,
  openWal,
  plainRecord,
  push,
  replay,
  slowDisk,
  walDirectory,
} from "../testing/wal.js";
import { nodeWalDisk, type WalDisk } from "./disk.js";
import type { WalRecord } from "./record.js";
import type { Wal, WalOptions } from "./wal.js";

describe("Wal", () => {
  it("gives back each kind of record", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    const batch = makeBatch([
      {
        labels: { a: "1" },
        rows: [
          { ns: 1n, line: "refused" },
          { ns: 2_000_000_003n, line: "zwölf", metadata: { k: "v", l: "wert" }, level: 3 },
          { ns: 4n, line: "" },
        ],
      },
      { labels: { a: "2" }, rows: [{ ns: 5n, line: "other", metadata: { l: "x" } }] },
    ]);
    const ranges = [
      { stream: 9, rowFrom: 1, rowTo: 3 },
      { stream: 2, rowFrom: 3, rowTo: 4 },
    ];
    const heads = [{ day: 0, id: "h" }];
    const records: WalRecord[] = [
      { kind: "streams", tenant: "t", numbers: [9, 2], texts: ['{a="1"}', '{a="2"}'] },
      push("body"),
      { kind: "push_columns", tenant: "t", heads, ranges, batch },
    ];
    await wal.append(records, () => undefined).written;
    await wal.close();
    const { records: got, damages } = await replay(dir);
    expect(damages).toEqual([]);
    expect(got.map(plainRecord)).toEqual(records.map(plainRecord));
  });

  it("writes what comes in one turn at once, in order", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir, { fsync: "never" });
    const order: string[] = [];
    const appends = ["a", "b", "c"].map((text) => wal.append([push(text)], () => order.push(text)));
    expect(appends.map((append) => append.position.file)).toEqual([1, 1, 1]);
    expect(appends.map((append) => append.position.offset)).toEqual(
      appends.map((append) => append.position.offset).sort((x, y) => x - y),
    );
    await Promise.all(appends.map((append) => append.written));
    expect(order).toEqual(["a", "b", "c"]);
    expect(wal.stats()).toMatchObject({ writes: 1, syncs: 0, queuedBytes: 0, files: 1 });
    expect(bodies((await replay(dir)).records)).toEqual(["a", "b", "c"]);
    await wal.close();
  });

  it("begins a new file when one is full, and cuts old ones", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir, { maxFileBytes: 200, fsync: "never" });
    for (const text of ["a", "b", "c", "d", "e"]) {
      expect(wal.nextFile()).toBeGreaterThan(0);
      await wal.append([push(text.repeat(60))], () => undefined).written;
    }
    expect(wal.stats().files).toBe(3);
    expect(wal.firstFile).toBe(1);
    expect(wal.bytesSince(2)).toBeLessThan(wal.bytesSince(1));
    expect(await wal.cut(3)).toBe(2);
    expect(wal.firstFile).toBe(3);
    expect(await wal.cut(99)).toBe(0);
    await wal.close();
    expect(bodies((await replay(dir)).records)).toEqual(["e".repeat(60)]);
    const { wal: next } = await openWal(dir);
    expect(next.nextFile()).toBe(4);
    await next.close();
  });

  it("has cut a file only when no power cut brings it back", async () => {
    const dir = await walDirectory();
    const syncs: string[] = [];
    const state = { fails: false };
    const disk: WalDisk = {
      ...nodeWalDisk,
      syncDir: async (path) => {
        if (state.fails) throw new Error("no");
        await nodeWalDisk.syncDir(path);
        syncs.push((await readdir(path)).join());
      },
    };
    const { wal } = await openWal(dir, { disk });
    await wal.append([push("a")], () => undefined).written;
    await wal.sync();
    wal.rotate();
    expect(syncs).toEqual(["", "00000001.wal"]);
    state.fails = true;
    await expect(wal.cut(2)).rejects.toThrow("no");
    expect(await readdir(dir)).toEqual([]);
    expect(wal.firstFile).toBe(1);
    state.fails = false;
    expect(await wal.cut(2)).toBe(1);
    expect(wal.firstFile).toBe(2);
    expect(syncs).toEqual(["", "00000001.wal", ""]);
    await wal.close();
  });

  it("makes last at once what an earlier process deleted", async () => {
    const syncs: string[] = [];
    const disk: WalDisk = { ...nodeWalDisk, syncDir: async (path) => void syncs.push(path) };
    const dir = await walDirectory();
    for (const fsync of ["always", "interval", "never"] as const) {
      await (await openWal(dir, { disk, fsync })).wal.close();
    }
    expect(syncs).toEqual([dir, dir]);
  });

  it("can be cut completely once it is rotated", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    await wal.append([push("a")], () => undefined).written;
    wal.rotate();
    wal.rotate();
    expect(wal.nextFile()).toBe(2);
    expect(await wal.cut(2)).toBe(1);
    expect(await readdir(dir)).toEqual([]);
    await wal.append([push("b")], () => undefined).written;
    await wal.close();
    expect(await readdir(dir)).toEqual(["00000002.wal"]);
  });

  it.each([
    ["always", 2, 0],
    ["interval", 0, 1],
    ["never", 0, 0],
  ] as const)("syncs as told: %s", async (fsync, syncs, planned) => {
    let slept = 0;
    let wake = (): void => undefined;
    const timer = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const sleep = () => {
      slept++;
      return timer;
    };
    const { disk, synced } = failingDisk();
    const { wal } = await openWal(await walDirectory(), { fsync, sleep, disk });
    await wal.append([push("a")], () => undefined).written;
    await wal.append([push("b")], () => undefined).written;
    expect([wal.stats().syncs, slept]).toEqual([syncs, planned]);
    wake();
    if (planned > 0) await synced;
    await wal.close();
    expect(wal.stats().syncs).toBe(syncs + planned + 1);
  });

  it("plans one sync at a time, however many files it begins", async () => {
    let slept = 0;
    const sleep = (_ms: number, signal?: AbortSignal) => {
      slept++;
      return new Promise<void>((_resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    };
    const dir = await walDirectory();
    const { wal } = await openWal(dir, { sleep });
    for (const text of ["a", "b", "c"]) {
      wal.rotate();
      await wal.append([push(text)], () => undefined).written;
    }
    expect(await readdir(dir)).toHaveLength(3);
    expect(slept).toBe(1);
    await wal.close();
  });

  it("makes appends wait for room", async () => {
    const { wal } = await openWal(await walDirectory(), { maxQueuedBytes: 100 });
    const release = await wal.reserve(5000);
    let got = false;
    const second = wal.reserve(1).then((free) => {
      got = true;
      free();
    });
    await Promise.resolve();
    expect(got).toBe(false);
    release();
    await second;
    await wal.close();
    expect(() => wal.append([push("x")], () => undefined)).toThrow("is closed");
  });
});

describe("a disk whose syncs take long", () => {
  const append = (wal: Wal) => wal.append([push("a")], () => undefined).written;
  /** Until the task is done, or can do nothing more before a sync ends. */
  const asFarAs = async (isThere: () => boolean) => {
    while (!isThere()) await new Promise((resolve) => setImmediate(resolve));
  };

  async function open(options: Partial<WalOptions> = {}) {
    const slow = slowDisk();
    const dir = await walDirectory();
    const opening = openWal(dir, { disk: slow.disk, sleep: async () => undefined, ...options });
    await asFarAs(() => slow.running.size === 1);
    slow.release();
    const { wal } = await opening;
    slow.started.length = 0;
    const close = async () => {
      const state = { isClosed: false };
      const closing = wal.close().finally(() => {
        state.isClosed = true;
      });
      await asFarAs(() => {
        slow.release();
        return state.isClosed;
      });
      await closing;
    };
    const files = () => slow.started.map((path) => path.replace(dir, "").replace(/^\/0*/, ""));
    return { ...slow, wal, files, close };
  }

  it("takes pushes while it is synced, by one sync at a time", async () => {
    const { wal, files, running, release, close } = await open();
    for (let i = 0; i < 20; i++) await append(wal);
    // The name of a new file is synced with it.
    await asFarAs(() => running.size === 1);
    expect(files()).toEqual([""]);
    release();
    await asFarAs(() => files().length === 2);
    for (let i = 0; i < 20; i++) await append(wal);
    expect(files()).toEqual(["", "1.wal"]);
    release();
    await asFarAs(() => files().length === 3);
    expect(files()).toEqual(["", "1.wal", "1.wal"]);
    release();
    await asFarAs(() => wal.stats().syncs === 2);
    await append(wal);
    await close();
    // What was written while the second sync ran, then the last.
    expect(wal.stats().syncs).toBe(4);
  });

  it("syncs no more than three files and directories at a time, so that a thread is left for writes", async () => {
    const { wal, running, close } = await open({ maxFileBytes: 1 });
    for (let i = 0; i < 8; i++) {
      wal.nextFile();
      await append(wal);
    }
    const others = Array.from({ length: 8 }, (_, i) =>
      syncInTurn(() => new Promise<void>((resolve) => running.set(`other ${i}`, resolve))),
    );
    const state = { isDone: false };
    void Promise.all(others).then(() => {
      state.isDone = true;
    });
    await asFarAs(() => running.size === 3);
    await append(wal);
    expect(running.size).toBe(3);
    await asFarAs(() => {
      expect(running.size).toBeLessThanOrEqual(3);
      for (const [path, end] of running) {
        if (path.startsWith("other")) running.delete(path);
        end();
      }
      return state.isDone;
    });
    await close();
  });

  it("answers with fsync: always when the sync has ended, and not before", async () => {
    const { wal, files, release, close } = await open({ fsync: "always" });
    let answered = 0;
    const both = [append(wal), append(wal)].map((written) => written.then(() => answered++));
    await asFarAs(() => files().length === 1);
    release();
    await asFarAs(() => files().length === 2);
    expect([files(), answered]).toEqual([["", "1.wal"], 0]);
    release();
    await Promise.all(both);
    expect([files(), answered]).toEqual([["", "1.wal"], 2]);
    await close();
  });
});

describe("a failing disk", () => {
  it("goes on after a short write", async () => {
    const dir = await walDirectory();
    const { disk, plan } = failingDisk();
    const { wal } = await openWal(dir, { disk });
    plan.push({ take: 7 }, { take: 30 });
    await wal.append([push("whole")], () => undefined).written;
    await wal.close();
    expect(bodies((await replay(dir)).records)).toEqual(["whole"]);
  });

  it("loses all that waits, tells the owner first, and leaves nothing of it", async () => {
    const dir = await walDirectory();
    const { disk, plan } = failingDisk();
    const { wal, errors } = await openWal(dir, { disk, diskFullThreshold: 0.9 });
    await wal.append([push("kept")], () => undefined).written;
    const events: string[] = [];
    wal.onAbort(() => void events.push("abort"));
    plan.push({ take: 50 }, { code: "ENOSPC" });
    const lost = [push("x"), push("y")].map((record) =>
      wal
        .append([record], () => events.push("written"))
        .written.catch((error: Error) => void events.push(error.message)),
    );
    await Promise.all(lost);
    const text = "the disk of the write-ahead log is full; free space to go on";
    expect(events).toEqual(["abort", text, text]);
    expect(errors).toHaveLength(1);
    expect(wal.refusal).toMatchObject({ code: "unavailable", status: 503 });
    await wal.checkDisk();
    expect(wal.refusal).toBeUndefined();
    expect(wal.nextFile()).toBe(2);
    await wal.append([push("later")], () => undefined).written;
    await wal.close();
    expect(bodies((await replay(dir)).records)).toEqual(["kept", "later"]);
  });

  it("does not take a record that is too large, nor what comes behind it", async () => {
    const dir = await walDirectory();
    const { wal, errors } = await openWal(dir, { maxRecordBytes: 500 });
    const append = (text: string) => wal.append([push(text)], () => undefined).written;
    const before = append("before");
    const lost = ["x".repeat(500), "behind"].map((text) =>
      append(text).catch((error: SkaldError) => error.code),
    );
    await before;
    expect(await Promise.all(lost)).toEqual(["unavailable", "unavailable"]);
    expect(errors).toMatchObject([{ code: "too_large" }]);
    expect(wal.refusal).toBeUndefined();
    await append("later");
    await wal.close();
    expect(bodies((await replay(dir)).records)).toEqual(["before", "later"]);
  });

  it("refuses when the disk is fuller than the threshold", async () => {
    const { disk, setUsed } = failingDisk();
    const { wal } = await openWal(await walDirectory(), { disk, diskFullThreshold: 0.9 });
    setUsed(0.93);
    await wal.checkDisk();
    expect(wal.refusal?.message).toContain("93% full, pushes are refused from 90%");
    setUsed(0.5);
    await wal.checkDisk();
    expect(wal.refusal).toBeUndefined();
    await wal.close();
  });
});

it("has the layout of docs/formats/wal.md", async () => {
  const dir = await walDirectory();
  const { wal } = await openWal(dir);
  const streams: WalRecord = { kind: "streams", tenant: "t", numbers: [7], texts: ['{a="b"}'] };
  const record: WalRecord = {
    kind: "push_body",
    tenant: "t",
    heads: [{ day: 20_778, id: "h" }],
    ordinals: Uint32Array.of(0),
    streams: Uint32Array.of(7),
    levels: Uint8Array.of(4),
    source: {
      format: "json",
      encoding: "identity",
      body: Buffer.from('{"streams":[]}'),
      dropped: Uint32Array.of(1),
    },
  };
  const rows = [{ ns: 1_795_132_800_000_000_005n, line: "hi", metadata: { k: "v" }, level: 4 }];
  const columns: WalRecord = {
    kind: "push_columns",
    tenant: "t",
    heads: [{ day: 20_777, id: "h" }],
    ranges: [{ stream: 7, rowFrom: 0, rowTo: 1 }],
    batch: makeBatch([{ labels: { a: "b" }, rows }]),
  };
  await wal.append([streams, record, columns], () => undefined).written;
  await wal.close();
  const got = (await readFile(join(dir, "00000001.wal"))).toString("hex");
  const marker = got.slice(24, 32);
  expect(got.replaceAll(marker, "[marker]")).toBe(
    `${Buffer.from("SKALDWAL").toString("hex")}01000000[marker]` +
      "[marker]c9aa383f1800000001000000010000007401000000070000000700" +
      "00007b613d2262227d" +
      "[marker]97193fd943000000020000000100000074010000002a51000001000000680100010000000000000001" +
      "00000007000000010000000100000001000000040e0000007b2273747265616d73223a5b5d7d" +
      "[marker]c28bca564b000000030000000100000074010000002951000001000000680100000007000000" +
      "0100000001000000010000006b00000060e3bfda41050000000402000000000000000100000000000000" +
      "01000000686976",
  );
});
