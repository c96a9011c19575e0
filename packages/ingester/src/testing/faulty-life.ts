import { type SegmentRef, SkaldError } from "@skald/model";
import type { Sleep } from "@skald/runtime";
import { FsStore, parseSegmentKey, segmentKey, tenantPrefix } from "@skald/storage";
import { type MemoryDisk, makeBatch } from "@skald/testkit";
import type { SegmentStore } from "../flush/uploader.js";
import {
  everything,
  readRows,
  readSegmentRows,
  type Setup,
  selectOnce,
  setUp,
  TestClock,
} from "./ingester.js";

const base = 20_400n * 86_400_000_000_000n;
const tenants = ["a", "b"];
const hourMs = 3_600_000;

/** What was pushed over all processes of a life, by text. */
interface Ledger {
  readonly acknowledged: Set<string>;
  readonly sent: Set<string>;
  pushes: number;
}

/** One process after the other over a disk: what a script does with each, and what must hold at any time. */
export class FaultyLife {
  readonly #disk: MemoryDisk;
  readonly #ledger: Ledger;
  readonly #clock: TestClock;
  #setup: Setup | undefined;
  #store: FsStore | undefined;

  /** On an empty disk, or on what another life left. */
  constructor(disk: MemoryDisk, before?: FaultyLife) {
    this.#disk = disk;
    const none = { acknowledged: new Set<string>(), sent: new Set<string>(), pushes: 0 };
    this.#ledger = before === undefined ? none : before.#ledger;
    this.#clock = before === undefined ? new TestClock() : before.#clock;
  }

  /** Another life with this past, over a copy of its disk. */
  copied(disk: MemoryDisk): FaultyLife {
    const copy = new FaultyLife(disk);
    for (const text of this.#ledger.acknowledged) copy.#ledger.acknowledged.add(text);
    for (const text of this.#ledger.sent) copy.#ledger.sent.add(text);
    copy.#ledger.pushes = this.#ledger.pushes;
    copy.#clock.ms = this.#clock.ms;
    return copy;
  }

  /** Starts a process on the disk that is there now. */
  async start(): Promise<void> {
    await this.#assertOn();
    const { root } = this.#disk;
    const store = new FsStore(`${root}/chunks`, { rememberIn: `${root}/store.json` });
    this.#store = store;
    this.#setup = await setUp({
      dir: `${root}/data`,
      clock: this.#clock,
      segmentStore: segmentStoreOf(store),
      changes: {
        wal: { fsync: "always" },
        flush_op_backoff: { min_period: retryMs, max_period: retryMs },
        bounds: { maxWalFileBytes: 600 },
      },
      sleep: retriesOnly(this.#disk),
    });
    await store.open();
    await this.#setup.ingester.start();
  }

  /** Pushes one line to each of two streams; resolves also when that fails. */
  async push(tenant: string): Promise<void> {
    await this.#assertOn();
    const { ingester } = this.#there();
    const number = this.#ledger.pushes++;
    const streams = ["x", "y"].map((app) => ({
      labels: { app },
      rows: [
        {
          ns: base + BigInt(number),
          line: `${tenant} ${app} ${number}`,
          metadata: { n: `${number}` },
        },
      ],
    }));
    const texts = streams.map(({ labels, rows: [row] }) => {
      return `{app="${labels.app}"} ${row?.ns} ${row?.line} n=${row?.metadata.n}`;
    });
    for (const text of texts) this.#ledger.sent.add(text);
    await expected(async () => {
      await ingester.push({ tenant, batch: makeBatch(streams) });
      for (const text of texts) this.#ledger.acknowledged.add(text);
    });
  }

  async flush(): Promise<void> {
    await this.#assertOn();
    await expected(() => this.#there().ingester.flush());
  }

  /** Does what is due after some hours: uploads, and drops what the store has. */
  async sweep(): Promise<void> {
    await this.#assertOn();
    this.#clock.ms += hourMs;
    await expected(() => this.#there().ingester.sweep());
  }

  /** Ends the process in order. */
  async stop(): Promise<void> {
    await this.#assertOn();
    await this.#end();
  }

  /** Lets go of what a process holds whose disk is gone, whenever that ends. */
  abandon(): void {
    void this.#end();
  }

  /** Nothing more is done in the name of a process whose power is off. */
  #assertOn(): Promise<void> {
    return this.#disk.isOff ? new Promise(() => undefined) : Promise.resolve();
  }

  async #end(): Promise<void> {
    await this.#setup?.ingester.stop().catch(ignore);
    await this.#store?.close().catch(ignore);
    this.#setup = undefined;
  }

  /** Compares what a query sees with the ledger; a query that fails says nothing, unless it must not. */
  async check(options: { readonly mustAnswer: boolean }): Promise<void> {
    await this.#assertOn();
    const rows: string[] = [];
    try {
      for (const tenant of tenants) rows.push(...(await this.#rowsOf(tenant)));
    } catch (error) {
      if (options.mustAnswer) throw error;
      assertExpected(error);
      return;
    }
    const seen = new Set(rows);
    if (seen.size < rows.length)
      throw new Error(`twice: ${rows.filter((row, i) => rows.indexOf(row) < i)}`);
    const lost = this.#lost(seen, options.mustAnswer);
    if (lost.length > 0) throw new Error(`acknowledged and not there: ${lost.join("; ")}`);
    const foreign = rows.filter((row) => !this.#ledger.sent.has(row));
    if (foreign.length > 0) throw new Error(`never sent: ${foreign.join("; ")}`);
  }

  /** Rows of heads, local segments, and of those segments that only the store has. */
  async #rowsOf(tenant: string): Promise<string[]> {
    const { ingester } = this.#there();
    const { sources } = await selectOnce(ingester, { ...everything, tenant });
    const local = new Set(sources.map(({ id }) => id));
    const stored = (await this.#listed(tenant)).filter(({ id }) => !local.has(id));
    return [...(await readRows(ingester, tenant)), ...stored.flatMap(readSegmentRows)];
  }

  /**
   * Rows that were acknowledged, and are neither seen nor in a segment that could not be read at the start. Such segments are
   * set aside, and counted; where that fails too, as may be while there are faults, they are left for the next start.
   */
  #lost(seen: ReadonlySet<string>, isSound: boolean): string[] {
    const lost = [...this.#ledger.acknowledged].filter((row) => !seen.has(row));
    if (lost.length === 0) return [];
    const dirs = isSound ? ["data/quarantine/"] : ["data/quarantine/", "data/segments/"];
    const aside = new Set(dirs.flatMap((dir) => this.#segmentsBelow(dir)).flatMap(readSegmentRows));
    return lost.filter((row) => !aside.has(row));
  }

  #segmentsBelow(dir: string): SegmentRef[] {
    return this.#disk.paths().flatMap((path) => {
      if (!path.startsWith(dir) || !path.endsWith(".parquet")) return [];
      const [, , tenant, name] = path.split("/") as [string, string, string, string];
      const location = { kind: "file", path: `${this.#disk.root}/${path}` } as const;
      const id = name.slice(0, -".parquet".length);
      return [{ kind: "segment", id, tenant, location, minNs: 0n, maxNs: 0n, sizeBytes: 0 }];
    });
  }

  async #listed(tenant: string): Promise<SegmentRef[]> {
    const { signal } = new AbortController();
    const refs: SegmentRef[] = [];
    const store = this.#store as FsStore;
    for await (const { key, sizeBytes } of store.list(tenantPrefix(tenant), { signal })) {
      const parsed = parseSegmentKey(key);
      const location = { kind: "file", path: `${this.#disk.root}/chunks/${key}` } as const;
      if (parsed !== undefined) refs.push({ kind: "segment", ...parsed, location, sizeBytes });
    }
    return refs;
  }

  #there(): Setup {
    if (this.#setup === undefined) throw new Error("the process is not started");
    return this.#setup;
  }
}

const retryMs = 1;

/** Retries come at once as long as there is a disk, and background work only when a test asks for it. */
function retriesOnly(disk: MemoryDisk): Sleep {
  return (ms, signal) =>
    new Promise((resolve, reject) => {
      if (ms <= retryMs && !disk.isOff) setImmediate(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
}

function segmentStoreOf(store: FsStore): SegmentStore {
  return {
    put: async (ref, path, options) => {
      await store.putFile(segmentKey(ref), path, { ...options, ifAbsent: true, isSynced: true });
    },
    has: async (ref, { signal }) => {
      try {
        return (await store.stat(segmentKey(ref), { signal })).sizeBytes === ref.sizeBytes;
      } catch (error) {
        if (error instanceof SkaldError && error.code === "not_found") return false;
        throw error;
      }
    },
  };
}

/** Lets errors of the file system and those made of them pass. */
async function expected(act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    assertExpected(error);
  }
}

export function assertExpected(error: unknown): void {
  if (error instanceof SkaldError || (error as NodeJS.ErrnoException).syscall !== undefined) return;
  throw error;
}

function ignore(error: unknown): void {
  assertExpected(error);
}
