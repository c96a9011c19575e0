import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, refuseNewerVersion } from "@skald/model";
import type { ObjectStore } from "@skald/storage";
import type { Alert } from "./alerting-rule.js";

/** The version of saved alerts that this code writes, and the newest that it reads. */
export const alertsVersion = 1;

/** The alerts of a group at a time, for the next run of the process. */
export interface SavedAlerts {
  readonly version: typeof alertsVersion;
  /** `keyOfGroup` */
  readonly group: string;
  /** ms since the epoch */
  readonly savedAtMs: number;
  readonly rules: readonly SavedRule[];
}

interface SavedRule {
  /** `identityOf` */
  readonly rule: string;
  readonly alerts: readonly Alert[];
}

/** Keeps alerts for the next run of the process, or for another ruler. */
export interface AlertKeeper {
  /** Loads the saved parts of a group. */
  load(group: string): Promise<readonly SavedAlerts[]>;
  /** Saves a group. `isLast` says that nothing follows for now. */
  save(saved: SavedAlerts, options?: { readonly isLast?: boolean }): Promise<void>;
  /** Removes a group that no longer exists. */
  remove(group: string): Promise<void>;
}

/** A text that changes with every state of alerts that others must see at once. */
function stateText(rules: readonly SavedRule[]): string {
  return JSON.stringify(
    rules.map(({ rule, alerts }) => [
      rule,
      alerts.map(({ labels, state, activeAtMs }) => [labels, state, activeAtMs]),
    ]),
  );
}

/** The last saved state of each rule in several parts. A part may have a rule more than once. */
export function newestOf(
  parts: readonly SavedAlerts[],
): (SavedRule & { readonly savedAtMs: number })[] {
  const found: (SavedRule & { readonly savedAtMs: number })[] = [];
  const seen = new Set<string>();
  for (const { savedAtMs, rules } of [...parts].sort((a, b) => b.savedAtMs - a.savedAtMs)) {
    const own = rules.filter(({ rule }) => !seen.has(rule));
    found.push(...own.map((one) => ({ ...one, savedAtMs })));
    for (const { rule } of own) seen.add(rule);
  }
  return found;
}

/**
 * Keeps the alerts of groups in files, one for each group that has any: what pending alerts have waited is not lost with the
 * process. A file is replaced as a whole; it is not synced, since after a loss of power alerts begin anew.
 */
export class AlertStates implements AlertKeeper {
  readonly #directory: string;
  readonly #present = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Finds out which groups have a file. Throws `newer_version`, with nothing changed, when a later program wrote one. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    const names = await readdir(this.#directory);
    for (const name of names.filter((one) => one.endsWith(".json"))) {
      const path = join(this.#directory, name);
      parseAlerts(path, await readFile(path, "utf8"));
    }
    for (const name of names) {
      if (name.endsWith(".json")) this.#present.add(name);
      else await rm(join(this.#directory, name), { force: true });
    }
  }

  /** Returns no part when none can be read. */
  async load(group: string): Promise<SavedAlerts[]> {
    const name = fileOf(group);
    if (!this.#present.has(name)) return [];
    try {
      const path = join(this.#directory, name);
      const saved = parseAlerts(path, await readFile(path, "utf8"));
      return saved?.group === group ? [saved] : [];
    } catch {
      return [];
    }
  }

  async save(saved: SavedAlerts): Promise<void> {
    const name = fileOf(saved.group);
    const path = join(this.#directory, name);
    if (saved.rules.every(({ alerts }) => alerts.length === 0)) {
      if (this.#present.delete(name)) await rm(path, { force: true });
      return;
    }
    await writeFile(`${path}.tmp`, JSON.stringify(saved, plainNumber));
    await rename(`${path}.tmp`, path);
    this.#present.add(name);
  }

  async remove(group: string): Promise<void> {
    await this.save({ version: alertsVersion, group, savedAtMs: 0, rules: [] });
  }
}

/** Parses saved alerts; undefined for damaged ones. Throws `newer_version` for those of a later program. */
function parseAlerts(name: string, text: string): SavedAlerts | undefined {
  let saved: SavedAlerts | null;
  try {
    saved = JSON.parse(text) as SavedAlerts | null;
  } catch {
    return undefined;
  }
  refuseNewerVersion(name, { found: saved?.version, known: alertsVersion });
  return saved?.version === alertsVersion ? saved : undefined;
}

/** JSON has no infinite numbers. The next evaluation sets the value again. */
function plainNumber(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? 0 : value;
}

function fileOf(group: string): string {
  return `${createHash("sha256").update(group).digest("hex")}.json`;
}

interface RestoreOptions {
  readonly forMs: number;
  readonly nowMs: number;
  readonly outageToleranceMs: number;
  readonly gracePeriodMs: number;
}

/**
 * The alerts after an outage. Pending alerts did not wait during the outage, and wait for at least the grace period. After an
 * outage that was too long they start over. Firing alerts still fire.
 */
export function restoreAlerts(
  { savedAtMs, alerts }: { savedAtMs: number; alerts: readonly Alert[] },
  options: RestoreOptions,
): Alert[] {
  const { forMs, nowMs, outageToleranceMs, gracePeriodMs } = options;
  const downMs = Math.max(0, nowMs - savedAtMs);
  if (downMs > outageToleranceMs) return alerts.filter(({ state }) => state !== "pending");
  return alerts.map((alert) => {
    if (alert.state !== "pending") return alert;
    const remainingMs = forMs - (savedAtMs - alert.activeAtMs);
    if (remainingMs <= 0) return alert;
    if (remainingMs < gracePeriodMs && forMs >= gracePeriodMs)
      return { ...alert, activeAtMs: nowMs + gracePeriodMs - forMs };
    return { ...alert, activeAtMs: alert.activeAtMs + downMs };
  });
}

interface SharedAlertsOptions {
  readonly store: Pick<ObjectStore, "put" | "get" | "list" | "delete">;
  readonly clock: Clock;
}

/** Unchanged alerts are written again after this time, so that the next ruler knows how long nobody evaluated them. */
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
  /** The last written text and its time, by key. */
  readonly #written = new Map<string, { readonly text: string; readonly ms: number }>();
  /** Keys of objects that a later program wrote. They are left alone. */
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

  /** Writes changed rules, or all rules with `isLast`. */
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
