import { copyFile, mkdir, mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import type { ScanFunctions, Selection, SelectRequest, SourceRef } from "@skald/contracts";
import { scannerOf } from "@skald/contracts/testing/fakes";
import type { Block, Matcher, MetadataColumn, SegmentRef } from "@skald/model";
import type { Logger, Sleep } from "@skald/runtime";
import { defaultLimits, defaultsOf, readSchema } from "@skald/runtime/config";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { refsOf, sourcesOf, TailRunner } from "@skald/scan";
import {
  type LocalRef,
  mergeSegments,
  openHeadBlock,
  openSegmentFile,
  readTexts,
  sealSegment,
  textsByNumber,
  type WalDisk,
} from "@skald/storage";
import type { MergeLocal } from "../flush/local-merger.js";
import type { Seal, SealJob } from "../flush/sealer.js";
import type { SegmentStore } from "../flush/uploader.js";
import { Ingester } from "../ingester.js";
import { type IngesterConfig, ingesterConfig } from "../settings/config.js";
import { defaultBounds, type IngesterBounds, type IngesterLimits } from "../settings/options.js";

/** Keys of the configuration and bounds that a test changes. */
export interface Changes extends Partial<Omit<IngesterConfig, "wal">> {
  readonly wal?: Partial<IngesterConfig["wal"]>;
  readonly bounds?: Partial<IngesterBounds>;
}

const defaultConfig = defaultsOf(readSchema(ingesterConfig)) as IngesterConfig;

/** A clock that stands still until it is moved, and the time of day with it. */
export class TestClock {
  ms = 1_760_000_000_000;
  /** How far the time of day was set back. */
  setBackMs = 0;

  nowMs(): number {
    return this.ms - this.setBackMs;
  }

  elapsedMs(): number {
    return this.ms;
  }
}

/** An object store that can be down. */
export class TestStore implements SegmentStore {
  readonly objects = new Map<string, { ref: SegmentRef; path: string }>();
  readonly dir: string;
  isDown = false;
  puts = 0;

  constructor(dir: string) {
    this.dir = dir;
  }

  async put(ref: SegmentRef, path: string): Promise<void> {
    if (this.isDown) throw new Error("the store is down");
    this.puts++;
    const copy = join(this.dir, `${ref.id}.object`);
    await copyFile(path, copy);
    const location = { kind: "file", path: copy } as const;
    this.objects.set(ref.id, { ref: { ...ref, location }, path: copy });
  }

  has(ref: SegmentRef): Promise<boolean> {
    if (this.isDown) return Promise.reject(new Error("the store is down"));
    return Promise.resolve(this.objects.has(ref.id));
  }
}

export interface Setup {
  readonly dir: string;
  readonly clock: TestClock;
  readonly store: TestStore;
  readonly metrics: Metrics;
  readonly ingester: Ingester;
}

export interface SetupOptions {
  /** What its threads say of digests. */
  readonly digests?: ScanFunctions<LocalRef>["digests"];
  readonly dir?: string;
  readonly clock?: TestClock;
  readonly store?: TestStore;
  /** Another store than that of the setup. */
  readonly segmentStore?: SegmentStore;
  readonly seal?: Seal;
  readonly merge?: MergeLocal;
  readonly disk?: WalDisk;
  readonly sleep?: Sleep;
  readonly log?: Logger;
  /** Runs before a task of tails, and says how many ms the thread worked for it; 1 if not given. */
  readonly beforeTails?: () => Promise<number | undefined>;
  readonly limits?: Partial<IngesterLimits>;
  readonly changes?: Changes;
}

/** A directory; the environment of the tests removes it after those of the file. */
export function newDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), "skald-ingester-"));
}

/** An ingester over a directory, not started yet. */
export async function setUp(options: SetupOptions = {}): Promise<Setup> {
  const dir = options.dir ?? (await newDir());
  const clock = options.clock ?? new TestClock();
  const store = options.store ?? new TestStore(dir);
  const metrics = new Metrics();
  const { bounds, ...changes } = options.changes ?? {};
  const ownWal = { dir: join(dir, "wal"), disk_full_threshold: 0 };
  const wal = { ...defaultConfig.wal, ...ownWal, ...changes.wal };
  const limits = {
    ...defaultLimits,
    max_global_streams_per_user: 0,
    per_stream_rate_limit: 1e12,
    per_stream_rate_limit_burst: 1e12,
    creation_grace_period: 600_000,
    reject_old_samples: true,
    ...options.limits,
  };
  const ingester = new Ingester({
    options: {
      instanceId: "i",
      dataDir: dir,
      config: { ...defaultConfig, ...changes, wal },
      bounds: { ...defaultBounds, ...bounds },
    },
    limitsOf: () => limits,
    seal: options.seal ?? sealHere,
    merge: options.merge ?? mergeHere,
    store: options.segmentStore ?? store,
    scanner: scannerOf<LocalRef>({
      streams: noteAsked,
      ...(options.digests && { digests: options.digests }),
    }),
    runTails: async (task) => {
      const workMs = (await options.beforeTails?.()) ?? 1;
      return { found: new TailRunner().run(task, () => undefined), workMs };
    },
    log: options.log ?? silentLogger(),
    metrics,
    clock,
    steadyClock: clock,
    sleep: options.sleep ?? untilAborted,
    ...(options.disk === undefined ? {} : { disk: options.disk }),
  });
  return { dir, clock, store, metrics, ingester };
}

/** Background work happens only when a test asks for it. */
export const untilAborted: Sleep = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** Seals on this thread. */
export const sealHere: Seal = (job: SealJob) => {
  const heads = job.heads.map(({ blocks, ...streams }) => ({
    blocks: blocks.map(openHeadBlock),
    streamTexts: textsByNumber(streams),
  }));
  return Promise.resolve(sealSegment({ ...job, heads }));
};

/** A merge at once. */
export const mergeHere: MergeLocal = async ({ inputs, ...job }) => {
  const opened = inputs.map(({ ref }) => openSegmentFile(ref));
  try {
    const steps = mergeSegments({ ...job, inputs: opened });
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    return step.value;
  } finally {
    for (const { close } of opened) close();
  }
};

/** A row as text: `{a="1"} 5000000001 line k=v`. */
export type RowText = string;

export const everything: Omit<SelectRequest, "tenant"> = {
  matchers: [],
  fromNs: -(1n << 62n),
  toNs: 1n << 62n,
};

/** What scans were asked to read last. */
let asked: readonly LocalRef[] = [];
const noteAsked: ScanFunctions<LocalRef>["streams"] = async (task) => {
  asked = refsOf(task);
  return new Uint8Array(0);
};

/** What the threads of an ingester's process read for sources that it selected. */
export async function localRefs(
  ingester: Ingester,
  sources: readonly SourceRef[],
): Promise<readonly LocalRef[]> {
  const { fromNs, toNs } = everything;
  const share = { tenant: "t", actors: [], cost: 0 };
  const options = { signal: new AbortController().signal, share };
  const task = { sources: sourcesOf(sources), selectors: [], fromNs, toNs };
  await ingester.run("streams", task, options);
  return asked;
}

/** What a query finds that ends at once. */
export async function selectOnce(ingester: Ingester, request: SelectRequest): Promise<Selection> {
  const selection = await ingester.select(request);
  if (selection.view !== undefined) await ingester.release(selection.view);
  return selection;
}

/** All rows that a query would see, by stream, time and arrival, from heads and segments. */
export async function readRows(
  ingester: Ingester,
  tenant: string,
  request: Partial<SelectRequest> = {},
): Promise<RowText[]> {
  const { view, sources } = await ingester.select({ ...everything, ...request, tenant });
  const rows: { text: string; ns: bigint; row: RowText }[] = [];
  for (const source of await localRefs(ingester, sources)) {
    if (source.kind === "head") {
      const all = readTexts(source.texts);
      const texts = new Map(Array.from(source.streams, (n, i) => [n, all[i] as string]));
      for (const ref of source.blocks) readBlock(openHeadBlock(ref), (n) => texts.get(n), rows);
    } else readSegment(source, rows);
  }
  if (view !== undefined) await ingester.release(view);
  rows.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : Number(a.ns - b.ns)));
  return rows.map(({ row }) => row);
}

/** Rows of the ingester and of the segments that only the store has, sorted as texts. */
export async function readUnion({ ingester, store }: Setup, tenant: string): Promise<RowText[]> {
  const { sources } = await selectOnce(ingester, { ...everything, tenant });
  const known = new Set(sources.map(({ id }) => id));
  const stored = [...store.objects.values()].filter(({ ref }) => {
    return ref.tenant === tenant && !known.has(ref.id);
  });
  const rows = await readRows(ingester, tenant);
  return [...rows, ...stored.flatMap(({ ref }) => readSegmentRows(ref))].sort();
}

/** What is left when the process is killed now: the log is copied before the segments, as it is cut after them. */
export async function copyFiles(setup: Setup, dir: string): Promise<void> {
  for (const part of ["wal", "segments"]) {
    const from = join(setup.dir, part);
    await mkdir(join(dir, part), { recursive: true });
    for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const to = join(dir, part, relative(from, path));
      await mkdir(dirname(to), { recursive: true });
      await copyFile(path, to).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
      });
    }
  }
}

/** All rows of a segment's file. */
export function readSegmentRows(ref: SegmentRef): RowText[] {
  const rows: { text: string; ns: bigint; row: RowText }[] = [];
  readSegment(ref, rows);
  return rows.map(({ row }) => row);
}

function readSegment(ref: SegmentRef, rows: { text: string; ns: bigint; row: RowText }[]): void {
  const { segment, close } = openSegmentFile(ref);
  for (let i = 0; i < segment.blockCount; i++) {
    readBlock(segment.block(i), (stream) => segment.text(stream), rows);
  }
  close();
}

function readBlock(
  block: Block,
  textOf: (stream: number) => string | undefined,
  rows: { text: string; ns: bigint; row: RowText }[],
): void {
  const { runs } = block;
  const { bytes, offsets } = block.lines();
  const times = block.timestamps();
  const metadata = metadataTexts(block);
  for (let run = 0; run < runs.count; run++) {
    const text = textOf(runs.stream[run] as number);
    if (text === undefined) continue;
    for (let row = runs.rowStart[run] as number; row < (runs.rowStart[run + 1] as number); row++) {
      const ns = block.baseNs + BigInt(times[row] as number);
      const line = Buffer.from(bytes.slice(offsets[row], offsets[row + 1])).toString();
      rows.push({ text, ns, row: `${text} ${ns} ${line}${metadata[row]}` });
    }
  }
}

/** The metadata of each row; column by column, as a block may have thousands. */
function metadataTexts(block: Block): string[] {
  const texts = Array.from({ length: block.rowCount }, () => "");
  for (const name of [...block.metadataNames()].sort()) {
    const column = block.metadata(name);
    if (column === undefined) continue;
    for (let row = 0; row < block.rowCount; row++) {
      const value = metadataValue(column, row);
      if (value !== "") texts[row] += ` ${name}=${value}`;
    }
  }
  return texts;
}

function metadataValue(column: MetadataColumn, row: number): string {
  const [{ bytes, offsets }, at] =
    column.kind === "dictionary" ? [column.dictionary, column.codes[row]!] : [column, row];
  const [from, to] = [offsets[at]!, offsets[at + 1]!];
  return from === to ? "" : Buffer.from(bytes.slice(from, to)).toString();
}

export function equals(name: string, value: string): Matcher {
  return { name, op: "=", value };
}
