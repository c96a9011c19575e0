import type { TailStretch } from "./tail-task.js";

/** Rows of a tenant that were published lately, where they lie: what a thread needs to read them. */
export interface FreshRows {
  readonly tenant: string;
  readonly blocks: readonly TailStretch[];
  /** Streams of the rows, as the runs of the blocks number them, ascending. */
  readonly streams: Uint32Array;
  readonly texts: readonly string[];
  readonly rowCount: number;
}
