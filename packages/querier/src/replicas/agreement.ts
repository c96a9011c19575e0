import type {
  CompareWish,
  MinuteDigests,
  RowMask,
  SkippedMinutes,
  SourceRef,
} from "@skald/contracts";
import { fnv1a32, type TimeRange } from "@skald/model";
import { numberMinutes, uniteMasks } from "@skald/scan";
import { type FoundSource, instanceOf, type ReplicaGroup } from "../find/order-sources.js";
import {
  compareOpen,
  type HashCall,
  type OpenMinute,
  type Place,
  SkipList,
} from "./compare-open.js";

/** Minutes that are compared at a time. */
const minutesPerWindow = 60;
/** Minutes that are compared together first. A window with many rows is shared out: each ingester is scanned for this many minutes in turn. */
const minutesPerTurn = 10;
/** A window with at most this many rows is scanned at one ingester: to share it out costs more calls than it saves. */
const maxRowsAlone = 500_000;
const minuteNs = 60_000_000_000n;
const windowNs = BigInt(minutesPerWindow) * minuteNs;

/** Windows that are compared for a small query. */
const maxAskedWindows = 4;

/** What a query of a range is going to compare, to be told together with the sources; undefined where that is much. */
export function wishOf({ fromNs, toNs }: TimeRange): CompareWish | undefined {
  const first = floorDiv(fromNs, windowNs);
  const count = Number(floorDiv(toNs - 1n, windowNs) - first) + 1;
  if (count > maxAskedWindows) return undefined;
  const windows = Array.from({ length: count }, (_, i) =>
    clip({ fromNs, toNs }, (first + BigInt(i)) * windowNs),
  );
  return { windows, minutesEach: minutesPerTurn };
}

/** The part of a range that is in the window which starts then. */
function clip({ fromNs, toNs }: TimeRange, start: bigint): TimeRange {
  const end = start + windowNs;
  return { fromNs: fromNs > start ? fromNs : start, toNs: toNs < end ? toNs : end };
}

/** What to leave out of a source. */
export interface LeftOut {
  readonly mask: RowMask;
  readonly skipped: SkippedMinutes;
  /** Whether nothing else is there. */
  readonly isAll: boolean;
}

export interface AgreementCalls extends HashCall {
  /** Digests of sources that are in one place. */
  digests(
    sources: readonly FoundSource[],
    range: ReplicaGroup,
    minutesEach: number,
  ): Promise<MinuteDigests>;
}

interface Window {
  readonly skips: ReadonlyMap<string, SkipList>;
  readonly masks: ReadonlyMap<SourceRef, RowMask>;
  /** Ingesters whose rows are all skipped. */
  readonly spared: ReadonlySet<string>;
}

/** What places hold of a window, in digests of some length. */
interface Compared {
  readonly places: readonly Place[];
  readonly digests: readonly MinuteDigests[];
  /** By place, stream and first minute, the number of a digest. */
  readonly numbers: readonly ReadonlyMap<number, ReadonlyMap<number, number>>[];
  /** The minutes of a digest. */
  readonly minutesOf: (first: number) => readonly number[];
  readonly skips: Map<string, SkipList>;
  /** By minute, the number of the ingester that counts first. */
  readonly turnOf: TurnOf;
}

type TurnOf = (minute: number) => number;

const nothing: MinuteDigests = {
  streams: new Float64Array(0),
  counts: new Uint32Array(0),
  minutes: new Uint32Array(0),
  rows: new Uint32Array(0),
  sums: new Uint32Array(0),
};

/**
 * Says what to leave out of the sources of a group, so that each row counts once: minutes of streams of which another
 * place has the same digest are skipped, and only where digests differ rows are compared, by their hashes.
 */
export class ReplicaAgreement {
  readonly #group: ReplicaGroup;
  readonly #calls: AgreementCalls;
  readonly #instances: readonly string[];
  /** The number of the ingester that counts first where one is scanned for all. The same question asks the same one for an hour. */
  readonly #alone: number;
  readonly #windows = new Map<bigint, Promise<Window>>();

  constructor(group: ReplicaGroup, calls: AgreementCalls) {
    this.#group = group;
    this.#calls = calls;
    const names = group.sources.map(({ ref }) => instanceOf(ref));
    this.#instances = [...new Set(names.filter((name) => name !== undefined))].sort();
    const hour = Number(BigInt.asUintN(32, floorDiv(group.toNs, windowNs)));
    this.#alone = fnv1a32(JSON.stringify(group.matchers)) + hour;
  }

  /** What to leave out of a source of an ingester; nothing is left out of one of the store. */
  async leaveOut({ ref }: FoundSource): Promise<LeftOut | undefined> {
    const instance = instanceOf(ref);
    if (instance === undefined) return undefined;
    const fromNs = ref.minNs > this.#group.fromNs ? ref.minNs : this.#group.fromNs;
    const toNs = ref.maxNs < this.#group.toNs ? ref.maxNs + 1n : this.#group.toNs;
    const windows: Promise<Window>[] = [];
    for (let at = floorDiv(fromNs, windowNs); at * windowNs < toNs; at++) {
      windows.push(this.#window(at));
    }
    const found = await Promise.all(windows);
    const masks = found.flatMap(({ masks }) => masks.get(ref) ?? []);
    const skipped = new SkipList();
    for (const { skips } of found) skipped.addAll(skips.get(instance));
    const isAll = found.every(({ spared }) => spared.has(instance));
    return { mask: uniteMasks(masks), skipped: skipped.finish(), isAll };
  }

  #window(at: bigint): Promise<Window> {
    let window = this.#windows.get(at);
    if (window === undefined) {
      window = this.#compare(at);
      this.#windows.set(at, window);
    }
    return window;
  }

  async #compare(at: bigint): Promise<Window> {
    const start = at * windowNs;
    const range: ReplicaGroup = { ...this.#group, ...clip(this.#group, start) };
    const places = placesOf(range);
    const skips = new Map<string, SkipList>();
    if (places.length < 2 || places.every(({ instance }) => instance === undefined)) {
      return { skips, masks: new Map(), spared: new Set() };
    }
    const first = Number(BigInt.asUintN(32, at * BigInt(minutesPerWindow)));
    const digests = await this.#digests(places, range, minutesPerTurn);
    const numbers = digests.map(numberMinutes);
    const minutesOf = (start: number) => stretch(start, minutesPerTurn, first);
    const turnOf = this.#turns(digests);
    const compared = { places, digests, numbers, minutesOf, skips, turnOf };
    const unlike = this.#agree(compared, holdersOf(numbers));
    const open = await this.#lookCloser(compared, unlike, { ...range, first, start });
    const spared = new Set<string>();
    places.forEach(({ instance }, place) => {
      if (instance === undefined) return;
      const held = digests[place] as MinuteDigests;
      const isAll = skips.get(instance)?.coverWhole(held, minutesOf) ?? held.streams.length === 0;
      if (isAll) spared.add(instance);
    });
    return { skips, masks: await compareOpen(places, open, range, this.#calls), spared };
  }

  /** Compares minute by minute where longer stretches differ. */
  async #lookCloser(
    { places, skips, turnOf }: Compared,
    unlike: readonly OpenMinute[],
    range: ReplicaGroup & { readonly first: number; readonly start: bigint },
  ): Promise<OpenMinute[]> {
    if (unlike.length === 0) return [];
    const { first, start } = range;
    const offsets = unlike.map(({ minute }) => (minute - first) | 0);
    const fromNs = start + BigInt(Math.max(0, least(offsets))) * minuteNs;
    const toNs = start + BigInt(most(offsets) + minutesPerTurn) * minuteNs;
    const closer: ReplicaGroup = {
      ...range,
      fromNs: fromNs > range.fromNs ? fromNs : range.fromNs,
      toNs: toNs < range.toNs ? toNs : range.toNs,
    };
    const involved = new Set(unlike.flatMap((one) => one.places));
    const digests = await this.#digests(places, closer, 1, involved);
    const numbers = digests.map(numberMinutes);
    const holders = new Map<number, Map<number, number[]>>();
    for (const { stream, minute: from, places: own } of unlike) {
      const minutes = holders.get(stream) ?? new Map<number, number[]>();
      holders.set(stream, minutes);
      for (const minute of stretch(from, minutesPerTurn, first)) {
        const found = own.filter((place) => numbers[place]!.get(stream)?.has(minute) === true);
        if (found.length > 0) minutes.set(minute, found);
      }
    }
    const minutesOf = (minute: number) => [minute];
    return this.#agree({ places, digests, numbers, minutesOf, skips, turnOf }, holders);
  }

  #digests(
    places: readonly Place[],
    range: ReplicaGroup,
    minutesEach: number,
    involved?: ReadonlySet<number>,
  ): Promise<MinuteDigests[]> {
    return Promise.all(
      places.map(async (place, at) => {
        if (involved !== undefined) {
          if (!involved.has(at)) return nothing;
        } else {
          const known = this.#knownOf(place, range);
          if (known !== undefined) return known;
        }
        return this.#calls.digests(place.sources, range, minutesEach);
      }),
    );
  }

  /** What an ingester said with its sources, if these are all among those of the query. */
  #knownOf({ instance }: Place, { known, fromNs, toNs }: ReplicaGroup): MinuteDigests | undefined {
    if (instance === undefined) return undefined;
    const found = known?.find(
      (one) => one.instance === instance && one.fromNs === fromNs && one.toNs === toNs,
    );
    if (found === undefined) return undefined;
    const own = this.#group.sources.filter(({ ref }) => instanceOf(ref) === instance);
    return own.length === found.sources ? found.digests : undefined;
  }

  #turns(digests: readonly MinuteDigests[]): TurnOf {
    const rows = digests.map((one) => one.rows.reduce((sum, count) => sum + count, 0));
    if (most(rows) <= maxRowsAlone) return () => this.#alone;
    return (minute) => Math.floor(minute / minutesPerTurn);
  }

  /** Skips what is the same, and gives the stretches in which places differ. */
  #agree(
    { places, digests, numbers, minutesOf, skips, turnOf }: Compared,
    holdersOfAll: ReadonlyMap<number, ReadonlyMap<number, number[]>>,
  ): OpenMinute[] {
    const open: OpenMinute[] = [];
    for (const [stream, minutes] of holdersOfAll) {
      for (const [minute, holders] of minutes) {
        if (holders.length < 2) continue;
        this.#order(places, holders, turnOf(minute));
        const different: number[] = [];
        const cell = (place: number) => numbers[place]!.get(stream)!.get(minute)!;
        for (const place of holders) {
          const isKnown = different.some((one) =>
            isSame(digests[one]!, cell(one), digests[place]!, cell(place)),
          );
          const { instance } = places[place] as Place;
          if (!isKnown) different.push(place);
          else if (instance !== undefined) skipOf(skips, instance).add(stream, minutesOf(minute));
        }
        if (different.length < 2) continue;
        const rows = different.reduce((sum, one) => sum + digests[one]!.rows[cell(one)]!, 0);
        open.push({ stream, minute, places: different, rows });
      }
    }
    // Segments of the store are compared with each other where they are.
    return open.filter((one) => one.places.some((at) => places[at]!.instance !== undefined));
  }

  /** Puts the places that have a minute into the order in which they count. */
  #order(places: readonly Place[], holders: number[], turn: number): void {
    if (this.#instances.length < 2) return;
    const rank = (place: number) => {
      const { instance } = places[place] as Place;
      if (instance === undefined) return place - places.length;
      return (this.#instances.indexOf(instance) + turn) % this.#instances.length;
    };
    holders.sort((a, b) => rank(a) - rank(b));
  }
}

/** The places of sources that have rows in a range: segments of the store first. */
function placesOf({ sources, fromNs, toNs }: ReplicaGroup): Place[] {
  const stored: Place[] = [];
  const held = new Map<string, FoundSource[]>();
  for (const source of sources) {
    const { ref } = source;
    if (ref.minNs >= toNs || ref.maxNs < fromNs) continue;
    const instance = instanceOf(ref);
    if (instance === undefined) stored.push({ sources: [source], instance });
    else held.set(instance, [...(held.get(instance) ?? []), source]);
  }
  return [...stored, ...Array.from(held, ([instance, own]) => ({ instance, sources: own }))];
}

/** By stream and minute the numbers of the places that have rows in it, ascending. */
function holdersOf(
  places: readonly ReadonlyMap<number, ReadonlyMap<number, number>>[],
): Map<number, Map<number, number[]>> {
  const found = new Map<number, Map<number, number[]>>();
  places.forEach((streams, place) => {
    for (const [stream, minutes] of streams) {
      const known = found.get(stream) ?? new Map<number, number[]>();
      for (const minute of minutes.keys()) {
        const holders = known.get(minute);
        if (holders === undefined) known.set(minute, [place]);
        else holders.push(place);
      }
      found.set(stream, known);
    }
  });
  return found;
}

function isSame(a: MinuteDigests, i: number, b: MinuteDigests, j: number): boolean {
  return (
    a.rows[i] === b.rows[j] &&
    a.sums[2 * i] === b.sums[2 * j] &&
    a.sums[2 * i + 1] === b.sums[2 * j + 1]
  );
}

function skipOf(skips: Map<string, SkipList>, instance: string): SkipList {
  const list = skips.get(instance) ?? new SkipList();
  skips.set(instance, list);
  return list;
}

function floorDiv(a: bigint, b: bigint): bigint {
  return a >= 0n ? a / b : -((-a + b - 1n) / b);
}

/** The minutes of a stretch that are in the window that begins with `first`. */
function stretch(start: number, length: number, first: number): number[] {
  const minutes: number[] = [];
  for (let i = 0; i < length; i++) {
    const minute = (start + i) >>> 0;
    if ((minute - first) >>> 0 < minutesPerWindow) minutes.push(minute);
  }
  return minutes;
}

function least(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.min(a, b));
}

function most(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => Math.max(a, b));
}
