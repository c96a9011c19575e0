import { type Clock, errorCodeOf } from "@skald/model";
import { tenantPrefix } from "./keys.js";
import type { CallOptions, ObjectStore } from "./object-store.js";

export interface AskedTextsOptions {
  readonly store: Pick<ObjectStore, "get" | "put">;
  readonly clock: Clock;
}

/** What queries of a tenant ask for often. */
export interface MostAsked {
  /** Texts of line filters, the most frequent first. */
  readonly texts: readonly string[];
  /** How often fields of lines were asked for, by the name of their label. */
  readonly fields: ReadonlyMap<string, number>;
}

/**
 * Counts which texts the line filters of a tenant's queries ask for, and which fields their other stages, in an object of the
 * store:
 *
 *     index/asked_texts/tenant=<tenant>/texts.json
 *     {"version":1,"sinceMs":...,"counts":{"error":16,...},"fields":{"status":3,...}}
 *
 * A text counts once a minute. Counts are halved each week from `sinceMs` on. They only say which row sets are worth making,
 * so two processes that write at once may lose some of them.
 */
export class AskedTexts {
  readonly #options: AskedTextsOptions;
  /** By tenant and text, since the last `flush`. */
  #noted = new Map<string, Map<string, Noted>>();

  constructor(options: AskedTextsOptions) {
    this.#options = options;
  }

  /** Counts a text of a query. Texts that are too short, too long or too many are ignored. */
  note(tenant: string, text: string): void {
    if (text.length >= textLengthMin) this.#note(tenant, textMark + text);
  }

  /** Counts a label that a query wants from lines. */
  noteField(tenant: string, name: string): void {
    this.#note(tenant, fieldMark + name);
  }

  #note(tenant: string, text: string): void {
    if (text.length > textLengthMax) return;
    let texts = this.#noted.get(tenant);
    if (texts === undefined) {
      if (this.#noted.size >= maxTenants) return;
      texts = new Map();
      this.#noted.set(tenant, texts);
    }
    const minute = Math.floor(this.#options.clock.nowMs() / 60_000);
    const noted = texts.get(text);
    if (noted === undefined) {
      if (texts.size < maxNoted) texts.set(text, { minute, count: 1 });
    } else if (noted.minute !== minute) {
      noted.minute = minute;
      noted.count++;
    }
  }

  /** Adds what was noted to the objects of the tenants. What a store does not take is dropped. */
  async flush(options: CallOptions): Promise<void> {
    const { store, clock } = this.#options;
    const noted = this.#noted;
    this.#noted = new Map();
    for (const [tenant, texts] of noted) {
      const { sinceMs, counts, fields, isNewer } = await this.#load(tenant, options);
      if (isNewer) continue;
      for (const [marked, { count }] of texts) {
        const to = marked.startsWith(textMark) ? counts : fields;
        const text = marked.slice(1);
        to.set(text, (to.get(text) ?? 0) + count);
      }
      const file: AskedFile = { version, sinceMs, counts: mostOf(counts), fields: mostOf(fields) };
      await store.put(keyOf(tenant), Buffer.from(`${JSON.stringify(file)}\n`), options);
    }
    // A text that was just counted does not count again in the same minute.
    const minute = Math.floor(clock.nowMs() / 60_000);
    for (const [tenant, texts] of noted)
      for (const [text, last] of texts)
        if (last.minute === minute) this.#keep(tenant, text, minute);
  }

  /** What is asked for often enough to be kept at hand in segments. */
  async mostAsked(tenant: string, options: CallOptions): Promise<MostAsked> {
    const { counts, fields } = await this.#load(tenant, options);
    const often = byCount(counts).filter(([, count]) => count >= minCount);
    return { texts: often.map(([text]) => text), fields };
  }

  #keep(tenant: string, text: string, minute: number): void {
    const texts = this.#noted.get(tenant) ?? new Map<string, Noted>();
    this.#noted.set(tenant, texts);
    if (!texts.has(text)) texts.set(text, { minute, count: 0 });
  }

  /** What the store has, halved up to now; what a tenant begins with where that is nothing, or cannot be read. */
  async #load(tenant: string, options: CallOptions): Promise<Counts> {
    const { store, clock } = this.#options;
    const nowMs = clock.nowMs();
    try {
      return parse(await store.get(keyOf(tenant), options), nowMs);
    } catch (error) {
      if (errorCodeOf(error) !== "not_found") throw error;
      return firstOf(nowMs, false);
    }
  }
}

/** Filters of fewer characters are seldom of use, and of more seldom repeated. */
const textLengthMin = 3;
/** What a noted text begins with. */
const textMark = "t";
const fieldMark = "f";
const textLengthMax = 64;
/** What is noted between two flushes. */
const maxTenants = 1000;
const maxNoted = 256;
/** Texts in the object of a tenant. */
const maxKept = 64;
/** A text that was asked for less often is not worth a search of all lines. */
const minCount = 4;
const weekMs = 7 * 86_400_000;
const version = 1;

/** What a tenant begins with. */
const firstCounts = ["error", "ERROR", "timeout", "exception", "failed", "warn", "panic"].map(
  (text) => [text, 16] as const,
);

interface Noted {
  minute: number;
  count: number;
}

interface Counts {
  readonly sinceMs: number;
  readonly counts: Map<string, number>;
  readonly fields: Map<string, number>;
  /** A later program wrote the object: it stays as it is. */
  readonly isNewer: boolean;
}

interface AskedFile {
  readonly version: number;
  readonly sinceMs: number;
  readonly counts: Readonly<Record<string, number>>;
  /** Absent in what earlier programs wrote. */
  readonly fields?: Readonly<Record<string, number>>;
}

function keyOf(tenant: string): string {
  return `index/asked_texts/${tenantPrefix(tenant)}texts.json`;
}

function firstOf(nowMs: number, isNewer: boolean): Counts {
  return { sinceMs: nowMs, counts: new Map(firstCounts), fields: new Map(), isNewer };
}

/** The counts of a file, halved up to now; the first ones where it is damaged or of a later program. */
function parse(bytes: Uint8Array, nowMs: number): Counts {
  try {
    const file = JSON.parse(Buffer.from(bytes).toString()) as AskedFile;
    if (file.version !== version) return firstOf(nowMs, file.version > version);
    const weeks = Math.max(0, Math.floor((nowMs - file.sinceMs) / weekMs));
    const counts = halved(file.counts, weeks);
    const fields = halved(file.fields ?? {}, weeks);
    const sinceMs = file.sinceMs + weeks * weekMs;
    if (Number.isFinite(sinceMs)) return { sinceMs, counts, fields, isNewer: false };
  } catch {
    // Counts are only hints.
  }
  return firstOf(nowMs, false);
}

function halved(counts: Readonly<Record<string, number>>, times: number): Map<string, number> {
  const left = Object.entries(counts).map(
    ([text, count]) => [text, Math.floor(count / 2 ** times)] as const,
  );
  return new Map(left.filter(([, count]) => count > 0));
}

function mostOf(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries(byCount(counts).slice(0, maxKept));
}

function byCount(counts: ReadonlyMap<string, number>): (readonly [text: string, count: number])[] {
  return [...counts].sort((a, b) => b[1] - a[1]);
}
