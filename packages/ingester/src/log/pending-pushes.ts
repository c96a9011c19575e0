import type { Tenant, TenantAppend } from "../tenant/tenant.js";

interface Pending {
  readonly push: TenantAppend;
  written: Promise<void>;
}

/**
 * Pushes whose rows are in heads and not in the log yet, oldest first: the log writes them in this order, and when a write
 * fails it has lost them all.
 */
export class PendingPushes {
  readonly #pending: Pending[] = [];

  /** Takes a push in whose records go to a file; `log` hands them to the log and tells when they are written. */
  add(push: TenantAppend, file: number, nowMs: number, log: () => Promise<void>): Promise<void> {
    const pending: Pending = { push, written: Promise.resolve() };
    this.#pending.push(pending);
    for (const { head } of push.heads.values()) {
      head.pendingPushes++;
      head.lastAppendMs = nowMs;
      head.noteFile(file);
    }
    pending.written = log();
    return pending.written;
  }

  /** The oldest one is written: shows its rows. */
  publishOldest(): TenantAppend | undefined {
    const push = this.#pending.shift()?.push;
    for (const { head, after } of push?.heads.values() ?? []) {
      head.publish(after);
      head.pendingPushes--;
    }
    return push;
  }

  /** All are lost: takes their rows back, the last push first. */
  undoAll(): void {
    for (const { push } of this.#pending.splice(0).reverse()) {
      push.tenant.undo(push);
      for (const { head } of push.heads.values()) head.pendingPushes--;
    }
  }

  /** Settles as the last push of a tenant that is not written does; at once when all are. */
  settled(tenant: Tenant): Promise<void> {
    const last = this.#pending.findLast(({ push }) => push.tenant === tenant);
    return last?.written ?? Promise.resolve();
  }
}
