import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { dayNs, errorCodeOf, formatLabels, invalidArgument, type Labels } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { type ObjectStore, segmentKey } from "@skald/storage";
import { unsupported } from "./bytes.js";
import type { ChunkRange } from "./chunk.js";
import { ChunkFiles, type LokiFiles } from "./files.js";
import { type LokiChunk, readIndexFile } from "./index-file.js";
import type { ImportedChunks, ImportJob } from "./jobs.js";
import { ImportLedger } from "./ledger.js";

export interface LokiImportOptions {
  readonly source: LokiFiles;
  readonly target: ObjectStore;
  /** Only these tenants; all of them when empty. */
  readonly tenants: readonly string[];
  /** Rows with times in this range. */
  readonly range: ChunkRange;
  /** Segments that are made at a time. */
  readonly parallel: number;
  /** Runs `importChunks` on a thread. */
  readonly run: (job: ImportJob) => Promise<ImportedChunks>;
  readonly onProgress?: (progress: LokiImportProgress) => void;
  readonly signal: AbortSignal;
}

export interface LokiImportProgress {
  /** Chunks that are done, those of earlier runs included, and all that are wanted so far. */
  chunks: number;
  chunksWanted: number;
  /** Chunks that an earlier run imported. */
  chunksBefore: number;
  rows: number;
  /** Rows that several chunks had. */
  rowsShared: number;
  /** Bytes of lines. */
  bytes: number;
  segments: number;
  /** Chunks that could not be read, with the reason. */
  readonly failed: { readonly name: string; readonly error: string }[];
}

/** Index files of all tenants, of an index period of one day: `index/<prefix><day>/[<tenant>/]<name>.tsdb.gz`. */
const indexFolder = "index/";
const indexFile = /^index\/[^/]*?(\d+)\/(?:([^/]+)\/)?[^/]+\.tsdb(\.gz)?$/;
/** Other files that a store has below the folder of its index. */
const otherFiles = /^index\/(delete_requests\/|[^/]*$)/;
/** Lines that one segment gets, about. */
const segmentBytes = 64 * 1024 * 1024;
/** Chunks of one segment that are opened at the same time; a segment may be made of tens of thousands. */
const opensAtATime = 32;
const maxIndexBytes = 2 * 1024 * 1024 * 1024;

/** A chunk with what is needed to read it. */
interface WantedChunk extends LokiChunk {
  /** `<tenant>/<fingerprint>/<from>:<through>:<checksum>`; also its name in the store. */
  readonly name: string;
  readonly labels: Labels;
}

/**
 * Copies the rows of a store of Loki (schema v13, TSDB) into segments of a store of Skald, a day at a time. The ledger in the
 * target names the chunks of each segment, so that a second run goes on where the first one ended, and adds nothing when
 * it is repeated. Chunks that cannot be read are left out and named. Throws when the source has another schema.
 */
export async function importLokiStore(options: LokiImportOptions): Promise<LokiImportProgress> {
  const progress: LokiImportProgress = {
    ...{
      chunks: 0,
      chunksWanted: 0,
      chunksBefore: 0,
      rows: 0,
      rowsShared: 0,
      bytes: 0,
      segments: 0,
    },
    failed: [],
  };
  const directory = await mkdtemp(join(tmpdir(), "skald-import-"));
  try {
    const run = new LokiImport(options, progress, directory);
    for (const [day, files] of await indexFiles(options.source)) await run.importDay(day, files);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
  return progress;
}

/** The index files of each day, days since the epoch, ascending. */
async function indexFiles(source: LokiFiles): Promise<[bigint, string[]][]> {
  const names = await source.list(indexFolder);
  const days = new Map<bigint, string[]>();
  for (const name of names) {
    const match = indexFile.exec(name);
    if (match !== null) {
      const day = BigInt(match[1] as string);
      days.set(day, [...(days.get(day) ?? []), name]);
    } else if (!otherFiles.test(name)) {
      throw unsupported(name, "it is no TSDB index; only schema v13 with `store: tsdb` is read");
    }
  }
  if (days.size === 0)
    throw invalidArgument(
      "the source has no index files: it has to be the folder or bucket with Loki's `index/` in it",
    );
  return [...days].sort(([a], [b]) => (a < b ? -1 : 1));
}

class LokiImport {
  readonly #options: LokiImportOptions;
  readonly #progress: LokiImportProgress;
  readonly #directory: string;
  readonly #chunks: ChunkFiles;

  constructor(options: LokiImportOptions, progress: LokiImportProgress, directory: string) {
    this.#options = options;
    this.#progress = progress;
    this.#directory = directory;
    this.#chunks = new ChunkFiles(options.source);
  }

  /** Imports the rows of one day. A chunk that reaches into two days is in the index of both. */
  async importDay(day: bigint, files: readonly string[]): Promise<void> {
    const { range } = this.#options;
    const baseNs = day * dayNs;
    const fromNs = range.fromNs > baseNs ? range.fromNs : baseNs;
    const toNs = range.toNs < baseNs + dayNs ? range.toNs : baseNs + dayNs;
    if (fromNs >= toNs) return;
    const wanted = await this.#readIndexes(files, { fromNs, toNs });
    for (const [tenant, chunks] of wanted)
      await this.#importTenant(tenant, { baseNs, fromNs, toNs }, [...chunks.values()]);
  }

  /** The chunks with rows in a range, by tenant and name: files of the same day name the same chunks. */
  async #readIndexes(
    files: readonly string[],
    { fromNs, toNs }: ChunkRange,
  ): Promise<Map<string, Map<string, WantedChunk>>> {
    const { source, tenants, signal } = this.#options;
    const wanted = new Map<string, Map<string, WantedChunk>>();
    const [fromMs, toMs] = [fromNs / 1_000_000n, (toNs + 999_999n) / 1_000_000n];
    for (const file of files) {
      signal.throwIfAborted();
      const ofTenant = indexFile.exec(file)?.[2];
      const bytes = await source.read(file);
      const index = file.endsWith(".gz")
        ? gunzipSync(bytes, { maxOutputLength: maxIndexBytes })
        : bytes;
      for (const { tenant: named, fingerprint, labels, chunks } of readIndexFile(index, file)) {
        const tenant = named || ofTenant || "fake";
        if (tenants.length > 0 && !tenants.includes(tenant)) continue;
        const ofThis = wanted.get(tenant) ?? new Map<string, WantedChunk>();
        wanted.set(tenant, ofThis);
        for (const chunk of chunks) {
          if (chunk.throughMs < fromMs || chunk.fromMs >= toMs) continue;
          const { fromMs: from, throughMs: through, checksum } = chunk;
          const name = `${tenant}/${fingerprint.toString(16)}/${[from, through, checksum].map((n) => n.toString(16)).join(":")}`;
          ofThis.set(name, { ...chunk, name, labels });
        }
      }
    }
    return wanted;
  }

  async #importTenant(
    tenant: string,
    range: ChunkRange & { readonly baseNs: bigint },
    chunks: readonly WantedChunk[],
  ): Promise<void> {
    const { target, parallel, signal } = this.#options;
    const ledger = await ImportLedger.open(target, { tenant, ...range, signal });
    const byName = new Map(chunks.map((chunk) => [chunk.name, chunk]));
    const left = chunks.filter(({ name }) => !ledger.has(name));
    this.#progress.chunksWanted += chunks.length;
    this.#progress.chunksBefore += chunks.length - left.length;
    this.#progress.chunks += chunks.length - left.length;
    // What an earlier run began is done again just so: the segment gets the same name.
    const begun = ledger.begun.map(({ chunks: names }) =>
      names.flatMap((name) => byName.get(name) ?? []),
    );
    const planned = new Set(begun.flat());
    const batches = [...begun, ...cutBatches(left.filter((chunk) => !planned.has(chunk)))];
    const next = batches.values();
    const work = async (): Promise<void> => {
      for (const batch of next) {
        signal.throwIfAborted();
        await this.#importBatch(ledger, tenant, range, batch);
      }
    };
    await Promise.all(Array.from({ length: parallel }, work));
  }

  async #importBatch(
    ledger: ImportLedger,
    tenant: string,
    range: ChunkRange & { readonly baseNs: bigint },
    batch: readonly WantedChunk[],
  ): Promise<void> {
    const { target, run, signal, onProgress } = this.#options;
    const progress = this.#progress;
    const chunks = await this.#openChunks(batch);
    const names = chunks.map(({ name }) => name);
    const id = `loki-${createHash("sha256")
      .update(`${tenant} ${range.fromNs} ${range.toNs} ${names.join(" ")}`)
      .digest("hex")
      .slice(0, 32)}`;
    const path = join(this.#directory, `${id}.parquet`);
    await ledger.begin(id, names);
    const { sealed, rows, damaged } = await run({ ...range, tenant, id, path, chunks });
    progress.failed.push(...damaged);
    if (sealed !== undefined) {
      const { minNs, maxNs } = sealed;
      await target.putFile(segmentKey({ tenant, id, minNs, maxNs }), path, {
        ifAbsent: true,
        isSynced: true,
        signal,
      });
      await rm(path, { force: true });
      progress.segments++;
      progress.rows += sealed.rows;
      progress.rowsShared += rows - sealed.rows;
      progress.bytes += sealed.bytes;
    }
    await ledger.finish(
      id,
      names.filter((name) => !damaged.some((one) => one.name === name)),
    );
    progress.chunks += batch.length;
    onProgress?.(progress);
  }

  /** Objects of chunks; one that is not there is noted: Loki's retention deletes them before their index. */
  async #openChunks(batch: readonly WantedChunk[]): Promise<ImportJob["chunks"]> {
    const found: (ImportJob["chunks"][number] | undefined)[] = [];
    const { signal } = this.#options;
    await runConcurrently(batch.entries(), opensAtATime, signal, async ([at, { name, labels }]) => {
      try {
        found[at] = { name, labels, object: await this.#chunks.open(name) };
      } catch (error) {
        if (errorCodeOf(error) !== "not_found") throw error;
        this.#progress.failed.push({ name, error: `${name} is not in the store` });
      }
    });
    return found.filter((chunk) => chunk !== undefined);
  }
}

/** Cuts chunks into batches of about one segment, in the order in which a segment has its rows. */
function cutBatches(chunks: readonly WantedChunk[]): WantedChunk[][] {
  const texts = new Map(chunks.map(({ labels }) => [labels, formatLabels(labels)]));
  const sorted = [...chunks].sort((a, b) => {
    const [one, other] = [texts.get(a.labels)!, texts.get(b.labels)!];
    return one === other ? a.fromMs - b.fromMs : one < other ? -1 : 1;
  });
  const batches: WantedChunk[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const chunk of sorted) {
    if (bytes >= segmentBytes) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)!.push(chunk);
    bytes += 1024 * Math.max(1, chunk.kib);
  }
  return batches;
}
