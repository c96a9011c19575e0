import type { CacheKind, CacheStats, QueryStats, ReadStats } from "@skald/model";

/**
 * The statistics of a query as JSON text: the nested form that clients of the reference read, with the flat keys
 * of the published API beside it in `ingester` and `store`, and what only Skald knows in `skald`. What is not measured is left out: a constant would be believed.
 */
export function encodeStats(stats: QueryStats, encodeSeconds?: number): string {
  const { ingester, store } = stats;
  const bytes = bytesOf(ingester) + bytesOf(store);
  const lines = linesOf(ingester) + linesOf(store);
  const filteredBlocks = ingester.filteredBlocks + store.filteredBlocks;
  const refusedBlocks = ingester.refusedBlocks + store.refusedBlocks;
  const perSecond = (amount: number) =>
    stats.execSeconds > 0 ? Math.round(amount / stats.execSeconds) : 0;
  return JSON.stringify({
    summary: {
      bytesProcessedPerSecond: perSecond(bytes),
      linesProcessedPerSecond: perSecond(lines),
      totalBytesProcessed: bytes,
      totalLinesProcessed: lines,
      execTime: stats.execSeconds,
      queueTime: stats.queueSeconds,
      subqueries: stats.subqueries ?? 0,
      totalEntriesReturned: stats.entriesReturned,
      splits: stats.subqueries ?? 0,
      shards: stats.shards,
      totalPostFilterLines: ingester.postFilterLines + store.postFilterLines,
    },
    querier: { store: storeStats(store) },
    ingester: {
      totalReached: stats.ingestersReached,
      totalChunksMatched: ingester.sourcesScanned,
      totalBatches: ingester.batches,
      totalLinesSent: ingester.linesSent,
      store: storeStats(ingester),
      compressedBytes: ingester.compressedBytes,
      decompressedBytes: ingester.decompressedBytes,
      decompressedLines: ingester.decompressedLines,
      headChunkBytes: ingester.headBytes,
      headChunkLines: ingester.headLines,
      totalDuplicates: ingester.duplicates,
    },
    store: {
      compressedBytes: store.compressedBytes,
      decompressedBytes: store.decompressedBytes,
      decompressedLines: store.decompressedLines,
      chunksDownloadTime: store.downloadNs / 1e9,
      totalChunksRef: store.sources,
      totalChunksDownloaded: store.sourcesScanned,
      totalDuplicates: store.duplicates,
    },
    cache: {
      chunk: segmentCache(ingester, store),
      index: noCache,
      ...Object.fromEntries(resultCaches.map((name) => [name, resultCache(stats.caches?.[name])])),
    },
    index: {
      // where block filters were asked, chunks are blocks here
      ...(filteredBlocks > 0
        ? { totalChunks: filteredBlocks, postFilterChunks: filteredBlocks - refusedBlocks }
        : {
            totalChunks: ingester.sources + store.sources,
            postFilterChunks: ingester.sourcesScanned + store.sourcesScanned,
          }),
      shardsDuration: 0,
      usedBloomFilters: filteredBlocks > 0,
      totalStreams: stats.streams,
    },
    skald: ownStats(stats, encodeSeconds),
  });
}

/** Where the time went, in ms, and what became of the blocks that could have rows of the query. */
function ownStats(stats: QueryStats, encodeSeconds: number | undefined): object {
  const { ingester, store, phases, planSeconds, queueSeconds } = stats;
  const sum = (key: keyof ReadStats) => ingester[key] + store[key];
  const ms = (seconds = 0) => Math.round(seconds * 1e6) / 1e3;
  return {
    phases: {
      ...{ queue: ms(queueSeconds), plan: ms(planSeconds), find: ms(phases?.find) },
      ...{ scan: ms(phases?.scan), merge: ms(phases?.merge), encode: ms(encodeSeconds) },
    },
    blocks: {
      ...{ total: sum("blocks"), read: sum("readBlocks") },
      ...{ refused: sum("refusedBlocks"), counted: sum("countedBlocks") },
    },
    bytesToRead: sum("wantedBytes"),
  };
}

function storeStats(side: ReadStats): object {
  return {
    totalChunksRef: side.sources,
    totalChunksDownloaded: side.sourcesScanned,
    chunksDownloadTime: side.downloadNs,
    queryUsedV2Engine: false,
    chunk: {
      headChunkBytes: side.headBytes,
      headChunkLines: side.headLines,
      decompressedBytes: side.decompressedBytes,
      decompressedLines: side.decompressedLines,
      compressedBytes: side.compressedBytes,
      totalDuplicates: side.duplicates,
      postFilterLines: side.postFilterLines,
    },
    congestionControlLatency: 0,
    pipelineWrapperFilteredLines: 0,
  };
}

/** What the store's segments were read from: pages of the cache, and ranges that were fetched into it. */
function segmentCache(...sides: readonly ReadStats[]): object {
  const sum = (key: keyof ReadStats) => sides.reduce((total, side) => total + side[key], 0);
  const found = sum("cachedPages");
  const fetched = sum("fetchedPages");
  return {
    ...noCache,
    entriesFound: found,
    entriesRequested: found + fetched,
    entriesStored: fetched,
    bytesReceived: sum("cachedBytes"),
    bytesSent: sum("fetchedBytes"),
    requests: sum("fetchedRanges"),
    downloadTime: sum("downloadNs"),
  };
}

const resultCaches: readonly CacheKind[] = [
  "result",
  "statsResult",
  "volumeResult",
  "seriesResult",
  "labelResult",
  "instantMetricResult",
];

/** Kept answers; times in ns. */
function resultCache(stats: CacheStats | undefined): object {
  if (stats === undefined) return noCache;
  const { downloadSeconds, servedSeconds, ...counts } = stats;
  return {
    ...noCache,
    ...counts,
    downloadTime: Math.round(downloadSeconds * 1e9),
    queryLengthServed: Math.round(servedSeconds * 1e9),
  };
}

const noCache = {
  entriesFound: 0,
  entriesRequested: 0,
  entriesStored: 0,
  bytesReceived: 0,
  bytesSent: 0,
  requests: 0,
  downloadTime: 0,
  queryLengthServed: 0,
};

const bytesOf = (side: ReadStats) => side.headBytes + side.decompressedBytes;
const linesOf = (side: ReadStats) => side.headLines + side.decompressedLines;
