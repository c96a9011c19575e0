import { describe, expect, it } from "@jest/globals";
import type { HeadRef, SegmentRef, SourceRef } from "@skald/model";
import type { Exclusions } from "./exclusions.js";
import { type DuplicateTask, ScanPool } from "./scan-pool.js";

const { signal } = new AbortController();
const span = { fromNs: 0n, toNs: 9n };

const segment = (id: string): SegmentRef => ({
  kind: "segment",
  id,
  tenant: "t",
  minNs: 0n,
  maxNs: 9n,
  sizeBytes: 1,
  location: { kind: "file", path: id },
});
const head: HeadRef = {
  ...{ kind: "head", id: "h", tenant: "t", minNs: 0n, maxNs: 9n },
  streams: new Uint32Array(0),
  texts: [],
  blocks: [],
};

/** The row that a pair shares, by the ids of the fake. */
function exclusionOf(older: SourceRef): Exclusions {
  return { blocks: Uint32Array.of(0), rows: [Uint32Array.of(older.id.charCodeAt(0))] };
}

function poolOf() {
  const jobs: string[] = [];
  let fails = false;
  const run = (name: string, { newer, older, span: asked }: DuplicateTask) => {
    jobs.push(`${name} ${older.map(({ id }) => id).join()}|${newer.id}${asked ? " span" : ""}`);
    return fails ? Promise.reject(new Error("cancelled")) : Promise.resolve(older.map(exclusionOf));
  };
  const scans = new ScanPool({ size: 2, run } as unknown as ConstructorParameters<
    typeof ScanPool
  >[0]);
  const rowsOf = async (newer: SourceRef, ...older: SourceRef[]) => {
    const { rows } = await scans.duplicates({ newer, older, span }, signal);
    return String.fromCharCode(...(rows[0] ?? []));
  };
  return { jobs, rowsOf, fail: (now: boolean) => (fails = now) };
}

describe("ScanPool.duplicates", () => {
  it("asks once for a pair of segments, whatever the span", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(segment("x"), segment("a"), segment("b"))).toBe("ab");
    expect(await rowsOf(segment("x"), segment("b"), segment("c"), segment("a"))).toBe("abc");
    expect(await rowsOf(segment("x"), segment("a"), segment("c"))).toBe("ac");
    expect(jobs).toEqual(["duplicates a,b|x", "duplicates c|x"]);
  });

  it("asks for heads each time, which grow, and only for the span", async () => {
    const { jobs, rowsOf } = poolOf();
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(await rowsOf(head, segment("a"))).toBe("a");
    expect(jobs).toEqual(["duplicates a|h span", "duplicates a|h span"]);
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
