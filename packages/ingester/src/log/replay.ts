import type { Batch, BatchStream } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import {
  type BatchRange,
  type ForwardRecord,
  type PushBodyRecord,
  type PushColumnsRecord,
  replayWal,
  type StreamsRecord,
  type WalDamage,
  type WalDisk,
  type WalPosition,
  type WalRecord,
} from "@skald/storage";
import { timeOf } from "../admit/admission.js";
import type { Tenant } from "../tenant/tenant.js";
import type { ReplayedHeads } from "./replayed-heads.js";
import type { SealedHeads } from "./sealed-heads.js";

export interface ReplayContext {
  readonly dir: string;
  /** Number of the first file that is not replayed: this process writes it. */
  readonly endFile: number;
  readonly disk?: WalDisk;
  /** Heads that are segments already, whole or up to a place of the log. */
  readonly sealed: SealedHeads;
  readonly tenantOf: (name: string) => Tenant;
  readonly addStream: (tenant: Tenant, text: string) => number;
  readonly heads: ReplayedHeads;
  /** Called after each record; may wait until memory is free again. */
  readonly afterRecord: (position: WalPosition) => Promise<void> | undefined;
  readonly onDamage: (damage: WalDamage) => void;
}

export interface ReplaySummary {
  files: number;
  records: number;
  bytes: number;
  entries: number;
  streams: number;
}

/**
 * Puts the rows of the log that are in no segment back into heads, under the ids that they had. Nothing is decided
 * again: the log says which rows were taken. Streams get new numbers.
 */
export async function replayLog(context: ReplayContext): Promise<ReplaySummary> {
  const replay = new Replay(context);
  const total = await replayWal({
    dir: context.dir,
    endFile: context.endFile,
    ...(context.disk === undefined ? {} : { disk: context.disk }),
    onRecord: (record, position) => {
      replay.apply(record, position);
      return context.afterRecord(position);
    },
    onNamesAhead: (record, file) => replay.nameAhead(record, file),
    onDamage: context.onDamage,
  });
  return { ...total, entries: replay.entries, streams: replay.streams };
}

class Replay {
  entries = 0;
  streams = 0;
  readonly #context: ReplayContext;
  #file = 0;
  /** By tenant: number in the log file -> number in the stream table. */
  readonly #numbers = new Map<string, Map<number, number>>();

  constructor(context: ReplayContext) {
    this.#context = context;
  }

  apply(record: WalRecord, position: WalPosition): void {
    this.#enter(position.file);
    if (record.kind === "streams") this.#name(record);
    else this.#restore(record, position);
  }

  #restore(
    record: PushBodyRecord | PushColumnsRecord | ForwardRecord,
    position: WalPosition,
  ): void {
    const open = new Map<number, string>();
    for (const { day, id } of record.heads) {
      if (!this.#context.sealed.covers(record.tenant, id, position)) open.set(day, id);
    }
    if (open.size === 0) return;
    const decoded = this.#decode(record, position);
    if (decoded === undefined) return;
    const tenant = this.#context.tenantOf(record.tenant);
    if (record.kind === "forward") this.#replace(tenant, open);
    for (const range of decoded.ranges) {
      forEachDay(decoded.batch, range, (day, rowFrom, rowTo) => {
        const id = open.get(day);
        if (id === undefined) return;
        const rows = { ...range, rowFrom, rowTo };
        const { heads } = this.#context;
        const head = heads.headFor(tenant, day, id);
        heads.restore(tenant, head, decoded.batch, rows, position.file);
        this.entries += rowTo - rowFrom;
      });
    }
  }

  /** Numbers mean nothing in another file: it may be of another process. */
  #enter(file: number): void {
    if (file === this.#file) return;
    this.#file = file;
    this.#numbers.clear();
  }

  /** Names streams that have no name: the record that named them is damaged. */
  nameAhead(record: StreamsRecord, file: number): void {
    this.#enter(file);
    const known = this.#numbers.get(record.tenant);
    const missing = record.numbers.flatMap((number, i) => (known?.has(number) ? [] : [i]));
    if (missing.length === 0) return;
    this.#name({
      ...record,
      numbers: missing.map((i) => record.numbers[i] as number),
      texts: missing.map((i) => record.texts[i] as string),
    });
  }

  #name({ tenant: name, numbers, texts }: StreamsRecord): void {
    const tenant = this.#context.tenantOf(name);
    const known = this.#numbers.get(name) ?? new Map<number, number>();
    this.#numbers.set(name, known);
    for (const [i, number] of numbers.entries()) {
      const text = texts[i] as string;
      let stream = tenant.streams.find(text);
      if (stream === undefined) {
        stream = this.#context.addStream(tenant, text);
        this.streams++;
      }
      known.set(number, stream);
    }
  }

  /** What the log has had of the heads so far comes again, as a whole. */
  #replace(tenant: Tenant, open: ReadonlyMap<number, string>): void {
    for (const [day, id] of open) {
      const head = this.#context.heads.headFor(tenant, day, id);
      this.entries -= head.rowCount;
      this.#context.heads.clear(head);
    }
  }

  #decode(
    record: PushBodyRecord | PushColumnsRecord | ForwardRecord,
    position: WalPosition,
  ): { batch: Batch; ranges: BatchRange[] } | undefined {
    try {
      const numbers = this.#numbers.get(record.tenant) ?? new Map<number, number>();
      if (record.kind === "push_body") return this.#decodeBody(record, numbers);
      const ranges = record.ranges.map((range) => {
        return { ...range, stream: numberOf(numbers, range.stream) };
      });
      return { batch: record.batch, ranges };
    } catch (error) {
      const path = `${this.#context.dir}: file ${position.file}`;
      const lostBytes = record.kind === "push_body" ? record.source.body.byteLength : 0;
      this.#context.onDamage({
        kind: "unreadable",
        path,
        offset: position.offset,
        lostBytes,
        error,
      });
      return undefined;
    }
  }

  #decodeBody(record: PushBodyRecord, numbers: ReadonlyMap<number, number>) {
    const { source, levels } = record;
    const table = this.#context.tenantOf(record.tenant).streams;
    const mapped = Array.from(record.streams, (number) => numberOf(numbers, number));
    const streams = mapped.map((stream, i) => ({
      ordinal: record.ordinals[i] as number,
      labels: table.labels(stream),
      text: table.text(stream),
    }));
    const raw = decodeBody(source);
    const batch = assembleBatch(raw, { streams, dropped: source.dropped, levels });
    const ranges = batch.streams.map(({ rowStart, rowEnd }: BatchStream, i) => {
      return { stream: mapped[i] as number, rowFrom: rowStart, rowTo: rowEnd };
    });
    return { batch, ranges };
  }
}

function numberOf(numbers: ReadonlyMap<number, number>, number: number): number {
  const stream = numbers.get(number);
  if (stream === undefined) throw new Error(`the log file does not name stream ${number}`);
  return stream;
}

/** Calls for each piece of the range that lies in one UTC day. */
function forEachDay(
  batch: Batch,
  { rowFrom, rowTo }: BatchRange,
  visit: (day: number, rowFrom: number, rowTo: number) => void,
): void {
  let from = rowFrom;
  while (from < rowTo) {
    const { day } = timeOf(batch, from);
    const end = (day + 1) * 86_400;
    let to = from + 1;
    while (to < rowTo && batch.seconds[to]! < end && batch.seconds[to]! >= end - 86_400) to++;
    visit(day, from, to);
    from = to;
  }
}
