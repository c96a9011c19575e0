import { rm } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { type Batch, formatLabels, labelsFromObject } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { makeBatch, makePushBody, testRuns } from "@skald/testkit";
import fc from "fast-check";
import {
  copyFiles,
  newDir,
  readRows,
  readUnion,
  type Setup,
  setUp,
  TestStore,
} from "../testing/ingester.js";

const second = 1_000_000_000n;
const midnight = 20_400n * 86_400n * second;
const windowNs = 3600n * second;

/** One row of a generated push: which stream, when, what. */
interface Row {
  readonly stream: number;
  readonly ns: bigint;
  readonly line: string;
  readonly trace: string;
  /** Refused by the distributor: in the body, and not in the batch. */
  readonly isDropped: boolean;
}

interface Push {
  readonly tenant: string;
  readonly rows: readonly Row[];
  /** How it is logged. */
  readonly form: "body" | "columns";
}

/** Few times and texts, so that equal rows, equal times and rows out of order are common; around midnight. */
const row: fc.Arbitrary<Row> = fc.record({
  stream: fc.nat(3),
  ns: fc.oneof(
    fc.integer({ min: -3, max: 6 }).map((step) => midnight + BigInt(step)),
    fc.integer({ min: -90, max: 90 }).map((minutes) => midnight + BigInt(minutes) * 60n * second),
  ),
  line: fc.constantFrom("", "a", "b", "a longer line"),
  trace: fc.constantFrom("", "", "1", "2"),
  isDropped: fc.nat(9).map((n) => n === 0),
});
const push: fc.Arbitrary<Push> = fc.record({
  tenant: fc.constantFrom("t1", "t2"),
  rows: fc.array(row, { minLength: 1, maxLength: 12 }).map((rows) => sortByStream(rows)),
  form: fc.constantFrom("body", "columns"),
});

function sortByStream(rows: readonly Row[]): Row[] {
  return [...rows].sort((a, b) => a.stream - b.stream);
}

const labelsOf = (stream: number) => ({ app: `a${stream}`, env: "x" });
const textOf = (stream: number) => formatLabels(labelsFromObject(labelsOf(stream)));

function batchOf({ rows, form }: Push): Batch {
  const numbers = [...new Set(rows.map(({ stream }) => stream))];
  const rowsOf = (stream: number) => rows.filter((one) => one.stream === stream);
  const metadataOf = ({ trace }: Row) => (trace === "" ? {} : { metadata: { trace } });
  if (form === "columns") {
    return makeBatch(
      numbers.map((stream) => ({
        labels: labelsOf(stream),
        rows: rowsOf(stream)
          .filter(({ isDropped }) => !isDropped)
          .map((one) => ({ ns: one.ns, line: one.line, ...metadataOf(one) })),
      })),
    );
  }
  const body = makePushBody(
    numbers.map((stream) => ({
      labels: textOf(stream),
      rows: rowsOf(stream).map(({ ns, line, trace }) => {
        return { ns, line, metadata: trace === "" ? [] : [["trace", trace] as const] };
      }),
    })),
  );
  const source = { format: "protobuf", encoding: "identity", body } as const;
  const dropped = rows.flatMap(({ isDropped }, ordinal) => (isDropped ? [ordinal] : []));
  const streams = numbers.flatMap((stream, ordinal) => {
    const left = rowsOf(stream).some(({ isDropped }) => !isDropped);
    const labels = labelsFromObject(labelsOf(stream));
    return left ? [{ ordinal, labels, text: textOf(stream) }] : [];
  });
  return assembleBatch(decodeBody(source), {
    streams,
    dropped: Uint32Array.from(dropped),
    levels: new Uint8Array(rows.length - dropped.length),
    source,
  });
}

/** What must be stored, said in the simplest way. */
class Model {
  readonly #rows = new Map<string, { text: string; ns: bigint; row: string }[]>();
  readonly #newest = new Map<string, bigint>();

  apply({ tenant, rows }: Push): void {
    const stored = this.#rows.get(tenant) ?? [];
    this.#rows.set(tenant, stored);
    for (const { stream, ns, line, trace, isDropped } of rows) {
      if (isDropped) continue;
      const key = `${tenant} ${stream}`;
      const newest = this.#newest.get(key) ?? ns;
      if (ns < newest - windowNs) continue;
      if (ns >= newest) this.#newest.set(key, ns);
      const text = textOf(stream);
      const one = `${text} ${ns} ${line}${trace === "" ? "" : ` trace=${trace}`}`;
      if (!stored.some((known) => known.row === one)) stored.push({ text, ns, row: one });
    }
  }

  rows(tenant: string): string[] {
    const rows = [...(this.#rows.get(tenant) ?? [])];
    rows.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : Number(a.ns - b.ns)));
    return rows.map((one) => one.row);
  }
}

async function expectModel({ ingester }: Setup, model: Model): Promise<void> {
  for (const tenant of ["t1", "t2"]) {
    expect(await readRows(ingester, tenant)).toEqual(model.rows(tenant));
  }
}

/** Starts another ingester on what a killed one has left on the disk. */
async function killAndRestart(setup: Setup, changes = {}): Promise<Setup> {
  const dir = await newDir();
  await copyFiles(setup, dir);
  await setup.ingester.stop({ flush: false });
  await rm(setup.dir, { recursive: true });
  const { clock, store } = setup;
  const next = await setUp({ dir, clock, store, changes });
  await next.ingester.start();
  await next.ingester.replayed;
  return next;
}

async function expectUnion(setup: Setup, model: Model): Promise<void> {
  for (const tenant of ["t1", "t2"]) {
    expect(await readUnion(setup, tenant)).toEqual(model.rows(tenant).sort());
  }
}

async function finish({ ingester, dir }: Setup): Promise<void> {
  await ingester.stop({ flush: false });
  await rm(dir, { recursive: true });
}

describe("Ingester, by random pushes", () => {
  it("stores what the model says, in order of arrival, through kills", async () => {
    const step = fc.oneof({ arbitrary: push, weight: 5 }, fc.constant("kill" as const));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const model = new Model();
        const small = { bounds: { maxWalFileBytes: 600 } };
        let setup = await setUp({ changes: small });
        await setup.ingester.start();
        for (const one of steps) {
          if (one === "kill") setup = await killAndRestart(setup, small);
          else {
            await setup.ingester.push({ tenant: one.tenant, batch: batchOf(one) });
            model.apply(one);
          }
        }
        await expectModel(setup, model);
        setup = await killAndRestart(setup, small);
        await expectModel(setup, model);
        await finish(setup);
      }),
      { numRuns: testRuns(30) },
    );
  });

  it("has each row once, wherever heads are sealed, uploaded, dropped or lost by a kill", async () => {
    const step = fc.oneof(
      { arbitrary: push, weight: 6 },
      fc.constantFrom("kill", "flush", "sweep", "down", "up", "later", "replay small"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
        const model = new Model();
        const changes = {
          head_target_size: 300,
          chunk_retain_period: 1000,
          bounds: { maxWalFileBytes: 500, maxPinnedWalBytes: 1500 },
        };
        const dir = await newDir();
        const store = new TestStore(await newDir());
        let setup = await setUp({ dir, store, changes });
        await setup.ingester.start();
        let count = 0;
        for (const one of steps) {
          if (typeof one === "object") {
            // Lines differ, because a row that comes again after a seal is stored again until a query sees both.
            const rows = one.rows.map((each) => ({
              ...each,
              ns: midnight + (each.ns - midnight) / 4n,
              line: `${each.line}${count++}`,
            }));
            const unique = { ...one, rows };
            await setup.ingester.push({ tenant: one.tenant, batch: batchOf(unique) });
            model.apply(unique);
          } else if (one === "kill") setup = await killAndRestart(setup, changes);
          else if (one === "replay small") {
            const wal = { replay_memory_ceiling: 1 };
            setup = await killAndRestart(setup, { ...changes, wal });
          } else if (one === "flush") await setup.ingester.flush().catch(() => undefined);
          else if (one === "sweep") await setup.ingester.sweep();
          else if (one === "later") setup.clock.ms += 40 * 60_000;
          else setup.store.isDown = one === "down";
        }
        await expectUnion(setup, model);
        setup = await killAndRestart(setup, changes);
        await expectUnion(setup, model);
        await finish(setup);
        await rm(store.dir, { recursive: true });
      }),
      { numRuns: testRuns(30) },
    );
  });
});
