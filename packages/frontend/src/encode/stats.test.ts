import { describe, expect, it } from "@jest/globals";
import { emptyReadStats, type ReadStats } from "@skald/model";
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
    splits: 1,
    shards: 1,
  };
  return JSON.parse(encodeStats(stats)).index;
};

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
