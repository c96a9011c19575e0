import { RE2JS, RE2JSException } from "re2js";
import { invalidArgument } from "./errors.js";

/** A compiled RE2 expression: linear time on any input. */
export interface Regex {
  test(text: string): boolean;
}

/**
 * Compiles RE2 syntax. Anchored means that the whole text must match, as in label matchers.
 * Throws invalid_argument with the text `error parsing regexp: ...`.
 */
export function compileRegex(pattern: string, options: { anchored: boolean }): Regex {
  try {
    const compiled = RE2JS.compile(options.anchored ? `^(?s:${pattern})$` : pattern);
    return { test: (text) => compiled.test(text) };
  } catch (error) {
    if (error instanceof RE2JSException) throw invalidArgument(error.message, { cause: error });
    throw error;
  }
}
