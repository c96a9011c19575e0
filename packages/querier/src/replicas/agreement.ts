import type { MinuteDigests, RowMask, SkippedMinutes, SourceRef } from "@skald/contracts";
import { numberMinutes, uniteMasks } from "@skald/scan";
import { type FoundSource, instanceOf, type ReplicaGroup } from "../find/order-sources.js";
import { compareOpen, type HashCall, type OpenMinute, type Place } from "./compare-open.js";
import { SkipList } from "./skip-list.js";

/** Minutes that are compared at a time. */
const minutesPerWindow = 60;
/** One ingester is scanned for so many minutes of what several have, then another. */
const minutesPerTurn = 10;
const windowNs = BigInt(minutesPerWindow) * 60_000_000_000n;

/** What to leave out of a source. */
export interface LeftOut {
  readonly mask: RowMask;
  readonly skipped: SkippedMinutes;
}

export interface AgreementCalls extends HashCall {
  /** Digests of sources that are in one place. */
  digests(sources: readonly FoundSource[], range: ReplicaGroup): Promise<MinuteDigests>;
}

interface Window {
  readonly skips: ReadonlyMap<string, SkipList>;
  readonly masks: ReadonlyMap<SourceRef, RowMask>;
}

/**
 * Says what to leave out of the sources of a group, so that each row counts once: minutes of streams of which another
 * place has the same digest are skipped, and only where digests differ rows are compared, by their hashes.
 */
export class ReplicaAgreement {
  readonly #group: ReplicaGroup;
  readonly #calls: AgreementCalls;
  readonly #instances: readonly string[];
  readonly #windows = new Map<bigint, Promise<Window>>();

  constructor(group: ReplicaGroup, calls: AgreementCalls) {
    this.#group = group;
    this.#calls = calls;
    const names = group.sources.map(({ ref }) => instanceOf(ref));
    this.#instances = [...new Set(names.filter((name) => name !== undefined))].sort();
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
    return { mask: uniteMasks(masks), skipped: skipped.finish() };
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
    const { fromNs, toNs } = this.#group;
    const start = at * windowNs;
    const range: ReplicaGroup = {
      ...this.#group,
      fromNs: fromNs > start ? fromNs : start,
      toNs: toNs < start + windowNs ? toNs : start + windowNs,
    };
    const places = placesOf(range);
    const skips = new Map<string, SkipList>();
    if (places.length < 2 || places.every(({ instance }) => instance === undefined)) {
      return { skips, masks: new Map() };
    }
    const digests = await Promise.all(
      places.map(({ sources }) => this.#calls.digests(sources, range)),
    );
    const open = this.#agree(places, digests, skips);
    for (const [instance, list] of skips) {
      const place = places.findIndex((one) => one.instance === instance);
      list.coverWhole(digests[place] as MinuteDigests);
    }
    return { skips, masks: await compareOpen(places, open, range, this.#calls) };
  }

  /** Skips what is the same, and gives the minutes in which places differ. */
  #agree(
    places: readonly Place[],
    digests: readonly MinuteDigests[],
    skips: Map<string, SkipList>,
  ): OpenMinute[] {
    const open: OpenMinute[] = [];
    const numbers = digests.map(numberMinutes);
    for (const [stream, minutes] of holdersOf(numbers)) {
      for (const [minute, holders] of minutes) {
        if (holders.length < 2) continue;
        this.#order(places, holders, minute);
        const different: number[] = [];
        const cell = (place: number) => numbers[place]!.get(stream)!.get(minute)!;
        for (const place of holders) {
          const isKnown = different.some((one) =>
            isSame(digests[one]!, cell(one), digests[place]!, cell(place)),
          );
          const { instance } = places[place] as Place;
          if (!isKnown) different.push(place);
          else if (instance !== undefined) skipOf(skips, instance).add(stream, minute);
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
  #order(places: readonly Place[], holders: number[], minute: number): void {
    if (this.#instances.length < 2) return;
    const turn = Math.floor(minute / minutesPerTurn);
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
