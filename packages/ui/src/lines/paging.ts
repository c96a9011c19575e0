import type { Line, LinesAnswer, LinesQuery } from "../api/lines.js";

export type FetchPage = (query: LinesQuery) => Promise<LinesAnswer>;

export interface PagingOptions {
  readonly query: string;
  readonly startNs: string;
  /** Exclusive. */
  readonly endNs: string;
  readonly direction: "forward" | "backward";
  /** Lines of a page. */
  readonly size: number;
  /** Most lines that one answer of the server may have. */
  readonly limitMax: number;
  /** Most lines that are held; pages far from the ones in use are let go and asked again. */
  readonly heldMax: number;
  /** Length of the first slice of the range, ns; each later one is twice as long. Without it the whole range is asked at once. */
  readonly sliceNs?: bigint | undefined;
  readonly fetch: FetchPage;
}

interface Page {
  readonly first: number;
  readonly count: number;
  /** What to ask for to get this page again. */
  readonly from: Cursor;
  lines: readonly Line[] | undefined;
}

/** Where a page begins: a bound of time, the lines at the edge that the pages before it have, and where its slice ends. */
interface Cursor {
  readonly bound: string;
  readonly edge: readonly Line[];
  readonly until: string;
}

/**
 * The lines of a query, page after page. A page begins with the nanosecond that the last one ended with; lines that the last
 * one had are dropped by stream, text and count, so equal times at a seam are neither lost nor doubled.
 */
export class Paging {
  readonly #options: PagingOptions;
  readonly #pages: Page[] = [];
  #next: Cursor | undefined;
  #sliceNs: bigint | undefined;
  #count = 0;
  /** Nanoseconds with as many lines as an answer may have: what they have beyond that is missing. */
  readonly #crowded: string[] = [];

  constructor(options: PagingOptions) {
    this.#options = options;
    this.#sliceNs = options.sliceNs;
    this.#next = this.#sliceFrom(
      options.direction === "backward" ? options.endNs : options.startNs,
    );
  }

  /** Lines of all pages that have been asked for. */
  /** `forward`: the oldest lines come first. */
  get direction(): "forward" | "backward" {
    return this.#options.direction;
  }

  get count(): number {
    return this.#count;
  }

  get done(): boolean {
    return this.#next === undefined;
  }

  get crowded(): readonly string[] {
    return this.#crowded;
  }

  /** A line by its place; undefined while its page is let go. */
  at(index: number): Line | undefined {
    const page = this.#pageOf(index);
    return page?.lines?.[index - page.first];
  }

  /** Asks for the next page, which has no line where a slice has none. The answer is undefined when there is none. */
  async more(): Promise<LinesAnswer | undefined> {
    const from = this.#next;
    if (from === undefined) return undefined;
    const { answer, lines, next } = await this.#ask(from);
    if (this.#next !== from) return undefined;
    this.#next = next;
    if (lines.length > 0) {
      this.#pages.push({ first: this.#count, count: lines.length, from, lines });
      this.#count += lines.length;
      this.#letGo(this.#pages.length - 1);
    }
    return answer;
  }

  /** Asks again for the page of a line that was let go. */
  async restore(index: number): Promise<void> {
    const page = this.#pageOf(index);
    if (page === undefined || page.lines !== undefined) return;
    const { lines } = await this.#ask(page.from);
    page.lines = lines.slice(0, page.count);
    this.#letGo(this.#pages.indexOf(page));
  }

  async #ask(
    from: Cursor,
  ): Promise<{ answer: LinesAnswer; lines: Line[]; next: Cursor | undefined }> {
    const { size, limitMax, direction } = this.#options;
    // A page after many lines of one time asks for as many again.
    const limit = Math.min(Math.max(size, from.edge.length) + from.edge.length, limitMax);
    const answer = await this.#options.fetch(this.#queryOf(from, limit));
    const lines = without(answer.lines, from.edge);
    const last = answer.lines.at(-1);
    if (last === undefined || answer.lines.length < limit)
      return { answer, lines, next: this.#sliceFrom(from.until) };
    if (limit === limitMax && answer.lines[0]!.ns === last.ns) {
      // The server cannot give more lines of this nanosecond, so the next page begins behind it.
      this.#crowded.push(last.ns);
      const bound = direction === "backward" ? last.ns : plus(last.ns, 1n);
      return { answer, lines, next: this.#behind(bound, from.until) };
    }
    const bound = direction === "backward" ? plus(last.ns, 1n) : last.ns;
    const edge = answer.lines.filter(({ ns }) => ns === last.ns);
    return { answer, lines, next: { bound, edge, until: from.until } };
  }

  /** The slice that begins at a bound; undefined at the end of the range. */
  #sliceFrom(bound: string): Cursor | undefined {
    const { direction, startNs, endNs } = this.#options;
    const end = direction === "backward" ? startNs : endNs;
    if (isOver(bound, end, direction)) return undefined;
    if (this.#sliceNs === undefined) return { bound, edge: [], until: end };
    const until = plus(bound, direction === "backward" ? -this.#sliceNs : this.#sliceNs);
    this.#sliceNs *= 2n;
    return { bound, edge: [], until: isOver(until, end, direction) ? end : until };
  }

  /** What is left of a slice behind a bound, or the next slice. */
  #behind(bound: string, until: string): Cursor | undefined {
    const isDone = isOver(bound, until, this.#options.direction);
    return isDone ? this.#sliceFrom(until) : { bound, edge: [], until };
  }

  #queryOf({ bound, until }: Cursor, limit: number): LinesQuery {
    const { query, direction } = this.#options;
    const range =
      direction === "backward"
        ? { startNs: until, endNs: bound }
        : { startNs: bound, endNs: until };
    return { query, ...range, limit, direction };
  }

  #pageOf(index: number): Page | undefined {
    let low = 0;
    let high = this.#pages.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const page = this.#pages[middle]!;
      if (index < page.first) high = middle - 1;
      else if (index >= page.first + page.count) low = middle + 1;
      else return page;
    }
    return undefined;
  }

  /** Lets the pages go that are farthest from the one in use, until at most `heldMax` lines are held. */
  #letGo(used: number): void {
    let held = this.#pages.reduce((sum, { lines }) => sum + (lines?.length ?? 0), 0);
    const far = this.#pages
      .map((page, at) => ({ page, distance: Math.abs(at - used) }))
      .sort((a, b) => b.distance - a.distance);
    for (const { page, distance } of far) {
      if (held <= this.#options.heldMax || distance === 0) return;
      held -= page.lines?.length ?? 0;
      page.lines = undefined;
    }
  }
}

function isOver(bound: string, end: string, direction: "forward" | "backward"): boolean {
  return direction === "backward" ? BigInt(bound) <= BigInt(end) : BigInt(bound) >= BigInt(end);
}

function plus(ns: string, add: bigint): string {
  return String(BigInt(ns) + add);
}

/** Lines without those of an edge: as many of each stream and text as the edge has. */
function without(lines: readonly Line[], edge: readonly Line[]): Line[] {
  if (edge.length === 0) return [...lines];
  const left = new Map<string, number>();
  for (const line of edge) left.set(keyOf(line), (left.get(keyOf(line)) ?? 0) + 1);
  const edgeNs = edge[0]!.ns;
  return lines.filter((line) => {
    if (line.ns !== edgeNs) return true;
    const count = left.get(keyOf(line)) ?? 0;
    if (count > 0) left.set(keyOf(line), count - 1);
    return count === 0;
  });
}

export function keyOf({ stream, text }: Line): string {
  return `${stream.key}\n${text}`;
}

/** `<ns>.<hash>` of a line, for a link to it. */
export function anchorOf(line: Line): string {
  let hash = 5381;
  const text = keyOf(line);
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 33) ^ text.charCodeAt(at)) | 0;
  return `${line.ns}.${(hash >>> 0).toString(36)}`;
}
