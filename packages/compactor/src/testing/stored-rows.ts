import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dayNs, formatLabels, labelsFromObject, type SegmentRef } from "@skald/model";
import {
  bytesRange,
  HeadBlock,
  type ObjectStore,
  openHeadBlock,
  openSegment,
  SegmentCatalog,
  sealSegment,
  segmentKey,
} from "@skald/storage";
import { makeBatch } from "@skald/testkit";

const tenant = "t";
export const baseNs = 20_777n * dayNs;
export const table = { tenant, baseNs };
const { signal } = new AbortController();

/** A row as tests name it. */
export interface StoredRow {
  readonly app: string;
  /** ns since the start of the day */
  readonly time: number;
  readonly line: string;
}

/** Seals rows as an ingester does, and puts the segment into the store. */
export async function putRows(
  store: ObjectStore,
  id: string,
  rows: readonly StoredRow[],
): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "skald-rows-"));
  const path = join(directory, "sealed.parquet");
  try {
    const apps = [...new Set(rows.map(({ app }) => app))];
    const streamTexts = apps.map((app) => formatLabels(labelsFromObject({ app })));
    const blocks = apps.map((app, stream) =>
      blockOf(
        rows.filter((row) => row.app === app),
        stream,
      ),
    );
    const sealed = sealSegment({ tenant, id, path, heads: [{ blocks, streamTexts }] });
    const key = segmentKey({ tenant, id, ...sealed });
    await store.putFile(key, path, { signal });
    return key;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function blockOf(rows: readonly StoredRow[], stream: number) {
  const lineBytes = rows.reduce((sum, { line }) => sum + line.length, 0);
  const capacity = { rows: rows.length, runs: rows.length, pairs: 1, lineBytes, valueBytes: 1 };
  const head = new HeadBlock(baseNs, capacity);
  const batch = makeBatch([
    {
      labels: {},
      rows: rows.map(({ time, line }) => ({ ns: baseNs + BigInt(time), line })),
    },
  ]);
  head.append(batch, 0, rows.length, stream);
  head.publish(rows.length);
  return openHeadBlock(head.view());
}

/** Every row that a query of the day would read, sorted; a row that two segments have comes twice. */
export async function readRows(store: ObjectStore): Promise<string[]> {
  const rows: string[] = [];
  for (const ref of await listDay(store)) {
    const key = ref.location.kind === "object" ? ref.location.key : ref.location.path;
    const bytes = await store.get(key, { signal });
    const segment = openSegment(bytesRange(key, bytes), ref);
    for (let b = 0; b < segment.blockCount; b++) {
      const block = segment.block(b);
      const { bytes: lineBytes, offsets } = block.lines();
      const { runs } = block;
      for (let run = 0; run < runs.count; run++) {
        const text = segment.text(runs.stream[run]!);
        for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
          const line = Buffer.from(lineBytes.subarray(offsets[row], offsets[row + 1]));
          rows.push(`${text} ${block.timestamps()[row]} ${line}`);
        }
      }
    }
  }
  return rows.sort();
}

/** The segments of the day as a catalog that begins now tells them. */
export function listDay(store: ObjectStore): Promise<SegmentRef[]> {
  const catalog = new SegmentCatalog({
    store,
    locate: (key) => ({ kind: "object", key }),
    clock: { elapsedMs: () => 0 },
  });
  return catalog.list({ tenant, fromNs: baseNs, toNs: baseNs + dayNs }, { signal });
}

/** What `readRows` is to find of rows, each once. */
export function rowTexts(rows: readonly StoredRow[]): string[] {
  const texts = rows.map(({ app, time, line }) => `{app="${app}"} ${time} ${line}`);
  return [...new Set(texts)].sort();
}
