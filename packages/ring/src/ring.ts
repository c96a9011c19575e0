import { type Clock, type SteadyClock, steadyClock, systemClock } from "@skald/model";
import { type Logger, type Sleep, sleep } from "@skald/runtime";
import type { KeptRing } from "./kept-ring.js";
import {
  decodeMember,
  encodeMember,
  leftMember,
  type Member,
  type RingInstance,
  signOf,
} from "./member.js";
import type { RingStore } from "./ring-store.js";
import { RingView } from "./ring-view.js";

export interface RingOptions {
  readonly store: RingStore;
  /** Its name in the store. */
  readonly name: string;
  /** Copies of each key; 1 where each is worked on once. */
  readonly replicas: number;
  readonly isZoneAware?: boolean;
  /** Age of a heartbeat from which its instance is unhealthy; 0: never. */
  readonly heartbeatTimeoutMs: number;
  /** Pause between two readings of the store. */
  readonly pollMs: number;
  /** Time after which an unhealthy instance is forgotten; by default never. */
  readonly forgetAfterMs?: number;
  /** Whether an instance is forgotten as soon as it is covered (`Member.covers`) and enough others are there. */
  readonly forgetsCovered?: boolean;
  /** Serves a process that starts while the store is down. */
  readonly kept?: KeptRing;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly steadyClock?: SteadyClock;
  readonly sleep?: Sleep;
}

/** The field of an instance that left is deleted after this many heartbeat timeouts: everybody has seen it by then. */
const traceTimeouts = 10;
const usualTimeoutMs = 60_000;

/**
 * A ring as this process sees it. While the store cannot be read the last view stays as it is. A member that is missing from
 * the store is not gone: only LEFT, or heartbeats that are overdue, end a membership, so that a store that lost its data
 * changes nothing until the owners have written themselves again.
 */
export class Ring {
  readonly #options: RingOptions;
  readonly #clock: Clock;
  readonly #steadyClock: SteadyClock;
  readonly #sightings: Sightings;
  readonly #members = new Map<string, Member>();
  /** Members that left, and when this process saw that, by the steady clock. */
  readonly #left = new Map<string, { readonly member: Member; readonly seenMs: number }>();
  readonly #listeners = new Set<(fields: ReadonlyMap<string, string>) => void>();
  #view: RingView;
  /** Members that left with rows, as in the view. */
  #missed = "";
  #covered: LostMember[] = [];
  #isRead = false;
  /** The fields in use. */
  #fields: ReadonlyMap<string, string> = new Map();
  #isFailing = false;
  #reading: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  #hasNews = false;

  constructor(options: RingOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#steadyClock = options.steadyClock ?? steadyClock;
    this.#sightings = new Sightings({
      clock: this.#steadyClock,
      maxStepMs: options.pollMs * 2,
    });
    this.#view = new RingView([], this.#viewOptions);
  }

  /** The last view. It is a new object whenever more than heartbeats changed. */
  get view(): RingView {
    return this.#view;
  }

  get name(): string {
    return this.#options.name;
  }

  get replicas(): number {
    return this.#options.replicas;
  }

  /** Why the ring cannot decide anything yet; undefined once it was read, even if the store fails later. */
  get unready(): string | undefined {
    return this.#isRead ? undefined : `the ring ${this.name} could not be read yet`;
  }

  /** Time since the last visible sign of life of a member, in ms. */
  ageMs(id: string): number {
    return this.#sightings.ageMs(id);
  }

  /**
   * Time since this process saw that a member had left with all its rows stored, in ms: what it stored is in whatever was listed
   * since. Infinite when none left recently.
   */
  get sinceLeftMs(): number {
    const nowMs = this.#steadyClock.elapsedMs();
    const ages = [...this.#left.values()]
      .filter(({ member }) => member.holdsRows !== true)
      .map(({ seenMs }) => nowMs - seenMs);
    return Math.min(...ages);
  }

  /** Members without a sign of life for longer than this, or that left with rows, with the last sign of each. */
  lostSince(ms: number): LostMember[] {
    const members = [...this.#members.values()].filter(({ tokens }) => tokens.length > 0);
    const leavers = [...this.#left.values()].map(({ member }) => member);
    return [...members, ...leavers.filter(({ holdsRows }) => holdsRows === true)]
      .filter(({ id }) => this.ageMs(id) > ms)
      .map((member) => ({ id: member.id, sign: signOf(member) }));
  }

  /** Members that all others cover, with the last sign of life of each. */
  get covered(): LostMember[] {
    return this.#covered;
  }

  /** Calls back with the fields of the store each time it was read. Returns a function that ends this. */
  onRead(listener: (fields: ReadonlyMap<string, string>) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Reads again and again, and at once when there is news, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const end = this.#options.store.watch(this.name, () => {
      this.#hasNews = true;
      this.#wake?.();
    });
    try {
      while (!signal.aborted) {
        this.#hasNews = false;
        await this.#tryRefresh();
        await this.#pause(signal);
      }
    } finally {
      end();
    }
  }

  /** Reads the store now. Concurrent calls share one read. Throws when the store cannot be read. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Ends a membership whose owner cannot. A live owner joins again with its next heartbeat. */
  async forget(id: string): Promise<void> {
    const left = encodeMember(leftMember({ id, nowMs: this.#clock.nowMs() }));
    await this.#options.store.write(this.name, id, left, { news: true });
    this.#drop(id);
    this.#left.delete(id);
    this.#renew();
  }

  get #viewOptions() {
    const { replicas, isZoneAware = false } = this.#options;
    return { replicas, isZoneAware };
  }

  async #tryRefresh(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.refresh();
      if (this.#isFailing) log.info("the ring can be read again", { ring: this.name });
      this.#isFailing = false;
    } catch (error) {
      const text = "the ring cannot be read; the last one seen still serves";
      if (!this.#isFailing) log.warn(text, { ring: this.name, error });
      this.#isFailing = true;
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    if (this.#hasNews) return;
    const news = new AbortController();
    this.#wake = () => news.abort();
    try {
      const pause = this.#options.sleep ?? sleep;
      await pause(this.#options.pollMs, AbortSignal.any([signal, news.signal]));
    } catch {
      // Woken by news or by the end.
    } finally {
      this.#wake = undefined;
    }
  }

  async #read(): Promise<void> {
    const { store, kept } = this.#options;
    let fields: ReadonlyMap<string, string>;
    try {
      fields = await store.read(this.name);
    } catch (error) {
      if (!this.#isRead) await this.#recall();
      // It is still in use, and so it is young.
      if (this.#isRead) await kept?.save(this.#fields);
      throw error;
    }
    this.#use(fields);
    await kept?.save(fields);
    await this.#sweep(fields);
  }

  /** Begins with the ring as an earlier process used it last. Nobody gets older while the store is down. */
  async #recall(): Promise<void> {
    const fields = await this.#options.kept?.load();
    if (fields === undefined) return;
    this.#options.log.warn("the ring as it was kept in a file serves", { ring: this.name });
    this.#use(fields);
  }

  #use(fields: ReadonlyMap<string, string>): void {
    this.#fields = fields;
    this.#sightings.note(fields);
    for (const [id, text] of fields) this.#take(id, text);
    for (const id of this.#members.keys())
      if (!fields.has(id) && this.ageMs(id) > this.#timeoutMs) this.#drop(id);
    this.#isRead = true;
    this.#renew();
    for (const listener of this.#listeners) listener(fields);
  }

  #take(id: string, text: string): void {
    const member = decodeMember(text);
    if (member === undefined || member.id !== id) {
      if (this.ageMs(id) === 0)
        this.#options.log.warn("a field of the ring cannot be read", { ring: this.name, id });
      return;
    }
    if (member.state === "LEFT") {
      const before = this.#left.get(id)?.member;
      // A member that left with rows may be forgotten later.
      if (before?.heartbeatMs !== member.heartbeatMs || before.holdsRows !== member.holdsRows)
        this.#left.set(id, { member, seenMs: this.#steadyClock.elapsedMs() });
      this.#members.delete(id);
    } else {
      this.#left.delete(id);
      this.#members.set(id, member);
    }
  }

  #drop(id: string): void {
    this.#members.delete(id);
    this.#sightings.forget(id);
  }

  get #timeoutMs(): number {
    return this.#options.heartbeatTimeoutMs || usualTimeoutMs;
  }

  /** Makes a new view if more than heartbeats changed. */
  #renew(): void {
    const { heartbeatTimeoutMs } = this.#options;
    for (const id of this.#left.keys()) if (this.#isTraceOld(id)) this.#left.delete(id);
    const members = [...this.#members.values()];
    const left = [...this.#left.values()].map(({ member }) => member);
    const leftWithRows = left.filter(({ holdsRows }) => holdsRows === true);
    const covered = findCovered([...members.filter(hasTokens), ...leftWithRows]);
    this.#covered = [...covered].map((member) => ({ id: member.id, sign: signOf(member) }));
    const instances = members.map((member): RingInstance => {
      const isInTime = heartbeatTimeoutMs === 0 || this.ageMs(member.id) <= heartbeatTimeoutMs;
      const isCovered = covered.has(member);
      // The others saw it dead for long, even if this process has just begun to look.
      return { ...member, isHealthy: isInTime && !isCovered, isCovered };
    });
    const leavers = leftWithRows.map((member) => {
      return { ...member, isHealthy: false, isCovered: covered.has(member) };
    });
    const missed = leavers.map(({ id, isCovered }) => `${id}:${isCovered}`).join(" ");
    const before = this.#view.instances;
    const isSame =
      missed === this.#missed &&
      instances.length === before.length &&
      instances.every((one) => isSameInstance(one, this.#view.find(one.id)));
    if (isSame) return;
    this.#missed = missed;
    this.#view = new RingView(instances, this.#viewOptions, leavers);
  }

  #isTraceOld(id: string): boolean {
    return this.ageMs(id) > traceTimeouts * this.#timeoutMs;
  }

  /** Forgets members that are dead for long, and deletes the fields of members that left. */
  async #sweep(fields: ReadonlyMap<string, string>): Promise<void> {
    const { forgetAfterMs = Number.POSITIVE_INFINITY, store, log } = this.#options;
    const takers = this.#view.instances.filter((one) => one.isHealthy && hasTokens(one)).length;
    // With fewer members than copies the covered ones are needed, to know that the ring is whole.
    if (this.#options.forgetsCovered === true && takers >= this.replicas) {
      for (const { id } of this.#covered) {
        log.warn("a lost instance is forgotten: its rows are in the store", {
          ring: this.name,
          id,
        });
        await this.forget(id);
      }
    }
    for (const id of fields.keys()) {
      const isLeft = !this.#members.has(id);
      const age = this.ageMs(id);
      if (isLeft && this.#isTraceOld(id)) {
        await store.remove(this.name, id);
        this.#sightings.forget(id);
      } else if (!isLeft && age > forgetAfterMs && !this.#view.find(id)?.isHealthy) {
        log.warn("an instance is dead for long and is forgotten", { ring: this.name, id });
        await this.forget(id);
      }
    }
  }
}

/** A member that gave no sign of life for long, and the last one that it gave. */
export interface LostMember {
  readonly id: string;
  readonly sign: string;
}

function hasTokens({ tokens }: Member): boolean {
  return tokens.length > 0;
}

/**
 * Finds the members that hold no row that is not in the store. A row that counts as written is on at least one more member. So
 * a lost member is covered when all others say that what they have in common with it is stored. One that is covered
 * itself need not say so.
 */
function findCovered(members: readonly Member[]): ReadonlySet<Member> {
  const covered = new Set<Member>();
  for (let isNew = true; isNew; ) {
    isNew = false;
    const open = members.filter((member) => !covered.has(member));
    for (const member of open) {
      const others = open.filter((other) => other !== member && !covered.has(other));
      const sign = signOf(member);
      const isCovered =
        others.length > 0 && others.every(({ covers = {} }) => covers[member.id] === sign);
      if (!isCovered) continue;
      covered.add(member);
      isNew = true;
    }
  }
  return covered;
}

function isSameInstance(a: RingInstance, b: RingInstance | undefined): boolean {
  if (b === undefined) return false;
  const keys = [
    "state",
    "address",
    "zone",
    "registeredMs",
    "isHealthy",
    "isCovered",
    "oldestMs",
  ] as const;
  return keys.every((key) => a[key] === b[key]) && Buffer.compare(bytesOf(a), bytesOf(b)) === 0;
}

function bytesOf({ tokens }: Member): Uint8Array {
  return new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
}

/**
 * When signs of life of others were seen, by this process's clock and only while it could see: an age grows between two
 * readings of the store, by a bounded step, and stands still while the store cannot be read or this process is stopped. So
 * neither another's clock nor our own blindness makes anybody look dead.
 */
class Sightings {
  readonly #clock: SteadyClock;
  readonly #maxStepMs: number;
  readonly #seen = new Map<string, { text: string; atMs: number }>();
  #watchedMs = 0;
  #lastMs: number | undefined;

  /** `maxStepMs`: how much time may pass between two readings and still count as watched. */
  constructor(options: { readonly clock: SteadyClock; readonly maxStepMs: number }) {
    this.#clock = options.clock;
    this.#maxStepMs = options.maxStepMs;
  }

  /** Notes the fields that were read now. A changed text is a sign of life. */
  note(fields: ReadonlyMap<string, string>): void {
    const nowMs = this.#clock.elapsedMs();
    const passed = nowMs - (this.#lastMs ?? nowMs);
    this.#watchedMs += Math.min(Math.max(0, passed), this.#maxStepMs);
    this.#lastMs = nowMs;
    for (const [id, text] of fields)
      if (this.#seen.get(id)?.text !== text) this.#seen.set(id, { text, atMs: this.#watchedMs });
  }

  /** Time watched since the last sign of life, in ms; 0 for an id that was never seen. */
  ageMs(id: string): number {
    const seen = this.#seen.get(id);
    return seen === undefined ? 0 : this.#watchedMs - seen.atMs;
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }
}
