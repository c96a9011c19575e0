import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { DeleteRequests, isFinished, RequestStore } from "@skald/compactor";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore } from "@skald/storage";
import { ReturnedDisk } from "./returned-disk.js";

const { signal } = new AbortController();
const options = { signal };
const log = silentLogger();
const hourMs = 3_600_000;
const startMs = 1_800_000_000_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skald-returned-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a file that nobody has changed since a time. */
function write(name: string, ms: number, bytes = 100): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.alloc(bytes));
  utimesSync(path, ms / 1000, ms / 1000);
  return path;
}

/** A request that was finished at `startMs`, and the disk of an ingester that starts six hours later. */
async function setUp() {
  const clock = { ms: startMs, nowMs: () => clock.ms };
  const state = { isDown: false };
  const pauses: number[] = [];
  const store = new MemoryStore();
  const onDamaged = () => undefined;
  const makeDeletes = () =>
    new DeleteRequests({
      ...{ clock, log, metrics: new Metrics(), cancelPeriodMs: 1, redactPeriodMs: hourMs },
      requests: new RequestStore({ store, prefix: "index/", onDamaged }),
      pendingLimitOf: () => 0,
      modeOf: () => "filter-and-delete",
    });
  const compactor = makeDeletes();
  await compactor.refresh(options);
  // No source is scanned, so that nothing looks at the parsed query.
  const asked = { query: "{a=`b`}", boundsMs: [1000, 3000], log: { matchers: [] } as never };
  await compactor.create("t", asked, options);
  const finish = async () => {
    const [known] = compactor.list("t");
    if (known !== undefined) await compactor.note(known.request, [0], options);
  };
  await finish();
  clock.ms += 6 * hourMs;
  const own = makeDeletes();
  const deletes = {
    refresh: async (call: typeof options) => {
      if (state.isDown) throw new Error("the store is down");
      await own.refresh(call);
    },
    reopen: own.reopen.bind(own),
  };
  const disk = new ReturnedDisk({
    ...{ walDir: join(folder, "wal"), segmentsDir: join(folder, "segments"), deletes, clock, log },
    forgottenAfterMs: 60_000,
    sleep: async (ms) => void pauses.push(ms),
  });
  /** Whether queries hide the rows of the request. */
  const isOpen = async () => {
    await compactor.refresh(options);
    return compactor.list("t").some((known) => !isFinished(known));
  };
  return { clock, compactor, disk, finish, isOpen, pauses, state };
}

describe("an ingester that comes back with its disk", () => {
  it.each([
    ["its log", "wal/00000001.wal"],
    ["a segment that it did not upload", "segments/t/a.parquet"],
  ])("has requests deleted again that were finished without it, for %s", async (_, name) => {
    const { disk, finish, isOpen, pauses } = await setUp();
    write(name, startMs - hourMs);
    write("segments/t/b.parquet", startMs - hourMs);
    write("segments/t/b.uploaded", startMs - hourMs);
    await disk.prepare(signal);
    expect(await isOpen()).toBe(true);
    // Queries of other processes hide the rows before the ingester tells them.
    expect(pauses).toEqual([5000]);
    // A compactor that did not see the ingester in the ring yet.
    await finish();
    expect(await isOpen()).toBe(false);
    await disk.watch(signal);
    expect(await isOpen()).toBe(true);
    expect(existsSync(join(folder, "segments/t/b.parquet"))).toBe(true);
  });

  it.each<[string, (clock: { ms: number }) => void]>([
    ["was there when they were finished", () => write("wal/00000001.wal", startMs + hourMs)],
    ["was away for a moment", ({ ms }) => write("wal/00000001.wal", ms - 50_000)],
    ["has an empty log", () => write("wal/00000001.wal", startMs - hourMs, 16)],
    ["has no disk", () => undefined],
  ])("leaves them as they are when it %s", async (_, make) => {
    const { clock, disk, isOpen } = await setUp();
    make(clock);
    await disk.prepare(signal);
    expect(await isOpen()).toBe(false);
  });

  it("drops copies of what the store has, or has deleted", async () => {
    const { disk, isOpen } = await setUp();
    const paths = ["parquet", "uploaded"].map((end) =>
      write(`segments/t/b.${end}`, startMs - hourMs),
    );
    await disk.prepare(signal);
    expect([await isOpen(), paths.filter((path) => existsSync(path))]).toEqual([false, []]);
  });

  it("does not start when it may have rows that nobody can find any more", async () => {
    const { compactor, disk } = await setUp();
    await compactor.redact(options, () => true);
    write("wal/00000001.wal", startMs - hourMs);
    await expect(disk.prepare(signal)).rejects.toThrow(
      /was away for 7h0m0s, .* compactor.delete_request_redact_period, .* of tenant t\)\. Move .*wal and .*segments aside/,
    );
  });

  it("starts while the store is down, and does so once it is back", async () => {
    const { disk, isOpen, state } = await setUp();
    write("wal/00000001.wal", startMs - hourMs);
    state.isDown = true;
    await disk.prepare(signal);
    expect(await isOpen()).toBe(false);
    state.isDown = false;
    await disk.watch(signal);
    expect(await isOpen()).toBe(true);
  });

  it("ends when it learns late that nobody can find its rows", async () => {
    const { compactor, disk, state } = await setUp();
    await compactor.redact(options, () => true);
    write("wal/00000001.wal", startMs - hourMs);
    state.isDown = true;
    await disk.prepare(signal);
    state.isDown = false;
    await expect(disk.watch(signal)).rejects.toThrow("cannot be found");
  });
});
