import { errorCodeOf, type SteadyClock, steadyClock, unavailable } from "@skald/model";
import { rankFor } from "@skald/ring";
import type { PeerBook } from "./peer-book.js";
import type { Peer } from "./resolve.js";

/** One that could not be reached comes last for so long. */
const suspectMs = 10_000;

export interface PeerCallsOptions<Service> {
  readonly book: Pick<PeerBook, "peers">;
  /** What is called, for errors. */
  readonly name: string;
  readonly connect: (peer: Peer) => Service;
  readonly clock?: SteadyClock;
}

/** Of whom a call is first. */
export interface CallOrder {
  readonly tenant: string;
  /** The first so many of a tenant's order take its calls in turn; the others are there in case those are lost. */
  readonly width: number;
}

/** Several instances of a service as one: a call goes to one of them, and to another when that one is lost. */
export class PeerCalls<Service> {
  readonly #options: PeerCallsOptions<Service>;
  readonly #clock: SteadyClock;
  /** By address, until when it comes last. */
  readonly #suspects = new Map<string, number>();
  #turn = 0;

  constructor(options: PeerCallsOptions<Service>) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  /** Calls must not mind being made twice. Throws unavailable when nobody can be reached, and what the one called throws. */
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
