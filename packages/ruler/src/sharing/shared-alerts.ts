import { createHash } from "node:crypto";
import type { Clock } from "@skald/model";
import type { ObjectStore } from "@skald/storage";
import {
  type AlertKeeper,
  parseAlerts,
  plainNumber,
  type SavedAlerts,
  type SavedRule,
  stateText,
} from "../evaluate/alert-states.js";

export interface SharedAlertsOptions {
  readonly store: Pick<ObjectStore, "put" | "get" | "list" | "delete">;
  readonly clock: Clock;
}

/** What has not changed is written again after this, so that whoever takes over knows how long nobody looked. */
const renewMs = 60_000;
const timeoutMs = 10_000;

/**
 * Keeps the alerts of rules in the object store, for the ruler that takes a rule over, each rule in an object of its own since
 * those of a group may be several rulers':
 *
 *     ruler-alerts/<hash of the group>/<hash of the rule>.json
 *
 * It is written when alerts begin, change their state or end, and once a minute while there are any.
 */
export class SharedAlerts implements AlertKeeper {
  readonly #options: SharedAlertsOptions;
  /** By key, what was written last, and when. */
  readonly #written = new Map<string, { readonly text: string; readonly ms: number }>();
  /** Keys of objects that a later program wrote: they stay as they are. */
  readonly #newer = new Set<string>();

  constructor(options: SharedAlertsOptions) {
    this.#options = options;
  }

  async load(group: string): Promise<SavedAlerts[]> {
    const { store, clock } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    const found: SavedAlerts[] = [];
    for await (const { key } of store.list(folderOf(group), { signal })) {
      const saved = this.#parse(key, await store.get(key, { signal }));
      if (saved?.group !== group) continue;
      this.#written.set(key, { text: stateText(saved.rules), ms: clock.nowMs() - renewMs });
      found.push(saved);
    }
    return found;
  }

  /** Writes what has changed, and with `isLast` all that there is. */
  async save(saved: SavedAlerts, { isLast = false } = {}): Promise<void> {
    const byRule = new Map<string, SavedRule[]>();
    for (const one of saved.rules) byRule.set(one.rule, [...(byRule.get(one.rule) ?? []), one]);
    for (const [rule, rules] of byRule) await this.#saveRule({ ...saved, rules }, rule, isLast);
  }

  async remove(group: string): Promise<void> {
    const signal = AbortSignal.timeout(timeoutMs);
    for await (const { key } of this.#options.store.list(folderOf(group), { signal })) {
      if (this.#newer.has(key)) continue;
      await this.#options.store.delete(key, { signal });
      this.#written.delete(key);
    }
  }

  #parse(key: string, bytes: Uint8Array): SavedAlerts | undefined {
    try {
      return parseAlerts(key, Buffer.from(bytes).toString("utf8"));
    } catch (error) {
      this.#newer.add(key);
      throw error;
    }
  }

  async #saveRule(saved: SavedAlerts, rule: string, isLast: boolean): Promise<void> {
    const { store, clock } = this.#options;
    const key = `${folderOf(saved.group)}${hashOf(rule)}.json`;
    if (this.#newer.has(key)) return;
    const known = this.#written.get(key);
    const isEmpty = saved.rules.every(({ alerts }) => alerts.length === 0);
    if (isEmpty && known === undefined) return;
    const signal = AbortSignal.timeout(timeoutMs);
    if (isEmpty) {
      await store.delete(key, { signal });
      this.#written.delete(key);
      return;
    }
    const text = stateText(saved.rules);
    const ms = clock.nowMs();
    if (!isLast && known?.text === text && ms - known.ms < renewMs) return;
    await store.put(key, Buffer.from(JSON.stringify(saved, plainNumber)), { signal });
    this.#written.set(key, { text, ms });
  }
}

function folderOf(group: string): string {
  return `ruler-alerts/${hashOf(group)}/`;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
