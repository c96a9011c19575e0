import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, systemClock } from "@skald/model";
import type { Logger } from "@skald/runtime";

export interface KeptRingOptions {
  readonly path: string;
  /** Names the store of the ring: fields of another store count as none. */
  readonly source: string;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** Pause between two writes; only the time of the last one changes as a rule. */
const pauseMs = 10_000;
/** Members may have come and gone while this process was away longer. */
const maxAgeMs = 10 * 60_000;

/**
 * A file with the fields of a ring as this process used them last. A process that starts while the store is down begins with
 * them, unless it was away for more than ten minutes.
 */
export class KeptRing {
  readonly #options: KeptRingOptions;
  readonly #clock: Clock;
  #savedMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(options: KeptRingOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The fields of an earlier process; undefined when there are none, or they are too old. */
  async load(): Promise<ReadonlyMap<string, string> | undefined> {
    const { path, source } = this.#options;
    try {
      const kept = JSON.parse(await readFile(path, "utf8"));
      const ageMs = Math.abs(this.#clock.nowMs() - kept.savedMs);
      if (kept.version !== 1 || kept.source !== source || !(ageMs <= maxAgeMs)) return undefined;
      const fields = Object.entries(kept.fields);
      const areTexts = fields.every(([, text]) => typeof text === "string");
      return areTexts ? new Map(fields as [string, string][]) : undefined;
    } catch {
      // Without the file, or with a damaged one, the process waits for the store.
      return undefined;
    }
  }

  /** Keeps the fields in use; does nothing when it did so just now. A failure is logged. */
  async save(fields: ReadonlyMap<string, string>): Promise<void> {
    const { path, source, log } = this.#options;
    const savedMs = this.#clock.nowMs();
    if (Math.abs(savedMs - this.#savedMs) < pauseMs) return;
    this.#savedMs = savedMs;
    const unfinished = `${path}.${randomUUID()}.tmp`;
    const kept = { version: 1, source, savedMs, fields: Object.fromEntries(fields) };
    try {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(unfinished, `${JSON.stringify(kept)}\n`);
      await rename(unfinished, path);
      this.#isFailing = false;
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      const text = "the ring cannot be kept in a file; a start while its store is down will wait";
      if (!this.#isFailing) log.warn(text, { path, error });
      this.#isFailing = true;
    }
  }
}
