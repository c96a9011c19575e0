import type { Batch, BatchStream, SteadyClock } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import type {
  BatchRange,
  ForwardRecord,
  PushBodyRecord,
  PushColumnsRecord,
  StreamsRecord,
  WalDamage,
  WalPosition,
  WalRecord,
} from "@skald/storage";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Sealer } from "../flush/sealer.js";
import type { Head } from "../head/head.js";
import type { IngesterLimits, IngesterOptions } from "../settings/options.js";
import { timeOf } from "../tenant/admission.js";
import type { Heads } from "../tenant/heads.js";
import type { Tenant } from "../tenant/tenant.js";

export interface ReplayContext {
  readonly options: IngesterOptions;
  readonly heads: Heads;
  readonly sealer: Sealer;
  readonly segments: LocalSegments;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly clock: SteadyClock;
  readonly signal: AbortSignal;
}

/**
 * Restores the rows of the log that are in no segment into heads, under the ids that they had. It decides nothing again: the
 * log says which rows were stored. Streams get new numbers.
 */
export class Replay {
  entries = 0;
  streams = 0;
  readonly heads: ReplayedHeads;
  readonly #sealed: SealedHeads;
  readonly #context: ReplayContext;
  readonly #onDamage: (damage: WalDamage) => void;
  readonly #startMs: number;
  #file = 0;
  /** By tenant: number in the log file -> number in the table of streams. */
  readonly #numbers = new Map<string, Map<number, number>>();

  constructor(context: ReplayContext, onDamage: (damage: WalDamage) => void) {
    this.#context = context;
    this.#onDamage = onDamage;
    this.#startMs = context.clock.elapsedMs();
    this.heads = new ReplayedHeads(context);
    this.#sealed = new SealedHeads(context.segments);
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
      if (!this.#sealed.covers(record.tenant, id, position)) open.set(day, id);
    }
    if (open.size === 0) return;
    const decoded = this.#decode(record, position);
    if (decoded === undefined) return;
    const tenant = this.#context.heads.tenantOf(record.tenant);
    if (record.kind === "forward") this.#replace(tenant, open);
    for (const range of decoded.ranges) {
      forEachDay(decoded.batch, range, (day, rowFrom, rowTo) => {
        const id = open.get(day);
        if (id === undefined) return;
        const rows = { ...range, rowFrom, rowTo };
        const head = this.heads.headFor(tenant, day, id);
        this.heads.restore(tenant, head, decoded.batch, rows, position.file);
        this.entries += rowTo - rowFrom;
      });
    }
  }

  /** The numbers of another file may be those of another process. */
  #enter(file: number): void {
    if (file === this.#file) return;
    this.#file = file;
    this.#numbers.clear();
  }

  /** Names streams whose naming record is damaged, from a later record. */
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
    const tenant = this.#context.heads.tenantOf(name);
    const known = this.#numbers.get(name) ?? new Map<number, number>();
    this.#numbers.set(name, known);
    for (const [i, number] of numbers.entries()) {
      const text = texts[i] as string;
      let stream = tenant.streams.find(text);
      if (stream === undefined) {
        const burst = this.#context.limitsOf(name).per_stream_rate_limit_burst;
        stream = tenant.streams.add(text, this.#startMs, burst);
        this.streams++;
      }
      known.set(number, stream);
    }
  }

  /** Clears heads whose rows come again as a whole. */
  #replace(tenant: Tenant, open: ReadonlyMap<number, string>): void {
    for (const [day, id] of open) {
      const head = this.heads.headFor(tenant, day, id);
      this.entries -= head.rowCount;
      this.heads.clear(head);
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
      const { file, offset } = position;
      const path = `${this.#context.options.config.wal.dir}: file ${file}`;
      const lostBytes = record.kind === "push_body" ? record.source.body.byteLength : 0;
      this.#onDamage({ kind: "unreadable", path, offset, lostBytes, error });
      return undefined;
    }
  }

  #decodeBody(record: PushBodyRecord, numbers: ReadonlyMap<number, number>) {
    const { source, levels } = record;
    const table = this.#context.heads.tenantOf(record.tenant).streams;
    const mapped = Array.from(record.streams, (number) => numberOf(numbers, number));
    const streams = mapped.map((stream, i) => ({
      ordinal: record.ordinals[i] as number,
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

/** Part of the ceiling that is used after the largest heads were sealed. */
const bulkPart = 0.75;
/** Part of the memory for frozen heads that a replay uses; the rest is for pushes. */
const frozenPart = 0.5;

/**
 * The heads that a replay fills, under the ids that they had. They are separate from those that take pushes until the last
 * row is read, so that neither sees a half of the other's rows.
 */
class ReplayedHeads {
  readonly #context: ReplayContext;
  /** By day. */
  readonly #byTenant = new Map<Tenant, Map<number, Head>>();
  #bytes = 0;

  constructor(context: ReplayContext) {
    this.#context = context;
  }

  /** The head of an id. Another head of the day has its last row by then, and is sealed. */
  headFor(tenant: Tenant, day: number, id: string): Head {
    const days = this.#byTenant.get(tenant) ?? new Map<number, Head>();
    this.#byTenant.set(tenant, days);
    const known = days.get(day);
    if (known?.id === id) return known;
    if (known !== undefined) void this.#freeze(tenant, known, "full");
    const head = this.#context.heads.create(tenant, day, id);
    days.set(day, head);
    return head;
  }

  /** Adds rows of a log file to a head. */
  restore(tenant: Tenant, head: Head, batch: Batch, range: BatchRange, file: number): void {
    const before = head.memoryBytes;
    tenant.restore(batch, range, head);
    head.noteFile(file);
    this.#count(head.memoryBytes - before);
  }

  /** Removes all rows of a head, because they come again. */
  clear(head: Head): void {
    this.#count(-head.memoryBytes);
    head.clear();
  }

  /** Waits until the heads use less than `maxBytes` and frozen ones leave room for pushes; returns undefined if they do. */
  makeRoom(position: WalPosition, maxBytes: number): Promise<void> | undefined {
    if (this.#bytes > maxBytes) return this.#sealParts(position, maxBytes);
    return this.#context.sealer.hasRoom(frozenPart) ? undefined : this.room();
  }

  /**
   * Seals the largest heads before their last row is read, under ids that tell their last row, until the others use less
   * than `maxBytes`. Resolves when they are segments; rejects when the signal is aborted.
   */
  async #sealParts(position: WalPosition, maxBytes: number): Promise<void> {
    const all = [...this.#byTenant].flatMap(([tenant, days]) =>
      Array.from(days.values(), (head) => ({ tenant, head })),
    );
    all.sort((a, b) => b.head.memoryBytes - a.head.memoryBytes);
    const tasks: Promise<void>[] = [];
    for (const { tenant, head } of all) {
      if (this.#bytes <= bulkPart * maxBytes) break;
      await this.room();
      head.id = partId(head.id, position);
      tasks.push(this.#freeze(tenant, head, "memory"));
    }
    await this.#settled(Promise.all(tasks));
  }

  /** Resolves when there is room for more frozen heads; rejects when the signal is aborted. */
  room(): Promise<void> {
    const { sealer, signal } = this.#context;
    return sealer.room(signal, () => sealer.hasRoom(frozenPart));
  }

  /**
   * Must be called after the last row: the heads take the rows of their days from then on. Heads of a tenant that was pushed
   * to meanwhile are sealed instead, because it has other heads; queries find the duplicates between those.
   */
  async handOver(afterEach: () => Promise<void> | undefined): Promise<void> {
    for (const [tenant, days] of this.#byTenant) {
      for (const head of [...days.values()]) {
        if (tenant.isPushedTo) await this.room();
        tenant.noteNewestOf(head);
        if (tenant.isPushedTo) void this.#freeze(tenant, head, "full");
        else {
          this.#remove(tenant, head);
          tenant.heads.set(head.day, head);
        }
      }
      await afterEach();
    }
  }

  #freeze(tenant: Tenant, head: Head, reason: "full" | "memory"): Promise<void> {
    this.#remove(tenant, head);
    return this.#context.heads.freeze(tenant, head, reason);
  }

  #remove(tenant: Tenant, head: Head): void {
    this.#byTenant.get(tenant)?.delete(head.day);
    this.#count(-head.memoryBytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#context.heads.replayedBytes = this.#bytes;
  }

  async #settled(task: Promise<unknown>): Promise<void> {
    const { signal } = this.#context;
    task.catch(() => undefined);
    const done = new AbortController();
    const aborted = new Promise((_, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { signal: done.signal });
    });
    await Promise.race([task, aborted]).finally(() => done.abort());
  }
}

/**
 * Tells from the ids of local segments which rows of the log are sealed. The segment of a head has its id; one that was
 * sealed before replay had read all rows of its head is `<head>_<file>_<offset>`, with the place of its last row.
 */
class SealedHeads {
  readonly #segments: LocalSegments;
  /** By tenant and head, the place up to which rows are in segments. */
  readonly #parts = new Map<string, WalPosition>();

  constructor(segments: LocalSegments) {
    this.#segments = segments;
    for (const segment of segments.files()) {
      const part = partOf(segment.ref.id);
      if (part === undefined) continue;
      segment.lastWalFile = part.position.file;
      const key = `${segment.ref.tenant}\n${part.head}`;
      const known = this.#parts.get(key);
      if (known === undefined || isBefore(known, part.position))
        this.#parts.set(key, part.position);
    }
  }

  /** Whether the row of a head at a place of the log is in a segment. */
  covers(tenant: string, head: string, position: WalPosition): boolean {
    const whole = this.#segments.get(tenant, head);
    if (whole !== undefined) {
      whole.lastWalFile = Math.max(whole.lastWalFile, position.file);
      return true;
    }
    const known = this.#parts.get(`${tenant}\n${head}`);
    return known !== undefined && !isBefore(known, position);
  }
}

/** The id of a segment with the rows of a head up to a place of the log. */
function partId(head: string, { file, offset }: WalPosition): string {
  return `${head}_${file}_${offset}`;
}

function partOf(id: string): { head: string; position: WalPosition } | undefined {
  const match = /^(.+)_(\d+)_(\d+)$/.exec(id);
  if (match === null) return undefined;
  const [, head = "", file, offset] = match;
  return { head, position: { file: Number(file), offset: Number(offset) } };
}

function isBefore(a: WalPosition, b: WalPosition): boolean {
  return a.file < b.file || (a.file === b.file && a.offset < b.offset);
}
