import { type Labels, type Matcher, parseStreamText } from "@skald/model";
import type { WalPosition } from "@skald/storage";
import { withRoom } from "../head/run-chains.js";
import { Postings } from "./postings.js";

/**
 * The streams of one tenant that were pushed to lately, by number. Values that change per push are in typed arrays by stream
 * number, so that a million streams are a few arrays and not a million objects: 320 bytes each, without their rows
 * (bench/stream-table.mjs). A number is free again once its stream is removed.
 */
export class NumberedStreams {
  readonly #postings = new Postings();
  readonly #byText = new TextNumbers();
  readonly #texts: (string | undefined)[] = [];
  /** Free numbers, the one that was freed first comes first. */
  readonly #free = new Set<number>();
  /** Newest time of each stream: UTC day, and ns of the day; `noDay` before its first row. */
  newestDay = new Int32Array(0);
  newestTime = new Float64Array(0);
  /** The streams that the log has named. */
  readonly #named = new NamedStreams();
  /** Time of the last push to each stream. */
  seenMs = new Float64Array(0);
  /** Rate limit of each stream: bytes that may still be pushed at `tokensMs`. */
  tokens = new Float64Array(0);
  tokensMs = new Float64Array(0);
  /** Number of removals; after each, a number may mean another stream. */
  removals = 0;
  /** What `match` found last, which holds as long as no stream comes or goes. */
  #last: Found | undefined;

  get size(): number {
    return this.#byText.size;
  }

  /** One more than the largest number in use. */
  get limit(): number {
    return this.#texts.length;
  }

  find(text: string): number | undefined {
    return this.#byText.get(text);
  }

  text(stream: number): string {
    return this.#texts[stream] as string;
  }

  labels(stream: number): Labels {
    return parseStreamText(this.text(stream));
  }

  has(stream: number): boolean {
    return this.#texts[stream] !== undefined;
  }

  /** Adds a new stream and returns its number. Throws, and adds nothing, if the text is none of a stream. */
  add(text: string, nowMs: number, burstBytes: number): number {
    const labels = parseStreamText(text);
    const stream = this.#takeNumber();
    this.#byText.add(text, stream);
    this.#texts[stream] = text;
    if (stream >= this.newestDay.length) this.#grow();
    this.newestDay[stream] = noDay;
    this.newestTime[stream] = 0;
    this.seenMs[stream] = nowMs;
    this.tokens[stream] = burstBytes;
    this.tokensMs[stream] = nowMs;
    this.#postings.add(stream, labels);
    return stream;
  }

  /** Whether the log should name a stream before a record at a place of it; the caller must name it then. */
  needsName(stream: number, place: WalPosition): boolean {
    return this.#named.needsName(stream, this.text(stream).length, place);
  }

  /** Sets the newest time of a stream unless it has a newer one. */
  noteNewest(stream: number, day: number, time: number): void {
    const knownDay = this.newestDay[stream]!;
    if (day < knownDay || (day === knownDay && time <= this.newestTime[stream]!)) return;
    this.newestDay[stream] = day;
    this.newestTime[stream] = time;
  }

  /**
   * Numbers of the streams that satisfy the matchers, in no order; the same array when the last call asked the same of the same
   * streams. Throws on a bad regular expression.
   */
  match(matchers: readonly Matcher[]): Uint32Array {
    const key = JSON.stringify([this.removals, this.size, matchers]);
    if (this.#last?.key === key) return this.#last.streams;
    const streams = this.#postings.match(
      matchers,
      () => this.#numbers(),
      (stream) => this.labels(stream),
    );
    this.#last = { key, streams };
    return streams;
  }

  /** Removes streams that were not pushed to since a time and that no head has; returns their number. */
  removeIdle(beforeMs: number, isHeld: (stream: number) => boolean): number {
    const removed = new Set<number>();
    for (let stream = 0; stream < this.limit && removed.size < maxRemovedAtOnce; stream++) {
      if (this.seenMs[stream]! >= beforeMs || !this.has(stream) || isHeld(stream)) continue;
      removed.add(stream);
    }
    if (removed.size > 0) this.removals++;
    this.#postings.remove(removed, (stream) => this.labels(stream));
    for (const stream of removed) {
      this.#byText.delete(this.text(stream));
      this.#texts[stream] = undefined;
      this.#free.add(stream);
    }
    return removed.size;
  }

  #numbers(): Uint32Array {
    const numbers = new Uint32Array(this.size);
    let at = 0;
    for (let stream = 0; stream < this.limit; stream++)
      if (this.has(stream)) numbers[at++] = stream;
    return numbers;
  }

  /** A number means one stream within a log file, so a number that the file has named is not free yet. */
  #takeNumber(): number {
    const [longest] = this.#free;
    if (longest === undefined || this.#named.isNamed(longest)) return this.#texts.length;
    this.#free.delete(longest);
    return longest;
  }

  #grow(): void {
    const { limit } = this;
    this.newestDay = withRoom(this.newestDay, limit);
    this.newestTime = withRoom(this.newestTime, limit);
    this.seenMs = withRoom(this.seenMs, limit);
    this.tokens = withRoom(this.tokens, limit);
    this.tokensMs = withRoom(this.tokensMs, limit);
  }
}

interface Found {
  /** The matchers, and the state of the streams. */
  readonly key: string;
  readonly streams: Uint32Array;
}

/** A removal of this many takes some 50 ms; more are left to the next call. */
const maxRemovedAtOnce = 10_000;

/** Day of a stream without rows. */
export const noDay = -(2 ** 31);

/** Repeated names may take this part of a file. */
const repeatShare = 1 / 8;

/**
 * The streams of a tenant that the log has named. A push refers to its streams by number, so each stream is named before its
 * first use in a file, and again as often as that costs little. Then most pushes are readable even when records before
 * them are damaged.
 */
export class NamedStreams {
  #file = 0;
  /** By stream, the last file that has named it. */
  #files = new Uint32Array(0);
  #repeatedBytes = 0;

  /** Whether the last file that has named any stream has named this one. */
  isNamed(stream: number): boolean {
    return stream < this.#files.length && this.#files[stream] === this.#file;
  }

  /** Whether to name a stream before a record at a place of the log; the caller must name it then. */
  needsName(stream: number, nameBytes: number, { file, offset }: WalPosition): boolean {
    if (file !== this.#file) {
      this.#file = file;
      this.#repeatedBytes = 0;
    }
    if (this.isNamed(stream)) {
      if (this.#repeatedBytes + nameBytes > repeatShare * offset) return false;
      this.#repeatedBytes += nameBytes;
      return true;
    }
    if (stream >= this.#files.length) this.#files = withRoom(this.#files, stream + 1);
    this.#files[stream] = file;
    return true;
  }
}

/** Most texts in one map. */
const maxSingle = 4096;
const shardCount = 256;

/**
 * Numbers by text: one map while they are few, as for most tenants, and many small maps from then on, because a map of a
 * million texts blocks the thread for long each time it grows.
 */
export class TextNumbers {
  #single: Map<string, number> | undefined = new Map();
  #shards: readonly Map<string, number>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(text: string): number | undefined {
    return this.#mapOf(text).get(text);
  }

  /** Adds a new text. */
  add(text: string, number: number): void {
    if (this.#single?.size === maxSingle) this.#split(this.#single);
    this.#mapOf(text).set(text, number);
    this.#size++;
  }

  delete(text: string): void {
    if (this.#mapOf(text).delete(text)) this.#size--;
  }

  #split(all: Map<string, number>): void {
    this.#single = undefined;
    this.#shards = Array.from({ length: shardCount }, () => new Map<string, number>());
    for (const [text, number] of all) this.#mapOf(text).set(text, number);
  }

  #mapOf(text: string): Map<string, number> {
    return this.#single ?? (this.#shards[shardOf(text)] as Map<string, number>);
  }
}

/** Hashes every third character, because label texts may differ anywhere. */
function shardOf(text: string): number {
  let hash = text.length;
  for (let i = 2; i < text.length; i += 3) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 13)) & (shardCount - 1);
}
