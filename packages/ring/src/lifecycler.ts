import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, errorCodeOf, refuseNewerVersion, systemClock } from "@skald/model";
import { type Logger, repeat, type Sleep, sleep } from "@skald/runtime";
import type { KeptRing } from "./kept-ring.js";
import {
  type Covers,
  decodeMember,
  encodeMember,
  leftMember,
  type Member,
  type MemberState,
} from "./member.js";
import { planTokens } from "./plan-tokens.js";
import type { Ring } from "./ring.js";
import type { RingStore } from "./ring-store.js";

export interface LifecyclerOptions {
  readonly store: RingStore;
  /** The ring that it is a member of. */
  readonly ring: Ring;
  readonly id: string;
  /** Host and port at which other members call it. */
  readonly address: string;
  readonly zone?: string;
  /** Tokens wanted; 0 where the ring places no keys. */
  readonly tokens: number;
  /** Whether copies are placed by zone. Each zone then spreads its own tokens. */
  readonly isZoneAware?: boolean;
  /** File that keeps the tokens over restarts; without it only the store keeps them. */
  readonly tokensFile?: string;
  /** Has the tokens of its earlier run too, for a start while the store is down. */
  readonly kept?: KeptRing;
  /** See `Member.oldestMs`; asked at each heartbeat. */
  readonly oldestMs?: () => number | undefined;
  /** See `Member.covers`; asked at each heartbeat, with what the earlier run of this member said last. */
  readonly covers?: (earlier: Covers) => Covers;
  /** Pause between heartbeats; 0: none. */
  readonly heartbeatMs: number;
  /** Pause before it checks whether other members chose tokens at the same time; 0 when it is alone. */
  readonly settleMs?: number;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly sleep?: Sleep;
}

interface StopOptions {
  readonly unregister: boolean;
  readonly deleteTokens?: boolean;
  /** Whether some rows exist only on its disk. */
  readonly holdsRows?: boolean;
}

/** Most rounds of checking for others that join at the same time. */
const maxRounds = 100;
/** Longer than a member takes from its last look at the others until they can see it ACTIVE. */
const usualSettleMs = 200;
/** Pause before a store that failed is asked again while joining. */
const retryMs = 1000;

/**
 * This process's own member of a ring.
 *
 * ```
 *            join()                       leave()             stop()
 *  PENDING ─────────► JOINING ──► ACTIVE ─────────► LEAVING ────────► LEFT
 *     └──────── has tokens ────────►┘
 * ```
 *
 * It writes itself when something changes and at each heartbeat, and at once when the store turns out to have lost it. While
 * the store is down it keeps its state, and the next heartbeat that succeeds informs the others.
 */
export class Lifecycler {
  readonly #options: LifecyclerOptions;
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #state: MemberState = "PENDING";
  #tokens = new Uint32Array(0);
  #registeredMs: number;
  #earlierCovers: Covers = {};
  #beat = 0;
  /** Whether it has read what the store kept from its earlier run. */
  #isRecovered = false;
  #beating: Promise<void> | undefined;
  #rewriting: Promise<void> | undefined;
  #isFailing = false;
  #stopWatching: (() => void) | undefined;

  constructor(options: LifecyclerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#registeredMs = this.#clock.nowMs();
  }

  get id(): string {
    return this.#options.id;
  }

  get state(): MemberState {
    return this.#state;
  }

  get tokens(): Uint32Array {
    return this.#tokens;
  }

  /** Whether this member owns a key, in the last view of the ring. */
  owns(key: number): boolean {
    return this.#options.ring.view.ownerOf(key)?.id === this.id;
  }

  /** Enters the ring as PENDING, with the tokens of its earlier run, and starts its heartbeats. */
  async start(): Promise<void> {
    const { tokensFile, heartbeatMs, ring, kept } = this.#options;
    if (tokensFile !== undefined) this.#keep(await readTokenFile(tokensFile));
    this.#stopWatching = ring.onRead((fields) => this.#check(fields));
    await this.#tryBeat(true);
    if (!this.#isRecovered) this.#takeOver((await kept?.load())?.get(this.id));
    if (heartbeatMs === 0) return;
    this.#beating = repeat(() => this.#tryBeat(false), {
      pauseMs: heartbeatMs,
      signal: this.#abort.signal,
      onError: () => undefined,
      sleep: this.#options.sleep ?? sleep,
    });
  }

  /**
   * Becomes ACTIVE. Without tokens of its own it needs the store, and waits for that until the signal is aborted.
   */
  async join(signal: AbortSignal): Promise<void> {
    const { tokens, tokensFile, ring, log } = this.#options;
    if (this.#tokens.length !== tokens) {
      await this.#chooseTokens(signal);
      if (tokensFile !== undefined) await writeTokenFile(tokensFile, this.#tokens);
    }
    await this.#become("ACTIVE");
    log.info("joined the ring", { ring: ring.name, id: this.id, tokens: this.#tokens.length });
  }

  /** Takes nothing new from now on. Other processes still read what it has. */
  leave(): Promise<void> {
    return this.#become("LEAVING");
  }

  /**
   * Ends its heartbeats. An instance that unregisters leaves the ring, but readers still miss it if it holds rows. Any other instance
   * stays in the ring and is unhealthy until it comes back.
   */
  async stop(options: StopOptions): Promise<void> {
    const { store, ring, zone = "", tokensFile, log } = this.#options;
    this.#abort.abort();
    this.#stopWatching?.();
    await this.#beating;
    await this.#rewriting;
    if (options.deleteTokens === true && tokensFile !== undefined)
      await deleteTokenFile(tokensFile);
    if (!options.unregister) return;
    this.#state = "LEFT";
    const { holdsRows = false } = options;
    const left = encodeMember(
      leftMember({ id: this.id, nowMs: this.#clock.nowMs(), zone, holdsRows }),
    );
    try {
      await store.write(ring.name, this.id, left, { news: true });
    } catch (error) {
      const text = "the ring could not be left; the others see heartbeats end instead";
      log.warn(text, { ring: ring.name, id: this.id, error });
    }
  }

  /** Writes its field now. Throws when the store cannot be written. */
  async beat(news = false): Promise<void> {
    const { store, ring } = this.#options;
    if (!this.#isRecovered) await this.#recover();
    await store.write(ring.name, this.id, encodeMember(this.#member()), { news });
  }

  #member(): Member {
    const { id, address, zone = "" } = this.#options;
    const oldestMs = this.#options.oldestMs?.();
    const covers = this.#options.covers?.(this.#earlierCovers);
    return {
      ...{ id, address, zone, state: this.#state, tokens: this.#tokens },
      ...{ beat: ++this.#beat, heartbeatMs: this.#clock.nowMs() },
      registeredMs: this.#registeredMs,
      ...(oldestMs === undefined ? {} : { oldestMs }),
      ...(covers === undefined ? {} : { covers }),
    };
  }

  /** Reads its own field before it first writes it: the store may be the only place that has its tokens. */
  async #recover(): Promise<void> {
    const { store, ring } = this.#options;
    const text = (await store.read(ring.name)).get(this.id);
    this.#isRecovered = true;
    this.#takeOver(text);
  }

  /** Takes over what its earlier run wrote. */
  #takeOver(text: string | undefined): void {
    const before = text === undefined ? undefined : decodeMember(text);
    if (before === undefined || before.state === "LEFT") return;
    this.#registeredMs = Math.min(this.#registeredMs, before.registeredMs);
    this.#earlierCovers = before.covers ?? {};
    if (this.#tokens.length === 0) this.#keep(before.tokens);
  }

  /** Takes over the tokens of the earlier run, unless their number has changed. */
  #keep(tokens: Uint32Array | undefined): void {
    if (tokens?.length === this.#options.tokens) this.#tokens = Uint32Array.from(tokens);
  }

  async #become(state: MemberState): Promise<void> {
    this.#state = state;
    await this.#tryBeat(true);
    await this.#options.ring.refresh().catch(() => undefined);
  }

  async #tryBeat(news: boolean): Promise<void> {
    const { log, ring } = this.#options;
    try {
      await this.beat(news);
      if (this.#isFailing) log.info("heartbeats are written again", { ring: ring.name });
      this.#isFailing = false;
    } catch (error) {
      const text = "a heartbeat could not be written; the next one is tried";
      if (!this.#isFailing) log.warn(text, { ring: ring.name, id: this.id, error });
      this.#isFailing = true;
    }
  }

  /** Writes itself again when another process forgot it or the store lost it. */
  #check(fields: ReadonlyMap<string, string>): void {
    if (!this.#isRecovered || this.#abort.signal.aborted) return;
    const text = fields.get(this.id);
    const isThere = text !== undefined && decodeMember(text)?.state !== "LEFT";
    if (!isThere) this.#rewriting = this.#tryBeat(true);
  }

  /**
   * Chooses tokens that fit those of the others, writes them as JOINING, and then checks whether others did so at the same time.
   * If two did, the one with the greater id chooses again, until each has seen the tokens of the other.
   */
  async #chooseTokens(signal: AbortSignal): Promise<void> {
    let basis: string | undefined;
    for (let round = 0; round < maxRounds; round++) {
      const others = await this.#readOthers(signal);
      const found = others.map(encodeTokens).join(" ");
      if (found === basis) return;
      basis = found;
      this.#tokens = this.#plan(others);
      this.#state = "JOINING";
      await this.#tryBeat(true);
      await (this.#options.sleep ?? sleep)(this.#options.settleMs ?? usualSettleMs, signal);
    }
  }

  #plan(others: readonly Member[]): Uint32Array<ArrayBuffer> {
    const { ring, zone = "", isZoneAware = false, tokens } = this.#options;
    const shares = others.filter((other) => !isZoneAware || other.zone === zone);
    const planned = planTokens(
      shares.map((other) => other.tokens),
      {
        count: tokens,
        // A zone has one copy of each key.
        replicas: isZoneAware ? 1 : ring.replicas,
        seed: isZoneAware ? `${ring.name}/${zone}` : ring.name,
        taken: others.map((other) => other.tokens),
      },
    );
    return Uint32Array.from(planned);
  }

  /** The members whose tokens count. Of members that choose now, only those with smaller ids count. */
  async #readOthers(signal: AbortSignal): Promise<Member[]> {
    const fields = await this.#readPatiently(signal);
    return [...fields.values()]
      .map(decodeMember)
      .filter((member) => member !== undefined)
      .filter(({ id, tokens }) => id !== this.id && tokens.length > 0)
      .filter(({ id, state }) => state !== "JOINING" || id < this.id)
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async #readPatiently(signal: AbortSignal): Promise<ReadonlyMap<string, string>> {
    for (;;) {
      signal.throwIfAborted();
      try {
        if (!this.#isRecovered) await this.#recover();
        return await this.#options.store.read(this.#options.ring.name);
      } catch {
        await (this.#options.sleep ?? sleep)(retryMs, signal);
      }
    }
  }
}

function encodeTokens({ id, tokens }: Member): string {
  return `${id}:${Buffer.from(tokens.buffer, tokens.byteOffset, tokens.byteLength).toString("base64")}`;
}

/** The file has no version so far: a later program that changes what it means adds the key `version`. */
const knownVersion = 1;

/**
 * Reads the tokens of an instance, ascending; undefined when there is no file, or it has no tokens. Throws `newer_version` for
 * one that a later program wrote.
 */
export async function readTokenFile(path: string): Promise<Uint32Array | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseTokens(path, text);
}

/** Writes the tokens of an instance as `{"tokens":[...]}`; after a crash the file has the old ones or the new ones. */
export async function writeTokenFile(path: string, tokens: Uint32Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.tmp`;
  await writeFile(unfinished, `${JSON.stringify({ tokens: [...tokens] })}\n`, { flush: true });
  await rename(unfinished, path);
}

/** Deletes the file; it need not be there. */
export function deleteTokenFile(path: string): Promise<void> {
  return rm(path, { force: true });
}

/** A file that was cut short counts as none: new tokens are better than a failed start. */
function parseTokens(path: string, text: string): Uint32Array | undefined {
  try {
    const { tokens, version } = JSON.parse(text) as { tokens?: unknown; version?: unknown };
    refuseNewerVersion(path, { found: version, known: knownVersion });
    if (!Array.isArray(tokens) || tokens.length === 0) return undefined;
    const isToken = (one: unknown) => Number.isInteger(one) && (one as number) >>> 0 === one;
    return tokens.every(isToken) ? Uint32Array.from(tokens as number[]).sort() : undefined;
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    return undefined;
  }
}
