import { SkaldError, unavailable } from "@skald/model";

/** What memory is held for: bodies as they arrived, or what they were decoded to. */
export type HeldKind = "received" | "inflated";

/** What a tenant holds now. */
export interface Holding {
  readonly tenant: string;
  readonly kind: HeldKind;
  /** Bytes. */
  readonly value: number;
}

/** A request that takes no more than this may use the reserve. */
const smallBytes = 64 * 1024;
/** The part of all that only small requests may use. */
const reserveShare = 1 / 8;
/** The part of all that several requests of one tenant may hold together. */
const tenantShare = 1 / 2;
/** No body is decoded on a thread while decoded ones hold more than this part. */
const inflatedShare = 1 / 2;
const retryAfterSeconds = 1;

/**
 * Bounds the memory that the pushes of a process hold, tenant by tenant: several pushes of one tenant hold at most half of it,
 * and an eighth is left to small pushes. So large or slow bodies of one tenant do not keep the pushes of others out.
 */
export class Ledger {
  readonly #maxBytes: number;
  readonly #onRoom: () => void;
  readonly #accounts = new Map<string, Account>();
  #bytes = 0;
  #inflated = 0;

  /** `maxBytes` 0 means no limit. `onRoom` is called when `isScarce` may have become false. */
  constructor(maxBytes: number, onRoom: () => void = () => undefined) {
    this.#maxBytes = maxBytes;
    this.#onRoom = onRoom;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** True while decoded bodies hold so much that another had better wait. */
  get isScarce(): boolean {
    return this.#maxBytes > 0 && this.#inflated > this.#maxBytes * inflatedShare;
  }

  /** Begins a request of a tenant; `close` must be called when it ends. */
  open(tenant: string): Claim {
    let account = this.#accounts.get(tenant);
    if (account === undefined) {
      account = { tenant, claims: 0, received: 0, inflated: 0 };
      this.#accounts.set(tenant, account);
    }
    account.claims++;
    return new Claim(this, account);
  }

  /** What tenants hold now. */
  *holdings(): Generator<Holding> {
    for (const { tenant, received, inflated } of this.#accounts.values()) {
      yield { tenant, kind: "received", value: received };
      yield { tenant, kind: "inflated", value: inflated };
    }
  }

  /** For claims: adds bytes of a body to what a tenant holds, or throws and adds nothing. */
  receive(account: Account, bytes: number, claimedBytes: number): void {
    const max = this.#maxBytes;
    if (max > 0) {
      const isSmall = claimedBytes + bytes <= smallBytes;
      const others = account.received + account.inflated - claimedBytes;
      if (this.#bytes + bytes > (isSmall ? max : max - max * reserveShare)) throw full(max);
      if (others > 0 && others + claimedBytes + bytes > max * tenantShare) {
        throw tenantFull(account.tenant, max);
      }
    }
    account.received += bytes;
    this.#bytes += bytes;
  }

  /** For claims: counts what a body was decoded to. */
  inflate(account: Account, bytes: number): void {
    account.inflated += bytes;
    this.#inflated += bytes;
    this.#bytes += bytes;
  }

  /** For claims: takes away what one held. */
  close(account: Account, received: number, inflated: number): void {
    const wasScarce = this.isScarce;
    account.received -= received;
    account.inflated -= inflated;
    this.#bytes -= received + inflated;
    this.#inflated -= inflated;
    if (--account.claims === 0) this.#accounts.delete(account.tenant);
    if (wasScarce && !this.isScarce) this.#onRoom();
  }
}

interface Account {
  readonly tenant: string;
  claims: number;
  received: number;
  inflated: number;
}

/** What one request holds. */
export class Claim {
  readonly #ledger: Ledger;
  readonly #account: Account;
  #received = 0;
  #inflated = 0;

  constructor(ledger: Ledger, account: Account) {
    this.#ledger = ledger;
    this.#account = account;
  }

  /** Adds bytes of the body; throws unavailable (503) or rate_limited (429) when there is no room for them. */
  receive(bytes: number): void {
    this.#ledger.receive(this.#account, bytes, this.#received + this.#inflated);
    this.#received += bytes;
  }

  /** Counts what the body was decoded to. */
  inflate(bytes: number): void {
    this.#ledger.inflate(this.#account, bytes);
    this.#inflated += bytes;
  }

  close(): void {
    this.#ledger.close(this.#account, this.#received, this.#inflated);
  }
}

function full(maxBytes: number): SkaldError {
  return unavailable(
    `The server cannot accept more requests at this time: pushes hold ${maxBytes} bytes (distributor.max_inflight_bytes).`,
  );
}

function tenantFull(tenant: string, maxBytes: number): SkaldError {
  return new SkaldError(
    "rate_limited",
    `the pushes of tenant '${tenant}' hold more than ${maxBytes * tenantShare} bytes, half of distributor.max_inflight_bytes; send fewer or smaller pushes at a time, or raise it`,
    { retryAfterSeconds },
  );
}
