import { compileMatcher, type Labels, labelValue, type Matcher, matchesEmpty } from "@skald/model";

/** Up to this many streams are checked one by one; more are compared with the lists of a matcher. */
const maxLookedAt = 256;

/** The streams of each label value: finds the streams of a selector without looking at others. */
export class Postings {
  readonly #names = new Map<string, Map<string, StreamList>>();

  add(stream: number, labels: Labels): void {
    for (let i = 0; i < labels.names.length; i++) {
      const name = labels.names[i] as string;
      const value = labels.values[i] as string;
      let values = this.#names.get(name);
      if (values === undefined) {
        values = new Map();
        this.#names.set(name, values);
      }
      const known = values.get(value);
      const list = withStream(known, stream);
      if (list !== known) values.set(value, list);
    }
  }

  /** Removes streams; reads each list that has one of them once. */
  remove(removed: ReadonlySet<number>, labelsOf: (stream: number) => Labels): void {
    const touched = new Map<string, Set<string>>();
    let limit = 0;
    for (const stream of removed) {
      limit = Math.max(limit, stream + 1);
      const { names, values } = labelsOf(stream);
      for (let i = 0; i < names.length; i++) {
        const set = touched.get(names[i] as string);
        if (set === undefined) touched.set(names[i] as string, new Set([values[i] as string]));
        else set.add(values[i] as string);
      }
    }
    const flags = new Uint8Array(limit);
    for (const stream of removed) flags[stream] = 1;
    for (const [name, values] of touched) {
      for (const value of values) this.#removeFrom(name, value, flags);
    }
  }

  /**
   * Returns the numbers of the streams that satisfy every matcher, in no order. `all` returns every stream; it is called only
   * when no matcher requires a label. Throws on a bad regular expression.
   */
  match(
    matchers: readonly Matcher[],
    all: () => Uint32Array,
    labelsOf: (stream: number) => Labels,
  ): Uint32Array {
    const wanted = matchers
      .filter((matcher) => !matchesEmpty(matcher))
      .map((matcher) => this.#accepted(matcher, compileMatcher(matcher)))
      .sort((a, b) => a.size - b.size);
    const [first, ...others] = wanted;
    let left = first === undefined ? all() : concat(first.lists);
    for (const { lists, matcher } of others) {
      left = this.#narrow(left, { lists, matcher, keep: 1 }, labelsOf);
    }
    for (const matcher of matchers) {
      if (!matchesEmpty(matcher)) continue;
      const test = compileMatcher(matcher);
      const { lists } = this.#accepted(matcher, (value) => !test(value));
      left = this.#narrow(left, { lists, matcher, keep: 0 }, labelsOf);
    }
    return left;
  }

  #narrow(
    streams: Uint32Array,
    { lists, matcher, keep }: Narrowing,
    labelsOf: (stream: number) => Labels,
  ): Uint32Array {
    if (streams.length <= maxLookedAt) {
      const test = compileMatcher(matcher);
      return streams.filter((stream) => test(labelValue(labelsOf(stream), matcher.name)));
    }
    if (lists.length === 0) return keep === 1 ? new Uint32Array(0) : streams;
    const limit = streams.reduce((most, stream) => Math.max(most, stream + 1), 0);
    const flags = flagsOf(lists, limit);
    return streams.filter((stream) => flags[stream] === keep);
  }

  /** The lists of the values that a test accepts; an equality needs one lookup. */
  #accepted(matcher: Matcher, test: (value: string) => boolean): AcceptedLists {
    const lists: StreamList[] = [];
    const values = this.#names.get(matcher.name);
    if (values !== undefined && matcher.op === "=" && matcher.value !== "") {
      const list = values.get(matcher.value);
      if (list !== undefined) lists.push(list);
    } else if (values !== undefined) {
      for (const [value, list] of values) if (test(value)) lists.push(list);
    }
    return { matcher, lists, size: lists.reduce((sum: number, list) => sum + sizeOf(list), 0) };
  }

  #removeFrom(name: string, value: string, removed: Uint8Array): void {
    const values = this.#names.get(name);
    const list = values?.get(value);
    if (values === undefined || list === undefined) return;
    const left = withoutStreams(list, removed);
    if (left !== undefined) values.set(value, left);
    else values.delete(value);
    if (values.size === 0) this.#names.delete(name);
  }
}

interface AcceptedLists {
  readonly matcher: Matcher;
  readonly lists: readonly StreamList[];
  readonly size: number;
}

interface Narrowing {
  readonly matcher: Matcher;
  /** Streams in the lists stay (1) or go (0). */
  readonly lists: readonly StreamList[];
  readonly keep: 0 | 1;
}

function sizeOf(list: StreamList): number {
  return typeof list === "number" ? 1 : list.count;
}

function concat(lists: readonly StreamList[]): Uint32Array {
  const all = new Uint32Array(lists.reduce((sum: number, list) => sum + sizeOf(list), 0));
  let at = 0;
  for (const list of lists) {
    if (typeof list === "number") all[at++] = list;
    else {
      all.set(list.streams.subarray(0, list.count), at);
      at += list.count;
    }
  }
  return all;
}

/** Distinct numbers of streams, in no order. A single stream is just its number, because most label values have one. */
type StreamList = number | LongList;

interface LongList {
  count: number;
  /** The first `count` are set. */
  streams: Uint32Array;
}

const initialRoom = 4;

/** Adds a stream to a list; returns the same list unless it was a single number. */
function withStream(list: StreamList | undefined, stream: number): StreamList {
  if (list === undefined) return stream;
  if (typeof list === "number") {
    const streams = new Uint32Array(initialRoom);
    streams.set([list, stream]);
    return { count: 2, streams };
  }
  if (list.count === list.streams.length) {
    const longer = new Uint32Array(Math.ceil(1.5 * list.count));
    longer.set(list.streams);
    list.streams = longer;
  }
  list.streams[list.count++] = stream;
  return list;
}

/** Removes the streams whose flag is set; returns undefined when none is left. */
function withoutStreams(list: StreamList, removed: Uint8Array): StreamList | undefined {
  if (typeof list === "number") return removed[list] === 1 ? undefined : list;
  const { count, streams } = list;
  let left = 0;
  for (let i = 0; i < count; i++) {
    const stream = streams[i]!;
    if (removed[stream] !== 1) streams[left++] = stream;
  }
  if (left <= 1) return left === 0 ? undefined : streams[0]!;
  list.count = left;
  if (4 * left < streams.length) list.streams = streams.slice(0, left);
  return list;
}

/** Flags by number below a limit: 1 for the streams in any of the lists. */
function flagsOf(lists: readonly StreamList[], limit: number): Uint8Array {
  const flags = new Uint8Array(limit);
  for (const list of lists) {
    if (typeof list === "number") {
      if (list < limit) flags[list] = 1;
      continue;
    }
    for (let i = 0; i < list.count; i++) flags[list.streams[i]!] = 1;
  }
  return flags;
}
