import { describe, expect, it } from "@jest/globals";
import { emptyReadStats, joinQueryStats, type ReadStats } from "@skald/model";
import { encodeStats } from "./stats.js";

const indexOf = (ingester: Partial<ReadStats>, store: Partial<ReadStats>) => {
  const stats = {
    ingester: { ...emptyReadStats(), ...ingester },
    store: { ...emptyReadStats(), ...store },
    ingestersReached: 1,
    streams: 2,
    execSeconds: 1,
    queueSeconds: 0,
    entriesReturned: 0,
    shards: 1,
  };
  return JSON.parse(encodeStats(stats)).index;
};

describe("statistics of Skald", () => {
  it("say where the time went, and what became of the blocks", () => {
    const store = { blocks: 9, readBlocks: 2, refusedBlocks: 3, countedBlocks: 4, wantedBytes: 70 };
    const ingester = { blocks: 1, readBlocks: 1, wantedBytes: 7 };
    const stats = {
      ...joinQueryStats([]),
      ingester: { ...emptyReadStats(), ...ingester },
      store: { ...emptyReadStats(), ...store },
      ...{ queueSeconds: 0.001, planSeconds: 0.002 },
      phases: { find: 0.003, scan: 1.5, merge: 0.0000004 },
    };
    expect(JSON.parse(encodeStats(stats, 0.25)).skald).toEqual({
      phases: { queue: 1, plan: 2, find: 3, scan: 1500, merge: 0, encode: 250 },
      blocks: { total: 10, read: 3, refused: 3, counted: 4 },
      bytesToRead: 77,
    });
  });
});

it.each([
  [undefined, 0],
  [3, 3],
])("statistics of %s parts of a query tell them as subqueries and as splits", (parts, want) => {
  const stats = { ...joinQueryStats([]), ...(parts === undefined ? {} : { subqueries: parts }) };
  expect(JSON.parse(encodeStats(stats)).summary).toMatchObject({ subqueries: want, splits: want });
});

describe("statistics of the index", () => {
  it("count sources where no filter was asked", () => {
    expect(indexOf({ sources: 2, sourcesScanned: 1 }, { sources: 3, sourcesScanned: 3 })).toEqual({
      totalChunks: 5,
      postFilterChunks: 4,
      shardsDuration: 0,
      usedBloomFilters: false,
      totalStreams: 2,
    });
  });

  it("count blocks where filters were asked", () => {
    const store = { sources: 3, sourcesScanned: 3, filteredBlocks: 90, refusedBlocks: 80 };
    expect(indexOf({ filteredBlocks: 10, refusedBlocks: 9 }, store)).toMatchObject({
      totalChunks: 100,
      postFilterChunks: 11,
      usedBloomFilters: true,
    });
  });
});
