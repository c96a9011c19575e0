import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Alert } from "./alerting-rule.js";

/** What a group's alerts are at a time, for the next life of the process. */
export interface SavedAlerts {
  readonly version: 1;
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

/**
 * Keeps the alerts of groups in files, one for each group that has any: what pending alerts have waited is not lost with the
 * process. A file is replaced as a whole; it is not synced, since after a loss of power alerts begin anew.
 */
export class AlertStates {
  readonly #directory: string;
  readonly #present = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Finds out which groups have a file. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    for (const name of await readdir(this.#directory)) {
      if (name.endsWith(".json")) this.#present.add(name);
      else await rm(join(this.#directory, name), { force: true });
    }
  }

  /** Undefined when there is nothing, or nothing that can be read. */
  async load(group: string): Promise<SavedAlerts | undefined> {
    const name = fileOf(group);
    if (!this.#present.has(name)) return undefined;
    try {
      const saved = JSON.parse(await readFile(join(this.#directory, name), "utf8")) as SavedAlerts;
      return saved.version === 1 && saved.group === group ? saved : undefined;
    } catch {
      return undefined;
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

  /** Of a group that is gone. */
  async forget(group: string): Promise<void> {
    await this.save({ version: 1, group, savedAtMs: 0, rules: [] });
  }
}

/** JSON has no infinite numbers; the value comes anew with the next evaluation. */
function plainNumber(_: string, value: unknown): unknown {
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
