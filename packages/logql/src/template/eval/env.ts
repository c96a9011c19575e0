import { TemplateRunError } from "../value/error.js";
import type { TemplateRow } from "../value/function.js";
import type { GoMap, Value } from "../value/value.js";

/** State of one execution. */
export interface Env {
  dot: Value;
  readonly vars: Value[];
  readonly row: TemplateRow;
  out: string;
  /** Rounds of `range` and calls of templates so far. */
  rounds: number;
  /** Templates that have called each other. */
  depth: number;
}

export function newEnv(root: GoMap, row: TemplateRow): Env {
  return { dot: root, vars: [root], row, out: "", rounds: 0, depth: 0 };
}

/** What a pipe is compiled to. */
export type Eval = (env: Env) => Value;

/** Rounds of one execution, and items of one `range`. */
export const roundsMax = 100_000;

/** Templates that call each other twice would run for ever, though each call is shallow. */
export function countRound(env: Env): void {
  if (++env.rounds > roundsMax) throw new TemplateRunError("too many rounds of range");
  env.row.budget?.work(1);
}
