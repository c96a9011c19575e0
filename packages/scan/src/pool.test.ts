import { describe, expect, it } from "@jest/globals";
import type { DuplicateTask, RowMask } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import type { HeadView, LocalRef } from "@skald/storage";
import { ScanPool } from "./pool.js";

const { signal } = new AbortController();
const share = { tenant: "t", actors: [], cost: 0 };
const range = { fromNs: 0n, toNs: 9n };

const segment = (id: string): SegmentRef => ({
  kind: "segment",
  id,
  tenant: "t",
  minNs: 0n,
  maxNs: 9n,
  sizeBytes: 1,
  location: { kind: "file", path: id },
});
const head: HeadView = {
  ...{ kind: "head", id: "h", tenant: "t", minNs: 0n, maxNs: 9n },
  streams: new Uint32Array(0),
  texts: [],
  blocks: [],
};

/** The row that a pair shares, by the ids of the fake. */
function maskOf(older: LocalRef): RowMask {
  return { blocks: Uint32Array.of(0), rows: [Uint32Array.of(older.id.charCodeAt(0))] };
}

function poolOf() {
  const jobs: string[] = [];
  let fails = false;
  const run = (name: string, { newer, older, range: asked }: DuplicateTask<LocalRef>) => {
    jobs.push(`${name} ${older.map(({ id }) => id).join()}|${newer.id}${asked ? " range" : ""}`);
    return fails ? Promise.reject(new Error("cancelled")) : Promise.resolve(older.map(maskOf));
  };
  const scans = new ScanPool({ run } as unknown as ConstructorParameters<typeof ScanPool>[0]);
  const rowsOf = async (newer: LocalRef, ...older: LocalRef[]) => {
    const { rows } = await scans.duplicates({ newer, older, range }, { signal, share });
    return String.fromCharCode(...(rows[0] ?? []));
  };
  return { jobs, rowsOf, fail: (now: boolean) => (fails = now) };
}

describe("ScanPool.duplicates", () => {
  it("asks once for a pair of segments, whatever the range", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(segment("x"), segment("a"), segment("b"))).toBe("ab");
    expect(await rowsOf(segment("x"), segment("b"), segment("c"), segment("a"))).toBe("abc");
    expect(await rowsOf(segment("x"), segment("a"), segment("c"))).toBe("ac");
    expect(jobs).toEqual(["duplicates a,b|x", "duplicates c|x"]);
  });

  it("asks for heads each time, which grow, and only for the range", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(jobs).toEqual(["duplicates a|h range", "duplicates a|h range"]);
  });

  it("forgets a job that failed", async () => {
    const { jobs, rowsOf, fail } = poolOf();
    fail(true);
    await expect(rowsOf(segment("x"), segment("a"))).rejects.toThrow("cancelled");
    fail(false);
    expect(await rowsOf(segment("x"), segment("a"))).toBe("a");
    expect(jobs).toHaveLength(2);
  });
});
