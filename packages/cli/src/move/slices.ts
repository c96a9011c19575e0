import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Semaphore } from "@skald/runtime";
import { Failure } from "../shell/command.js";

const minuteNs = 60_000_000_000n;
/** A range is cut into at most about this many slices. */
const maxSlices = 64;

export interface Slice {
  readonly index: number;
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

/** A work in slices of time, as its state file has it. */
interface StoredWork {
  /** What the work is; another one must not go on with this file. */
  readonly work: string;
  readonly fromNs: string;
  readonly toNs: string;
  readonly sliceNs: string;
  /** What was counted in each slice that is done. */
  readonly done: Record<string, number>;
}

export interface SlicedWorkOptions {
  readonly path: string;
  /** What makes this work this one: query, source, target. */
  readonly work: string;
  /** Has to be that of the file, if there is one: see `rangeOfWork`. */
  readonly range: { readonly fromNs: bigint; readonly toNs: bigint };
  /** 0: chosen by the range. */
  readonly sliceNs: bigint;
  /** Slices that are enough, about; as many as there may be if not given. */
  readonly wanted?: number;
}

/** A range of time that is worked through in slices, several at once; a file says which are done, for the next run. */
export class SlicedWork {
  readonly #path: string;
  readonly #stored: StoredWork;

  constructor({ path, work, range, sliceNs, wanted = maxSlices }: SlicedWorkOptions) {
    this.#path = path;
    const known = readState(path);
    if (known !== undefined && known.work !== work)
      throw new Failure(
        "usage",
        `${path} is of another work: ${known.work}; delete it, or name another`,
      );
    const { fromNs, toNs } = wholeMs(range);
    const isOther = known?.fromNs !== `${fromNs}` || known.toNs !== `${toNs}`;
    if (known !== undefined && isOther)
      throw new Failure("usage", `${path} is of another range of time; delete it, or name another`);
    const whole = (toNs - fromNs) / BigInt(Math.min(maxSlices, Math.max(1, Math.ceil(wanted))));
    const chosen = sliceNs > 0n ? sliceNs : ((whole + minuteNs - 1n) / minuteNs) * minuteNs;
    this.#stored = known ?? {
      work,
      fromNs: `${fromNs}`,
      toNs: `${toNs}`,
      sliceNs: `${chosen || minuteNs}`,
      done: {},
    };
  }

  get fromNs(): bigint {
    return BigInt(this.#stored.fromNs);
  }

  get toNs(): bigint {
    return BigInt(this.#stored.toNs);
  }

  get slices(): readonly Slice[] {
    const step = BigInt(this.#stored.sliceNs);
    const slices: Slice[] = [];
    for (let at = this.fromNs; at < this.toNs; at += step) {
      const end = at + step < this.toNs ? at + step : this.toNs;
      slices.push({ index: slices.length, fromNs: at, toNs: end });
    }
    return slices;
  }

  isDone({ index }: Slice): boolean {
    return Object.hasOwn(this.#stored.done, index);
  }

  /** The sum of what was counted in all slices that are done. */
  get count(): number {
    return Object.values(this.#stored.done).reduce((sum, count) => sum + count, 0);
  }

  /** Does the slices that are not done, `parallel` at once; `run` resolves with the count of a slice. */
  async run(parallel: number, run: (slice: Slice) => Promise<number>): Promise<void> {
    const slots = new Semaphore(Math.max(1, parallel));
    const failure = new AbortController();
    const jobs = this.slices
      .filter((slice) => !this.isDone(slice))
      .map((slice) =>
        slots.run(async () => {
          try {
            this.#keep(slice, await run(slice));
          } catch (error) {
            // Those that have not begun need not begin.
            failure.abort(error);
            throw error;
          }
        }, failure.signal),
      );
    const ended = await Promise.allSettled(jobs);
    if (failure.signal.aborted) throw failure.signal.reason;
    const failed = ended.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** Forgets the work once it is complete. */
  forget(): void {
    rmSync(this.#path, { force: true });
  }

  #keep({ index }: Slice, count: number): void {
    this.#stored.done[index] = count;
    writeFileSync(`${this.#path}.new`, JSON.stringify(this.#stored));
    renameSync(`${this.#path}.new`, this.#path);
  }
}

/** The range up to whole milliseconds, the resolution of counts. */
export function wholeMs({ fromNs, toNs }: SlicedWorkOptions["range"]) {
  return {
    fromNs: fromNs - (fromNs % 1_000_000n),
    toNs: toNs + ((1_000_000n - (toNs % 1_000_000n)) % 1_000_000n),
  };
}

/** The range of the work in a state file, for a run without a range of its own; undefined where there is no such file. */
export function rangeOfWork(path: string): SlicedWorkOptions["range"] | undefined {
  const known = readState(path);
  return known && { fromNs: BigInt(known.fromNs), toNs: BigInt(known.toNs) };
}

function readState(path: string): StoredWork | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Failure("usage", `${path}: ${(error as Error).message}`);
  }
}
