import { type Logger, repeat, type Sleep } from "@skald/runtime";
import type { OwnRing, WatchedRing } from "../rings.js";
import { type Peer, type Resolver, resolvePeers } from "./resolve.js";

/** Who serves something, as far as is known now. */
export interface PeerBook {
  readonly peers: readonly Peer[];
  /** Calls back when there are others; returns what ends it. */
  onChange(listener: () => void): () => void;
  /** Keeps up to date until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
}

export interface NamedPeersOptions {
  /** Addresses and names, with commas between them; see `resolvePeers`. */
  readonly text: string;
  /** Pause between look-ups. */
  readonly periodMs: number;
  readonly log: Logger;
  readonly resolver?: Resolver;
  readonly sleep?: Sleep;
}

class Listeners {
  readonly #all = new Set<() => void>();

  add(listener: () => void): () => void {
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  tell(): void {
    for (const listener of this.#all) listener();
  }
}

/** Those behind names. What was found last serves while names cannot be looked up. */
export class NamedPeers implements PeerBook {
  readonly #options: NamedPeersOptions;
  readonly #listeners = new Listeners();
  #peers: readonly Peer[] = [];
  #isFailing = false;

  constructor(options: NamedPeersOptions) {
    this.#options = options;
  }

  get peers(): readonly Peer[] {
    return this.#peers;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  run(signal: AbortSignal): Promise<void> {
    const { periodMs, sleep } = this.#options;
    return repeat(() => this.refresh(), {
      ...{ signal, pauseMs: periodMs, onError: () => undefined },
      ...(sleep === undefined ? {} : { sleep }),
    });
  }

  /** Looks the names up; never throws. */
  async refresh(): Promise<void> {
    const { text, log, resolver } = this.#options;
    try {
      const found = await resolvePeers(text, resolver);
      this.#isFailing = false;
      if (addressesOf(found) === addressesOf(this.#peers)) return;
      this.#peers = found;
      this.#listeners.tell();
    } catch (error) {
      if (!this.#isFailing) log.warn("addresses cannot be looked up", { addresses: text, error });
      this.#isFailing = true;
    }
  }
}

function addressesOf(peers: readonly Peer[]): string {
  return peers.map(({ address }) => address).join(",");
}

/** The members of a ring that are well. */
export class RingPeers implements PeerBook {
  readonly #watched: Pick<OwnRing | WatchedRing, "ring"> & Partial<Pick<WatchedRing, "start">>;
  readonly #stop: (() => Promise<void>) | undefined;
  readonly #listeners = new Listeners();
  #peers: readonly Peer[] = [];

  /** A ring that is only watched begins and ends with the book; one that this process is a member of does not. */
  constructor(ring: { readonly own: OwnRing } | { readonly watched: WatchedRing }) {
    if ("own" in ring) this.#watched = { ring: ring.own.ring };
    else {
      this.#watched = ring.watched;
      this.#stop = () => ring.watched.stop();
    }
    this.#watched.ring.onRead(() => this.#look());
  }

  get peers(): readonly Peer[] {
    return this.#peers;
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#watched.start?.();
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await this.#stop?.();
  }

  #look(): void {
    const well = this.#watched.ring.view.instances.filter(
      ({ isHealthy, state }) => isHealthy && state === "ACTIVE",
    );
    const found = well.map(({ address }) => ({ address }));
    if (addressesOf(found) === addressesOf(this.#peers)) return;
    this.#peers = found;
    this.#listeners.tell();
  }
}
