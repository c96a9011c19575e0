import { lookup, resolveSrv } from "node:dns/promises";
import { once } from "node:events";
import { isIP } from "node:net";
import { errorCodeOf, type SteadyClock, steadyClock, unavailable } from "@skald/model";
import { rankFor } from "@skald/ring";
import { GrpcConnection, type GrpcConnectionOptions } from "@skald/rpc";
import { type Logger, repeat, type Sleep } from "@skald/runtime";
import type { OwnRing, WatchedRing } from "./rings.js";

/** The instances of a service that are known now. */
export interface PeerBook {
  readonly peers: readonly Peer[];
  /** Calls back when the peers change; the function that it returns ends that. */
  onChange(listener: () => void): () => void;
  /** Keeps the peers up to date until the signal is aborted. */
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

/** The peers of a book, and the listeners to their changes. */
class PeerList {
  readonly #listeners = new Set<() => void>();
  peers: readonly Peer[] = [];

  set(peers: readonly Peer[]): void {
    const addresses = (all: readonly Peer[]) => all.map(({ address }) => address).join(",");
    if (addresses(peers) === addresses(this.peers)) return;
    this.peers = peers;
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The peers behind names. The peers found last stay in use while names cannot be looked up. */
export class NamedPeers implements PeerBook {
  readonly #options: NamedPeersOptions;
  readonly #list = new PeerList();
  #isFailing = false;

  constructor(options: NamedPeersOptions) {
    this.#options = options;
  }

  get peers(): readonly Peer[] {
    return this.#list.peers;
  }

  onChange(listener: () => void): () => void {
    return this.#list.onChange(listener);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { periodMs: pauseMs, sleep } = this.#options;
    const onError = () => undefined;
    await this.refresh();
    await repeat(() => this.refresh(), { pauseMs, signal, onError, ...(sleep && { sleep }) });
  }

  /** Looks the names up; never throws. */
  async refresh(): Promise<void> {
    const { text, log, resolver } = this.#options;
    try {
      this.#list.set(await resolvePeers(text, resolver));
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn("addresses cannot be looked up", { addresses: text, error });
      this.#isFailing = true;
    }
  }
}

/**
 * The healthy members of a ring. The book starts and stops a ring that is only watched; the ring of a membership lives
 * with its module.
 */
export function ringPeers(own: OwnRing | WatchedRing): PeerBook {
  const list = new PeerList();
  const { ring } = own;
  ring.onRead(() => {
    const well = ring.view.instances.filter(
      ({ isHealthy, state }) => isHealthy && state === "ACTIVE",
    );
    list.set(well.map(({ address }) => ({ address })));
  });
  return {
    get peers() {
      return list.peers;
    },
    onChange: (listener) => list.onChange(listener),
    run: async (signal) => {
      const watched = "owns" in own ? undefined : own;
      await watched?.start();
      if (!signal.aborted) await once(signal, "abort");
      await watched?.stop();
    },
  };
}

/** Where one instance of a service is called. */
export interface Peer {
  /** Host and port. */
  readonly address: string;
  /** The name that was looked up, which its certificate has; absent if an address was configured. */
  readonly host?: string;
}

export interface Resolver {
  lookup(host: string): Promise<readonly string[]>;
  srv(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

const systemResolver: Resolver = {
  lookup: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  srv: (name) => resolveSrv(name),
};

const srvPrefix = /^dnssrv(noa)?\+/;
/** `dns+host:port`, and `dns:///host:port` as gRPC has it. */
const dnsPrefix = /^dns(\+|:\/{0,3})/;

/**
 * The instances behind configured addresses, which are separated by commas: `host:port` and `dns+host:port` stand for all
 * addresses of the host, `dnssrv+name` for the service records of the name. Throws the errors of the resolver.
 */
export async function resolvePeers(
  text: string,
  resolver: Resolver = systemResolver,
): Promise<Peer[]> {
  const given = text.split(",").flatMap((one) => one.trim() || []);
  const found = (await Promise.all(given.map((one) => resolveOne(one, resolver)))).flat();
  const byAddress = new Map(found.map((peer) => [peer.address, peer]));
  return [...byAddress.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

async function resolveOne(given: string, resolver: Resolver): Promise<Peer[]> {
  if (srvPrefix.test(given)) {
    const records = await resolver.srv(given.replace(srvPrefix, ""));
    const all = records.map(({ name, port }) => resolveHost(name, String(port), resolver));
    return (await Promise.all(all)).flat();
  }
  const { host, port } = splitAddress(given.replace(dnsPrefix, ""));
  return resolveHost(host, port, resolver);
}

async function resolveHost(host: string, port: string, resolver: Resolver): Promise<Peer[]> {
  if (isIP(host) !== 0) return [{ address: joinAddress(host, port) }];
  const addresses = await resolver.lookup(host);
  return addresses.map((address) => ({ address: joinAddress(address, port), host }));
}

function splitAddress(address: string): { host: string; port: string } {
  const at = address.lastIndexOf(":");
  const host = at < 0 ? address : address.slice(0, at);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: at < 0 ? "9095" : address.slice(at + 1) };
}

function joinAddress(host: string, port: string): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Runs a task for each peer while it is in the book, until the signal is aborted: the task's own signal ends it. `onCount` is
 * called with the number of peers.
 */
export async function followPeers(
  book: PeerBook,
  run: (peer: Peer, signal: AbortSignal) => Promise<void>,
  { signal, onCount }: { readonly signal: AbortSignal; readonly onCount: (peers: number) => void },
): Promise<void> {
  const running = new Map<string, { end: AbortController; done: Promise<void> }>();
  const ended = new Set<Promise<void>>();
  const look = () => {
    const { peers } = book;
    onCount(peers.length);
    const wanted = new Set(peers.map(({ address }) => address));
    for (const [address, { end, done }] of running) {
      if (wanted.has(address)) continue;
      running.delete(address);
      end.abort();
      ended.add(done);
      void done.finally(() => ended.delete(done));
    }
    for (const peer of peers) {
      if (running.has(peer.address) || signal.aborted) continue;
      const end = new AbortController();
      const onAbort = () => end.abort(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      const done = run(peer, end.signal).finally(() =>
        signal.removeEventListener("abort", onAbort),
      );
      running.set(peer.address, { end, done });
    }
  };
  const stop = book.onChange(look);
  look();
  await book.run(signal);
  stop();
  await Promise.all([...ended, ...[...running.values()].map(({ done }) => done)]);
}

/** A peer that could not be reached comes last for this time. */
const suspectMs = 10_000;

export interface PeerCallsOptions<Service> {
  readonly book: Pick<PeerBook, "peers">;
  /** The name of the service, for errors. */
  readonly name: string;
  readonly connect: (peer: Peer) => Service;
  readonly clock?: SteadyClock;
}

/** The order of peers for a call. */
export interface CallOrder {
  readonly tenant: string;
  /** This many first peers of the tenant's order take its calls in turn; the others replace those that are lost. */
  readonly width: number;
}

/** Several instances of a service as one: a call goes to one of them, and to another if the first is lost. */
export class PeerCalls<Service> {
  readonly #options: PeerCallsOptions<Service>;
  readonly #clock: SteadyClock;
  /** The time until which an address comes last. */
  readonly #suspects = new Map<string, number>();
  #turn = 0;

  constructor(options: PeerCallsOptions<Service>) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Calls must be idempotent. Throws unavailable if no peer can be reached, and what the called peer throws. */
  async call<T>(
    run: (service: Service) => Promise<T>,
    { signal, order }: { readonly signal: AbortSignal; readonly order?: CallOrder },
  ): Promise<T> {
    const { connect, name } = this.#options;
    let failure: unknown;
    for (const peer of this.#inOrder(order)) {
      signal.throwIfAborted();
      try {
        return await run(connect(peer));
      } catch (error) {
        if (signal.aborted || errorCodeOf(error) !== "unavailable") throw error;
        this.#suspects.set(peer.address, this.#clock.elapsedMs() + suspectMs);
        failure = error;
      }
    }
    throw failure ?? unavailable(`no ${name} is known`);
  }

  #inOrder(order: CallOrder | undefined): Peer[] {
    const { peers } = this.#options.book;
    const ranked =
      order === undefined ? peers : rankFor(order.tenant, peers, ({ address }) => address);
    const width = Math.min(order?.width ?? ranked.length, ranked.length);
    const first = width === 0 ? 0 : this.#turn++ % width;
    const turned = [...ranked.slice(first, width), ...ranked.slice(0, first)];
    const all = [...turned, ...ranked.slice(width)];
    return [
      ...all.filter((peer) => !this.#isSuspect(peer)),
      ...all.filter((peer) => this.#isSuspect(peer)),
    ];
  }

  #isSuspect({ address }: Peer): boolean {
    return this.#clock.elapsedMs() < (this.#suspects.get(address) ?? 0);
  }
}

const tailsEnd = " tails";

/** The connections of this process to others, one for each address. */
export class Connections {
  readonly #open = new Map<string, GrpcConnection>();

  /** The connection to an address. Tails have one of their own, because a connection carries a limited number of calls. */
  to(
    address: string,
    options: Omit<GrpcConnectionOptions, "address">,
    { forTails = false } = {},
  ): GrpcConnection {
    const key = forTails ? address + tailsEnd : address;
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const connection = new GrpcConnection({ ...options, address });
    this.#open.set(key, connection);
    return connection;
  }

  /** Closes the connections to an address. */
  close(address: string): void {
    for (const key of [address, address + tailsEnd]) {
      this.#open.get(key)?.close();
      this.#open.delete(key);
    }
  }

  closeAll(): void {
    for (const connection of this.#open.values()) connection.close();
    this.#open.clear();
  }
}
