import { describe, expect, it } from "@jest/globals";
import type { PushOutcome } from "@skald/contracts";
import { makeBatch, type TestRow } from "@skald/testkit";
import { readRows, type SetupOptions, setUp } from "../testing/ingester.js";

const second = 1_000_000_000n;
const hour = 3600n * second;
const noon = 20_400n * 24n * hour + 12n * hour;

type Short = readonly [bigint, string, Partial<TestRow>?];

/** Pushes rows of one stream, one list after the other; returns what is stored as `time line`, and the outcomes. */
async function store(pushes: readonly (readonly Short[])[], options: SetupOptions = {}) {
  const { ingester, clock } = await setUp(options);
  await ingester.start();
  const outcomes: PushOutcome[] = [];
  for (const rows of pushes) {
    const batch = makeBatch([
      {
        labels: { app: "a" },
        rows: rows.map(([ns, line, more]) => ({ ns: noon + ns, line, ...more })),
      },
    ]);
    outcomes.push(await ingester.push({ tenant: "t", batch }));
    clock.ms += 1;
  }
  const stored = (await readRows(ingester, "t")).map((row) => {
    const [, ns = "", ...rest] = row.split(" ");
    return `${BigInt(ns) - noon} ${rest.join(" ")}`;
  });
  await ingester.stop();
  return { stored, outcomes };
}

describe("duplicates", () => {
  it.each<[string, Short[][], string[]]>([
    [
      "in one push",
      [
        [
          [1n, "x"],
          [1n, "x"],
          [1n, "y"],
          [1n, "x"],
        ],
      ],
      ["1 x", "1 y"],
    ],
    [
      "in a later push",
      [
        [
          [1n, "x"],
          [2n, "y"],
        ],
        [
          [1n, "x"],
          [2n, "y"],
          [3n, "z"],
        ],
      ],
      ["1 x", "2 y", "3 z"],
    ],
    [
      "at the newest time",
      [
        [[5n, "x"]],
        [[5n, "y"]],
        [
          [5n, "x"],
          [5n, "z"],
        ],
      ],
      ["5 x", "5 y", "5 z"],
    ],
    [
      "out of order",
      [
        [[5n, "x"]],
        [[3n, "x"]],
        [
          [3n, "x"],
          [4n, "x"],
          [3n, "x"],
        ],
      ],
      ["3 x", "4 x", "5 x"],
    ],
    [
      "falling times in one push",
      [
        [
          [5n, "x"],
          [3n, "x"],
          [5n, "x"],
          [3n, "x"],
        ],
      ],
      ["3 x", "5 x"],
    ],
    [
      "after a row too far behind",
      [
        [
          [5n, "x"],
          [-2n * hour, "x"],
          [5n, "x"],
        ],
      ],
      ["5 x"],
    ],
    [
      "over midnight",
      [
        [
          [12n * hour, "x"],
          [11n * hour, "x"],
        ],
        [
          [12n * hour, "x"],
          [11n * hour, "x"],
        ],
      ],
      [`${11n * hour} x`, `${12n * hour} x`],
    ],
  ])("are stored once: %s", async (_, pushes, want) => {
    expect((await store(pushes)).stored).toEqual(want);
  });

  it("differ by metadata, by level, and by the name of metadata", async () => {
    const rows: Short[] = [
      [1n, "x"],
      [1n, "x", { metadata: { a: "1" } }],
      [1n, "x", { metadata: { a: "2" } }],
      [1n, "x", { metadata: { b: "1" } }],
      [1n, "x", { level: 4 }],
    ];
    const want = ["1 x", "1 x a=1", "1 x a=2", "1 x b=1", "1 x detected_level=info"];
    expect((await store([rows, rows])).stored).toEqual(want);
    expect((await store([[...rows, ...rows]])).stored).toEqual(want);
    const reversed = [...rows].reverse();
    expect((await store([rows, reversed, rows])).stored).toEqual(want);
  });

  it("are found among many rows of one time", async () => {
    const rows = Array.from({ length: 3000 }, (_, i): Short => [7n, `line ${i}`]);
    const want = rows.map(([, line]) => `7 ${line}`);
    expect((await store([[...rows, ...rows]])).stored).toEqual(want);
    expect((await store([rows, rows, [[7n, "line 0"]]])).stored).toEqual(want);
  });

  it("are found among many rows out of order, in bounded time", async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, i): Short => [BigInt((i * 7919) % 20_000), "x"],
    );
    const pieces = Array.from({ length: 40 }, (_, i) => rows.slice(500 * i, 500 * (i + 1)));
    const want = Array.from({ length: 20_000 }, (_, i) => `${i} x`);
    expect((await store([...pieces, ...pieces.reverse()])).stored).toEqual(want);
  });

  it("are found when a stream comes twice in one push", async () => {
    const { ingester } = await setUp();
    await ingester.start();
    const stream = { labels: { app: "a" }, rows: [{ ns: noon, line: "x" }] };
    await ingester.push({ tenant: "t", batch: makeBatch([stream, stream]) });
    expect(await readRows(ingester, "t")).toHaveLength(1);
    await ingester.stop();
  });
});

describe("rows too far behind", () => {
  it("are refused with the time that would do", async () => {
    const { stored, outcomes } = await store([
      [[-1n * second, "recent"]],
      [
        [-3n * hour + 506_000_000n, "too old"],
        [0n, "fine"],
      ],
    ]);
    expect(stored).toEqual([`-${second} recent`, "0 fine"]);
    expect(outcomes[1]?.refusals).toEqual([
      {
        status: 400,
        reason: "too_far_behind",
        message:
          "entry with timestamp 2025-11-08 09:00:00.506 +0000 UTC ignored, reason: 'entry too far behind, entry timestamp is: 2025-11-08T09:00:00Z, oldest acceptable timestamp is: 2025-11-08T10:59:59Z',\n" +
          "user 't', total ignored: 1 out of 2 for stream: {app=\"a\"}",
        entries: 1,
        bytes: 7,
      },
    ]);
  });

  it("are measured from the newest row so far, within a push too", async () => {
    const pushes: Short[][] = [
      [
        [0n, "a"],
        [hour, "b"],
        [-1n, "too old"],
        [0n, "c"],
      ],
    ];
    const { stored, outcomes } = await store(pushes);
    expect(stored).toEqual(["0 a", "0 c", `${hour} b`]);
    expect(outcomes[0]?.refusals[0]).toMatchObject({ entries: 1, bytes: 7 });
  });

  it("are named up to ten, and counted", async () => {
    const old = Array.from({ length: 25 }, (_, i): Short => [-2n * hour - BigInt(i), "old"]);
    const { outcomes } = await store([[[0n, "new"], ...old]]);
    const refusal = outcomes[0]?.refusals[0];
    expect(refusal).toMatchObject({ entries: 25, bytes: 75 });
    expect(refusal?.message.split("\n")).toHaveLength(11);
    expect(refusal?.message).toContain("total ignored: 25 out of 26");
  });

  it("do not exist without a window", async () => {
    const changes = { max_chunk_age: Number.POSITIVE_INFINITY };
    const { stored } = await store([[[0n, "new"]], [[-9999n * hour, "old"]]], { changes });
    expect(stored).toEqual([`${-9999n * hour} old`, "0 new"]);
  });
});

describe("rows of a tenant that takes old ones", () => {
  it("may be as far behind as they are old", async () => {
    const limits = { reject_old_samples: false };
    const { stored, outcomes } = await store([[[0n, "new"]], [[-9999n * hour, "old"]]], { limits });
    expect(stored).toEqual([`${-9999n * hour} old`, "0 new"]);
    expect(outcomes[1]?.refusals).toEqual([]);
  });
});

describe("limits", () => {
  it("refuse a stream above its rate as a whole, until the bucket has filled", async () => {
    const limits = { per_stream_rate_limit: 3 * 1024 * 1024, per_stream_rate_limit_burst: 12 };
    const { ingester, clock } = await setUp({ limits });
    await ingester.start();
    const push = (ns: bigint, line: string) =>
      ingester.push({
        tenant: "t",
        batch: makeBatch([{ labels: { app: "a" }, rows: [{ ns, line, metadata: { k: "v" } }] }]),
      });
    expect((await push(noon, "12345678")).refusals).toEqual([]);
    const { refusals } = await push(noon + 1n, "123456");
    expect(refusals).toMatchObject([
      { status: 429, reason: "per_stream_rate_limit", entries: 1, bytes: 8 },
    ]);
    expect(refusals[0]?.message).toMatch(
      /^entry with timestamp 2025-11-08 12:00:00.000000001 \+0000 UTC ignored, reason: 'Per stream rate limit exceeded \(limit: 3MB\/sec\) while attempting to ingest for stream '\{app="a"\}' totaling 8B, .*',\nuser 't', total ignored: 1 out of 1 for stream: \{app="a"\}$/,
    );
    clock.ms += 1;
    expect((await push(noon + 2n, "1234567890")).refusals).toEqual([]);
    expect(await readRows(ingester, "t")).toHaveLength(2);
    await ingester.stop();
  });

  it("refuse streams beyond the limit, and tell of ten", async () => {
    const { ingester } = await setUp({ limits: { max_global_streams_per_user: 2 } });
    await ingester.start();
    const streams = Array.from({ length: 20 }, (_, i) => ({
      labels: { app: `a${String(i).padStart(2, "0")}` },
      rows: [{ ns: noon, line: "12" }],
    }));
    const { refusals } = await ingester.push({ tenant: "t", batch: makeBatch(streams) });
    expect(await readRows(ingester, "t")).toEqual([
      `{app="a00"} ${noon} 12`,
      `{app="a01"} ${noon} 12`,
    ]);
    expect(refusals).toHaveLength(10);
    expect(refusals[0]).toMatchObject({
      status: 429,
      reason: "stream_limit",
      entries: 1,
      bytes: 2,
    });
    expect(refusals[0]?.message).toMatch(
      /^maximum active stream limit exceeded when trying to create stream \{app="a02"\}, .* user: 't'$/,
    );
    expect(refusals.reduce((sum, { entries }) => sum + entries, 0)).toBe(18);
    await ingester.stop();
  });
});
