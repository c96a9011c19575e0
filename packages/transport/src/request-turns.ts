import type { IncomingHttpHeaders } from "node:http";

/** Longest stretch that the requests begun in one turn of the event loop may take, with what follows them at once. */
const stretchMs = 2;
/** Most that begin in one turn as they come; what follows them, such as a short answer, comes after all of them. */
const maxAtOnce = 8;
/** Most of those that wait that begin in one turn. */
const maxPerTurn = 64;
/** Requests that one connection may send ahead. */
const maxWaiting = 1000;

/**
 * Begins requests in turns. Tenants take turns, and within one its connections: one that sends many at once has one of them begun whenever
 * its turn comes, and every other turn is one of a connection that sent one. The event loop goes on after 4 ms. So neither a thousand
 * requests in one packet nor hundreds of such connections keep others waiting for long.
 */
export class RequestTurns {
  /** Who has requests that wait; the first has the next turn. */
  readonly #tenants = new Map<string, Waiting>();
  /** Where the requests of a connection wait. */
  readonly #places = new Map<object, Waiting>();
  #count = 0;
  /** Requests that began in this turn as they came. */
  #begun = 0;
  #sinceMs = 0;
  #isPlanned = false;

  /**
   * Begins a request now, or in the turn of its tenant and connection. False if too many wait there; then it does nothing. `begin` must not
   * throw. The tenant is what `turnOf` gives; it need not exist.
   */
  run(connection: object, begin: () => void, tenant = ""): boolean {
    const place = this.#places.get(connection);
    if (place === undefined && this.#count === 0 && this.#hasRoom()) begin();
    else {
      const waiting = place ?? this.#tenants.get(tenant) ?? new Waiting(tenant);
      if (!waiting.add(connection, begin)) return false;
      this.#places.set(connection, waiting);
      this.#tenants.set(waiting.tenant, waiting);
      this.#count++;
    }
    this.#plan();
    return true;
  }

  /** Forgets what waits of a connection that is closed, and all that it holds. */
  drop(connection: object): void {
    const waiting = this.#places.get(connection);
    if (waiting === undefined) return;
    this.#places.delete(connection);
    this.#count -= waiting.drop(connection);
    if (waiting.isEmpty) this.#tenants.delete(waiting.tenant);
  }

  #hasRoom(): boolean {
    if (this.#begun === 0) this.#sinceMs = performance.now();
    this.#begun++;
    return this.#begun <= maxAtOnce && performance.now() - this.#sinceMs < stretchMs;
  }

  /** Plans the end of this turn and what waits, each in an immediate of its own, so that what follows one at once counts for the next. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const steps = Math.max(1, Math.min(maxPerTurn, this.#count));
    let sinceMs: number | undefined;
    for (let left = steps - 1; left >= 0; left--) {
      setImmediate(() => {
        sinceMs ??= performance.now();
        if (performance.now() - sinceMs < stretchMs) this.#beginNext();
        if (left === 0) this.#endTurn();
      });
    }
  }

  #endTurn(): void {
    this.#isPlanned = false;
    this.#begun = 0;
    if (this.#count > 0) this.#plan();
  }

  #beginNext(): void {
    const [waiting] = this.#tenants.values();
    if (waiting === undefined) return;
    const { connection, begin, isLast } = waiting.take();
    if (isLast) this.#places.delete(connection);
    // The tenant goes behind the others.
    this.#tenants.delete(waiting.tenant);
    if (!waiting.isEmpty) this.#tenants.set(waiting.tenant, waiting);
    this.#count--;
    begin();
  }
}

/** The requests of a tenant that wait. */
class Waiting {
  readonly tenant: string;
  /** By connection: those that sent one request, and those that sent several; the first connection has the next turn. */
  readonly #single = new Map<object, (() => void)[]>();
  readonly #several = new Map<object, (() => void)[]>();
  #isSingleNext = true;

  constructor(tenant: string) {
    this.tenant = tenant;
  }

  get isEmpty(): boolean {
    return this.#single.size + this.#several.size === 0;
  }

  /** False if too many of the connection wait. */
  add(connection: object, begin: () => void): boolean {
    const before = this.#single.get(connection) ?? this.#several.get(connection);
    if (before === undefined) this.#single.set(connection, [begin]);
    else if (before.length >= maxWaiting) return false;
    else {
      before.push(begin);
      if (this.#single.delete(connection)) this.#several.set(connection, before);
    }
    return true;
  }

  /** The next, and whether it was the last of its connection. There has to be one. */
  take(): { connection: object; begin: () => void; isLast: boolean } {
    const isSingle = this.#several.size === 0 || (this.#isSingleNext && this.#single.size > 0);
    this.#isSingleNext = !isSingle;
    const waiting = isSingle ? this.#single : this.#several;
    const [[connection, begins]] = waiting as unknown as [[object, (() => void)[]]];
    // The connection goes behind the others.
    waiting.delete(connection);
    const begin = begins.shift() as () => void;
    if (begins.length > 0) waiting.set(connection, begins);
    return { connection, begin, isLast: begins.length === 0 };
  }

  /** Forgets a connection; returns how many of its requests waited. */
  drop(connection: object): number {
    const begins = this.#single.get(connection) ?? this.#several.get(connection) ?? [];
    this.#single.delete(connection);
    this.#several.delete(connection);
    return begins.length;
  }
}

/**
 * Whose turn a request takes before anything is checked: that of the tenant that it names, true or not. One that names none takes
 * that of the first part of its path, so that `/ready` does not wait behind pushes.
 */
export function turnOf({ "x-scope-orgid": tenant }: IncomingHttpHeaders, path: string): string {
  return String(tenant ?? "") || (/^\/[^/?]*/.exec(path)?.[0] ?? "");
}
