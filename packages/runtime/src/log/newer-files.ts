import { errorCodeOf } from "@skald/model";
import type { Logger } from "./log.js";

/** More files than these are not told of. */
const maxTold = 10_000;

/** Logs each file that a newer version of the program wrote, once. */
export class NewerFiles {
  readonly #log: Pick<Logger, "error">;
  readonly #told = new Set<string>();

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  /** False for an error that is not about such a file: the caller logs that. */
  tell(error: unknown): boolean {
    if (errorCodeOf(error) !== "newer_version") return false;
    const { message } = error as Error;
    if (this.#told.has(message) || this.#told.size >= maxTold) return true;
    this.#told.add(message);
    this.#log.error("a newer version of the program wrote a file", { error });
    return true;
  }
}
