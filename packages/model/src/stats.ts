/** What one side of a query (ingesters or the store) was asked to read; counts and bytes. */
export interface ReadStats {
  /** Segments and heads that could hold rows of the query. */
  sources: number;
  /** Sources that were opened and scanned, and have streams of the query. */
  sourcesScanned: number;
  /** Batches of rows or partial results that the scans answered with. */
  batches: number;
  /** Rows that the scans answered with, or counted. */
  linesSent: number;
  /** Read from unsealed heads. */
  headBytes: number;
  headLines: number;
  /** Read from sealed blocks, after decompression. */
  decompressedBytes: number;
  decompressedLines: number;
  /** Stored bytes of the columns that were read. */
  compressedBytes: number;
  /** Sealed blocks with rows in range whose filters were asked before they were read. */
  filteredBlocks: number;
  /** Those of them that were not read: the filters refused them. */
  refusedBlocks: number;
  /** Blocks with rows in range; a segment that the index of its day counted as a whole is one. */
  blocks: number;
  /** Those of them that were read. */
  readBlocks: number;
  /** Those of them that headers counted, so that nobody read them. */
  countedBlocks: number;
  /** Bytes of lines in the blocks that had to be read, if no limit came first. */
  wantedBytes: number;
  /** Rows left out because another source has them too. */
  duplicates: number;
  /** Lines that every stage let pass. */
  postFilterLines: number;
  /** ns spent waiting for bytes of a store that is not a disk of this machine. */
  downloadNs: number;
  /** Requests to the store, and what they fetched into the cache of this machine. */
  fetchedRanges: number;
  fetchedPages: number;
  fetchedBytes: number;
  /** Pages of the cache that were there already. */
  cachedPages: number;
  cachedBytes: number;
}

export interface QueryStats {
  readonly ingester: ReadStats;
  readonly store: ReadStats;
  /** Ingesters that were asked. */
  readonly ingestersReached: number;
  /** Streams that the selectors matched. */
  readonly streams: number;
  readonly execSeconds: number;
  /** Time that the query waited for a thread. */
  readonly queueSeconds: number;
  readonly entriesReturned: number;
  /** Scans that ran. */
  readonly shards: number;
  /** Parts of the query that ran on their own; absent when it ran as one. */
  readonly subqueries?: number;
  /** What kept answers were good for; those that were not looked at are absent. */
  readonly caches?: Readonly<Partial<Record<CacheKind, CacheStats>>>;
  /** Where the time of the querier went; absent where nothing was asked of one. */
  readonly phases?: QueryPhases;
  /** Time in which the query was parsed and checked. */
  readonly planSeconds?: number;
}

/** Parts of the time of a query, seconds. */
export interface QueryPhases {
  /** Finding the segments and heads that may have rows of it. */
  readonly find: number;
  /** While at least one scan ran. */
  readonly scan: number;
  /** The rest: merging what scans found, and evaluating. */
  readonly merge: number;
}

/** What answers are kept of. */
export type CacheKind =
  | "result"
  | "statsResult"
  | "volumeResult"
  | "seriesResult"
  | "labelResult"
  | "instantMetricResult";

/** What one query had of a cache; counts and bytes. */
export interface CacheStats {
  readonly requests: number;
  readonly entriesRequested: number;
  readonly entriesFound: number;
  readonly entriesStored: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly downloadSeconds: number;
  /** Time of the query that was answered from there. */
  readonly servedSeconds: number;
}

export function emptyCacheStats(): CacheStats {
  return {
    ...{ requests: 0, entriesRequested: 0, entriesFound: 0, entriesStored: 0 },
    ...{ bytesReceived: 0, bytesSent: 0, downloadSeconds: 0, servedSeconds: 0 },
  };
}

export function addCacheStats(a: CacheStats, b: CacheStats): CacheStats {
  const entries = Object.entries(a).map(([key, value]) => [
    key,
    value + b[key as keyof CacheStats],
  ]);
  return Object.fromEntries(entries) as CacheStats;
}

/** The statistics of a query that ran in parts. */
export function joinQueryStats(all: readonly QueryStats[]): QueryStats {
  const ingester = emptyReadStats();
  const store = emptyReadStats();
  for (const stats of all) {
    addReadStats(ingester, stats.ingester);
    addReadStats(store, stats.store);
  }
  const most = (pick: (stats: QueryStats) => number) => Math.max(0, ...all.map(pick));
  const sum = (pick: (stats: QueryStats) => number) => all.reduce((n, one) => n + pick(one), 0);
  return {
    ingester,
    store,
    ingestersReached: most((stats) => stats.ingestersReached),
    streams: most((stats) => stats.streams),
    execSeconds: sum((stats) => stats.execSeconds),
    queueSeconds: most((stats) => stats.queueSeconds),
    entriesReturned: sum((stats) => stats.entriesReturned),
    shards: sum((stats) => stats.shards),
    phases: {
      find: sum(({ phases }) => phases?.find ?? 0),
      scan: sum(({ phases }) => phases?.scan ?? 0),
      merge: sum(({ phases }) => phases?.merge ?? 0),
    },
  };
}

export function emptyReadStats(): ReadStats {
  return {
    ...{ sources: 0, sourcesScanned: 0, batches: 0, linesSent: 0, headBytes: 0, headLines: 0 },
    ...{ decompressedBytes: 0, decompressedLines: 0, compressedBytes: 0 },
    ...{ blocks: 0, readBlocks: 0, countedBlocks: 0, wantedBytes: 0 },
    ...{ filteredBlocks: 0, refusedBlocks: 0, duplicates: 0, postFilterLines: 0, downloadNs: 0 },
    ...{ fetchedRanges: 0, fetchedPages: 0, fetchedBytes: 0, cachedPages: 0, cachedBytes: 0 },
  };
}

/** Adds `more` to `total`, field by field. */
export function addReadStats(total: ReadStats, more: ReadStats): void {
  for (const key of Object.keys(total) as (keyof ReadStats)[]) total[key] += more[key];
}
