import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { DeleteRequests } from "@skald/compactor";
import { type Clock, formatGoDuration, nsPerMs } from "@skald/model";
import { type Logger, repeat, type Sleep, sleep, withDeadline } from "@skald/runtime";

export interface ReturnedDiskOptions {
  readonly walDir: string;
  /** The folder of the local segments. */
  readonly segmentsDir: string;
  readonly deletes: Pick<DeleteRequests, "refresh" | "reopen">;
  /** An ingester that was away for less cannot have been forgotten by the ring. */
  readonly forgottenAfterMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/** Clocks of an ingester and of a compactor differ by less. */
const maxSkewMs = 10 * 60_000;
/** The header of a log file, which has no row yet. */
const walHeaderBytes = 16;
/** The start waits for the store for this long. */
const storeWaitMs = 10_000;
const retryMs = 5000;
/** Queries of other processes know of an opened request after a second; those that began before have ended by then. */
const knownAfterMs = 5000;

/**
 * The disk of an ingester that was away. While the ring knew the ingester, no delete request was finished without it. If the ring
 * forgot it, requests may have been finished since whose rows are on this disk. Such requests are opened again: they hide
 * these rows at once, and delete them wherever they are.
 */
export class ReturnedDisk {
  readonly #options: ReturnedDiskOptions;
  /** When the disk was last written to; undefined when no delete request can have been finished without it. */
  #sinceMs: number | undefined;

  constructor(options: ReturnedDiskOptions) {
    this.#options = options;
  }

  /**
   * Must be called before the ingester starts. While the store does not answer, the ingester starts all the same after ten
   * seconds, and `watch` goes on. Throws when rows of this disk may have been deleted by a request whose text is gone.
   */
  async prepare(signal: AbortSignal): Promise<void> {
    const { clock, forgottenAfterMs, log } = this.#options;
    const found = await this.#look();
    if (found === undefined || clock.nowMs() - found.lastMs < forgottenAfterMs) return;
    // The store has the rows of these copies, or has deleted them.
    if (!found.hasOwnRows) {
      for (const path of found.copies) await rm(path, { force: true });
      return;
    }
    this.#sinceMs = found.lastMs - maxSkewMs;
    try {
      const message = `the store took longer than ${storeWaitMs} ms`;
      const opened = await withDeadline({ timeoutMs: storeWaitMs, message, signal }, (both) =>
        this.#apply(both),
      );
      if (opened > 0) await (this.#options.sleep ?? sleep)(knownAfterMs, signal);
    } catch (error) {
      if (error instanceof TextIsGone || signal.aborted) throw error;
      log.warn("the delete requests cannot be read; rows that were deleted may show until then", {
        error,
      });
    }
  }

  /** Opens the requests again that were finished while the ingester was away; resolves with their number. */
  async #apply(signal: AbortSignal): Promise<number> {
    const { deletes, log } = this.#options;
    if (this.#sinceMs === undefined) return 0;
    await deletes.refresh({ signal });
    const { opened, unknown } = await deletes.reopen(this.#sinceMs, { signal });
    if (opened.length > 0)
      log.warn("opened delete requests again that were finished while this ingester was away", {
        requests: opened.map(({ id }) => id),
      });
    if (unknown.length > 0) throw new TextIsGone(this.#refusal(unknown));
    return opened.length;
  }

  /**
   * Opens the requests once more, because a compactor may have finished them again before the ring knew the ingester. It tries
   * until the store answers, and throws as `prepare` does.
   */
  async watch(signal: AbortSignal): Promise<void> {
    const { log, sleep: pause } = this.#options;
    const done = new AbortController();
    let failure: unknown;
    await repeat(() => this.#apply(signal).then(() => done.abort()), {
      ...{ pauseMs: retryMs, signal: AbortSignal.any([signal, done.signal]) },
      ...(pause === undefined ? {} : { sleep: pause }),
      onError: (error) => {
        if (error instanceof TextIsGone) {
          failure = error;
          done.abort();
        } else log.warn("the delete requests cannot be read yet", { error });
      },
    });
    if (failure !== undefined) throw failure;
  }

  #refusal(requests: readonly { readonly id: string; readonly tenant: string }[]): string {
    const { clock, segmentsDir, walDir } = this.#options;
    const awayMs = clock.nowMs() - (this.#sinceMs as number) - maxSkewMs;
    const named = requests.map(({ id, tenant }) => `${id} of tenant ${tenant}`).join(", ");
    const away = formatGoDuration(BigInt(Math.round(awayMs / 1000)) * 1000n * nsPerMs);
    return `the disk of this ingester was away for ${away}, and may have rows that were deleted since: the text of delete requests is taken out after compactor.delete_request_redact_period, so that these rows cannot be found (${named}). Move ${walDir} and ${segmentsDir} aside and start again; the other replicas have the rows that were not deleted`;
  }

  async #look(): Promise<FoundDisk | undefined> {
    const { segmentsDir, walDir } = this.#options;
    const paths = [...(await filesBelow(walDir)), ...(await filesBelow(segmentsDir))];
    const known = new Set(paths);
    const isMark = (path: string) => path.endsWith(".uploaded");
    let lastMs = Number.NEGATIVE_INFINITY;
    let hasOwnRows = false;
    const copies: string[] = [];
    for (const path of paths) {
      const isLog = path.endsWith(".wal");
      const isSegment = path.endsWith(".parquet");
      if (!isLog && !isSegment && !isMark(path)) continue;
      const { mtimeMs, size } = await stat(path);
      lastMs = Math.max(lastMs, mtimeMs);
      const mark = path.replace(/\.parquet$/, ".uploaded");
      if (isSegment && known.has(mark)) copies.push(path, mark);
      else if (isSegment || (isLog && size > walHeaderBytes)) hasOwnRows = true;
    }
    return Number.isFinite(lastMs) ? { lastMs, hasOwnRows, copies } : undefined;
  }
}

interface FoundDisk {
  readonly lastMs: number;
  /** Whether it may have rows that the store never had. */
  readonly hasOwnRows: boolean;
  /** Files of segments that were uploaded, and their marks. */
  readonly copies: readonly string[];
}

class TextIsGone extends Error {}

async function filesBelow(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
