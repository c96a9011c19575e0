import { existsSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { DigestTask, MinuteDigests } from "@skald/contracts";
import { type HeadView, type LocalRef, nodeWalDisk, readTexts, type WalDisk } from "@skald/storage";
import { makeBatch, type TestStream, until } from "@skald/testkit";
import { equals, everything, readRows, readUnion, sealHere, setUp } from "./testing/ingester.js";

const second = 1_000_000_000n;
const day = 20_400n * 86_400n * second;

function push(...streams: TestStream[]) {
  return { tenant: "t", batch: makeBatch(streams) };
}

function rows(labels: Record<string, string>, ...lines: [bigint, string][]): TestStream {
  return { labels, rows: lines.map(([ns, line]) => ({ ns: day + ns, line })) };
}

describe("Ingester", () => {
  it("shows what was pushed, and again after a restart", async () => {
    const { dir, ingester } = await setUp();
    await ingester.start();
    const first = rows({ app: "a" }, [1n, "one"], [2n, "two"]);
    expect(await ingester.push(push(first, rows({ app: "b" }, [5n, "other"])))).toEqual({
      refusals: [],
    });
    await ingester.push(push(rows({ app: "a" }, [3n, "three"])));
    const want = [
      `{app="a"} ${day + 1n} one`,
      `{app="a"} ${day + 2n} two`,
      `{app="a"} ${day + 3n} three`,
      `{app="b"} ${day + 5n} other`,
    ];
    expect(await readRows(ingester, "t")).toEqual(want);
    expect(await readRows(ingester, "t", { matchers: [equals("app", "b")] })).toEqual(
      want.slice(3),
    );
    expect(await readRows(ingester, "t", { fromNs: day + 6n })).toEqual([]);
    expect(await readRows(ingester, "other")).toEqual([]);
    await ingester.stop();
    const again = await setUp({ dir });
    await again.ingester.start();
    expect(await readRows(again.ingester, "t")).toEqual(want);
    await again.ingester.stop();
  });

  describe("asked to compare what is selected", () => {
    const none = new Uint32Array(0);
    const digests = {
      ...{ streams: new Float64Array(0), counts: none, minutes: none, rows: none, sums: none },
    };
    const held = { fromNs: day, toNs: day + second };
    const request = {
      ...{ ...everything, tenant: "t", share: { tenant: "t", actors: [], cost: 0 } },
      compare: {
        windows: [held, { fromNs: day + second, toNs: day + 2n * second }],
        minutesEach: 10,
      },
    };
    async function open(told: () => Promise<MinuteDigests>) {
      const asked: DigestTask<LocalRef>[] = [];
      const { ingester } = await setUp({
        digests: (task) => {
          asked.push(task);
          return told();
        },
      });
      await ingester.start();
      await ingester.push(push(rows({ app: "a" }, [1n, "one"])));
      return { ingester, asked };
    }

    it("tells the digests of times of which it holds rows", async () => {
      const { ingester, asked } = await open(async () => digests);
      const { compared } = await ingester.select(request);
      expect(compared).toEqual({ windows: [{ ...held, digests, sources: 1 }] });
      expect(asked).toMatchObject([
        { ...held, minutesEach: 10, sources: [{ ref: { kind: "head" } }] },
      ]);
      const { compare: _, ...rest } = request;
      expect(await ingester.select(rest)).not.toHaveProperty("compared");
      expect(asked).toHaveLength(1);
      await ingester.stop();
    });

    it("tells them of large heads, so that nobody has to ask for them", async () => {
      const { ingester } = await open(async () => digests);
      const line = "x".repeat(1024 * 1024);
      for (let n = 1n; n <= 10n; n++) await ingester.push(push(rows({ app: "a" }, [n, line])));
      expect((await ingester.select(request)).compared).toBeDefined();
      await ingester.stop();
    });

    it("leaves them out where they cannot be had, and keeps no view when nobody waits", async () => {
      const stop = new AbortController();
      const { ingester } = await open(async () => {
        throw new Error("no threads");
      });
      const { compared, sources } = await ingester.select(request);
      expect([compared, sources.length]).toEqual([undefined, 1]);
      const selecting = ingester.select(request, { signal: stop.signal });
      stop.abort(new Error("nobody waits"));
      await expect(selecting).rejects.toThrow("nobody waits");
      await ingester.stop();
    });
  });

  it("shares the texts of streams among queries for the same ones, until another is pushed to", async () => {
    const asked: HeadView[] = [];
    const { ingester } = await setUp({
      digests: async ({ sources }) => {
        asked.push(...sources.map(({ ref }) => ref as HeadView));
        throw new Error("no threads");
      },
    });
    await ingester.start();
    const request = {
      ...{ ...everything, tenant: "t", share: { tenant: "t", actors: [], cost: 0 } },
      compare: { windows: [{ fromNs: day, toNs: day + second }], minutesEach: 10 },
    };
    const select = async (app: string) => {
      await ingester.select({ ...request, matchers: [equals("app", app)] });
      const { streams, texts } = asked.pop() as HeadView;
      return { streams, texts };
    };
    await ingester.push(push(rows({ app: "a" }, [1n, "one"])));
    const first = await select("a");
    await ingester.push(push(rows({ app: "a" }, [2n, "two"])));
    const again = await select("a");
    expect([again.streams === first.streams, again.texts === first.texts]).toEqual([true, true]);
    const later = rows({ app: "a", pod: "p" }, [3n, "three"]);
    await ingester.push(push(later, rows({ app: "b" }, [4n, "four"])));
    expect(readTexts((await select("a")).texts)).toEqual(['{app="a"}', '{app="a", pod="p"}']);
    expect(readTexts((await select("b")).texts)).toEqual(['{app="b"}']);
    expect(readTexts((await select("a")).texts)).toHaveLength(2);
    await ingester.stop();
  });

  it("flushes into the store and forgets the log", async () => {
    const { dir, ingester, store } = await setUp();
    await ingester.start();
    await ingester.push(push(rows({ app: "a" }, [1n, "one"], [90_000n * second, "next day"])));
    await ingester.flush();
    expect(store.objects.size).toBe(2);
    const want = [`{app="a"} ${day + 1n} one`, `{app="a"} ${day + 90_000n * second} next day`];
    expect(await readRows(ingester, "t")).toEqual(want);
    await ingester.stop();
    const again = await setUp({ dir, store });
    await again.ingester.start();
    expect(await readRows(again.ingester, "t")).toEqual(want);
    expect(store.puts).toBe(2);
    await again.ingester.stop();
  });
});

describe("a failing log", () => {
  /** A disk whose writes fail while it is told to. */
  function failing() {
    const state = { code: "", used: 0.1 };
    const disk: WalDisk = {
      ...nodeWalDisk,
      create: async (path) => {
        const file = await nodeWalDisk.create(path);
        return {
          ...file,
          writev: (parts) => {
            if (state.code === "") return file.writev(parts);
            return Promise.reject(Object.assign(new Error("failed"), { code: state.code }));
          },
        };
      },
      space: async () => ({ totalBytes: 1e12, freeBytes: 1e12 * (1 - state.used) }),
    };
    return { disk, state };
  }

  it("refuses what it could not write, shows none of it, and goes on", async () => {
    const { disk, state } = failing();
    const setup = await setUp({ disk });
    const { ingester } = setup;
    await ingester.start();
    await ingester.push(push(rows({ app: "a" }, [1n, "one"])));
    state.code = "EIO";
    const lost = [
      ingester.push(push(rows({ app: "a" }, [2n, "two"], [7200n * second, "newest"]))),
      ingester.push(
        push(rows({ app: "b" }, [3n, "three"]), rows({ app: "a" }, [90_000n * second, "x"])),
      ),
    ];
    for (const one of lost) await expect(one).rejects.toMatchObject({ status: 503 });
    expect(await readRows(ingester, "t")).toHaveLength(1);
    state.code = "";
    const outcome = await ingester.push(push(rows({ app: "a" }, [2n, "two"], [1n, "one"])));
    expect(outcome.refusals).toEqual([]);
    const want = [`{app="a"} ${day + 1n} one`, `{app="a"} ${day + 2n} two`];
    expect(await readRows(ingester, "t")).toEqual(want);
    await ingester.flush();
    expect(await readRows(ingester, "t")).toEqual(want);
    await ingester.stop();
    const again = await setUp({ dir: setup.dir, store: setup.store });
    await again.ingester.start();
    expect(await readRows(again.ingester, "t")).toEqual(want);
    await again.ingester.stop();
  });

  it("refuses pushes while the disk is full, and serves queries", async () => {
    const { disk, state } = failing();
    const setup = await setUp({ disk, changes: { wal: { disk_full_threshold: 0.9 } } });
    const { ingester } = setup;
    await ingester.start();
    await ingester.push(push(rows({ app: "a" }, [1n, "one"])));
    state.code = "ENOSPC";
    const refused = {
      code: "unavailable",
      status: 503,
      message: expect.stringContaining("is full"),
    };
    await expect(ingester.push(push(rows({ app: "a" }, [2n, "two"])))).rejects.toMatchObject(
      refused,
    );
    state.code = "";
    await expect(ingester.push(push(rows({ app: "a" }, [2n, "two"])))).rejects.toMatchObject(
      refused,
    );
    expect(await readRows(ingester, "t")).toHaveLength(1);
    const { text } = await setup.metrics.read();
    expect(text).toContain("loki_ingester_wal_disk_full_failures_total 1");
    await ingester.stop();
  });

  it("refuses pushes from the start when the disk is too full", async () => {
    const { disk, state } = failing();
    state.used = 0.95;
    const { ingester } = await setUp({ disk, changes: { wal: { disk_full_threshold: 0.9 } } });
    await ingester.start();
    await expect(ingester.push(push(rows({ app: "a" }, [1n, "one"])))).rejects.toThrow("95% full");
    await ingester.stop();
  });

  it("can be switched off", async () => {
    const setup = await setUp({ changes: { wal: { enabled: false } } });
    await setup.ingester.start();
    await setup.ingester.push(push(rows({ app: "a" }, [1n, "one"])));
    expect(await readRows(setup.ingester, "t")).toHaveLength(1);
    await setup.ingester.flush();
    expect(setup.store.objects.size).toBe(1);
    await setup.ingester.stop();
    expect(existsSync(join(setup.dir, "wal"))).toBe(false);
  });
});

describe("the life of an ingester", () => {
  it("takes pushes and queries only while it runs", async () => {
    const { ingester } = await setUp();
    const request = push(rows({ app: "a" }, [1n, "one"]));
    await expect(ingester.push(request)).rejects.toThrow("the ingester is new and takes no pushes");
    await expect(readRows(ingester, "t")).rejects.toThrow("the ingester is new");
    await ingester.start();
    expect(ingester.state).toBe("running");
    const last = ingester.push(request);
    await ingester.stop();
    await last;
    expect(ingester.state).toBe("stopped");
    await expect(ingester.push(request)).rejects.toThrow("is stopped and takes no pushes");
    await ingester.stop();
  });

  it("uploads everything at the end when told to, and stops when the store is down", async () => {
    const setup = await setUp({ changes: { wal: { flush_on_shutdown: true } } });
    await setup.ingester.start();
    await setup.ingester.replayed;
    expect(setup.ingester.holdsRows).toBe(false);
    await setup.ingester.push(push(rows({ app: "a" }, [1n, "one"])));
    expect(setup.ingester.holdsRows).toBe(true);
    await setup.ingester.stop();
    expect(setup.ingester.holdsRows).toBe(false);
    expect(setup.store.objects.size).toBe(1);
    const again = await setUp({ dir: setup.dir, store: setup.store });
    await again.ingester.start();
    setup.store.isDown = true;
    await again.ingester.push(push(rows({ app: "a" }, [2n, "two"])));
    await again.ingester.stop({ flush: true });
    expect(again.ingester.state).toBe("stopped");
    expect(again.ingester.holdsRows).toBe(true);
    const last = await setUp({ dir: setup.dir, store: setup.store });
    await last.ingester.start();
    expect(await readRows(last.ingester, "t")).toHaveLength(2);
    await last.ingester.stop();
  });

  it("can be stopped while it replays, and replays again", async () => {
    const first = await setUp();
    await first.ingester.start();
    for (let i = 0n; i < 20n; i++) await first.ingester.push(push(rows({ app: "a" }, [i, `${i}`])));
    await first.ingester.stop();
    const changes = { wal: { replay_memory_ceiling: 1 } };
    let seals = 0;
    const second = await setUp({
      dir: first.dir,
      changes,
      seal: (job) => {
        if (++seals === 7) void second.ingester.stop();
        return sealHere(job);
      },
    });
    await second.ingester.start();
    await expect(second.ingester.replayed).rejects.toThrow("aborted");
    await until(() => second.ingester.state === "stopped");
    expect(seals).toBe(7);
    const third = await setUp({ dir: first.dir });
    await third.ingester.start();
    expect(await readRows(third.ingester, "t")).toHaveLength(20);
    const { sources } = await third.ingester.select({ ...everything, tenant: "t" });
    expect(sources.filter(({ kind }) => kind === "segment")).toHaveLength(7);
    expect(sources.filter(({ kind }) => kind === "head")).toHaveLength(1);
    await third.ingester.stop();
  });

  it("counts what replay finds", async () => {
    const first = await setUp();
    await first.ingester.start();
    await first.ingester.push(push(rows({ app: "a" }, [1n, "one"], [2n, "two"])));
    await first.ingester.stop();
    await appendFile(join(first.dir, "wal", "00000001.wal"), "torn");
    const again = await setUp({ dir: first.dir });
    await again.ingester.start();
    await again.ingester.replayed;
    const { text } = await again.metrics.read();
    for (const line of [
      'wal_corruptions_total{type="torn"} 1',
      "wal_recovered_entries_total 2",
      "wal_recovered_streams_total 1",
      'memory_streams{tenant="t"} 1',
      "memory_chunks 1",
      "wal_replay_active 0",
    ]) {
      expect(text).toContain(`loki_ingester_${line}`);
    }
    await again.ingester.stop();
  });
});

it("gives each query a prefix of what was pushed, while heads are sealed and uploaded", async () => {
  const setup = await setUp({ changes: { head_target_size: 300, chunk_retain_period: 0 } });
  const { ingester } = setup;
  await ingester.start();
  const lines = 120;
  let acknowledged = 0;
  let checks = 0;
  let isDone = false;
  const pushing = (async () => {
    for (let i = 0; i < lines && !isDone; i++) {
      while (checks < i / 20 && !isDone) await new Promise((resolve) => setImmediate(resolve));
      await ingester.push(push(rows({ app: "a" }, [BigInt(i), `line ${i}`])));
      acknowledged = i + 1;
    }
    isDone = true;
  })();
  const flushing = (async () => {
    while (!isDone) {
      await ingester.flush();
      await ingester.sweep();
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  try {
    while (!isDone) {
      const atLeast = acknowledged;
      const got = (await readUnion(setup, "t")).map((row) => Number(row.split("line ")[1]));
      got.sort((a, b) => a - b);
      expect(got).toEqual(Array.from(got, (_, i) => i));
      expect(got.length).toBeGreaterThanOrEqual(atLeast);
      checks++;
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    isDone = true;
    await Promise.all([pushing, flushing]);
  }
  expect(await readUnion(setup, "t")).toHaveLength(lines);
  await ingester.stop();
});
