import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { refuseNewerVersion } from "@skald/model";
import type { Alert } from "./alerting-rule.js";

/** The version of saved alerts that this code writes, and the newest that it reads. */
export const alertsVersion = 1;

/** What a group's alerts are at a time, for the next life of the process. */
export interface SavedAlerts {
  readonly version: typeof alertsVersion;
  /** `keyOfGroup` */
  readonly group: string;
  /** ms since the epoch */
  readonly savedAtMs: number;
  readonly rules: readonly SavedRule[];
}

export interface SavedRule {
  /** `identityOf` */
  readonly rule: string;
  readonly alerts: readonly Alert[];
}

/** Keeps alerts, for the next life of the process or for another ruler. */
export interface AlertKeeper {
  /** What was saved of a group, in any number of parts. */
  load(group: string): Promise<readonly SavedAlerts[]>;
  /** With `isLast` nothing follows for now. */
  save(saved: SavedAlerts, options?: { readonly isLast?: boolean }): Promise<void>;
  /** Of a group that is no more. */
  remove(group: string): Promise<void>;
}

/** What of alerts is worth telling others of at once. */
export function stateText(rules: readonly SavedRule[]): string {
  return JSON.stringify(
    rules.map(({ rule, alerts }) => [
      rule,
      alerts.map(({ labels, state, activeAtMs }) => [labels, state, activeAtMs]),
    ]),
  );
}

/** Of each rule of several parts what was saved last; a rule may be there more than once in a part. */
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

  /** Nothing when there is nothing that can be read. */
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

/** Saved alerts; undefined for what is damaged. Throws `newer_version` for what a later program wrote. */
export function parseAlerts(name: string, text: string): SavedAlerts | undefined {
  let saved: SavedAlerts | null;
  try {
    saved = JSON.parse(text) as SavedAlerts | null;
  } catch {
    return undefined;
  }
  refuseNewerVersion(name, { found: saved?.version, known: alertsVersion });
  return saved?.version === alertsVersion ? saved : undefined;
}

/** JSON has no infinite numbers; the value comes anew with the next evaluation. */
export function plainNumber(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isFinite(value) ? 0 : value;
}

function fileOf(group: string): string {
  return `${createHash("sha256").update(group).digest("hex")}.json`;
}

export interface RestoreOptions {
  readonly forMs: number;
  readonly nowMs: number;
  readonly outageToleranceMs: number;
  readonly gracePeriodMs: number;
}

/**
 * What alerts are after an outage. Pending ones have not waited during it, and wait for the grace period at least; after an
 * outage that was too long they begin anew. Firing ones still fire.
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
