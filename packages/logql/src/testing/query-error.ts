import "../syntax/regex.js";
import { SkaldError } from "@skald/model";
import { parseQuery } from "../syntax/parser.js";

/** What a query is refused with. Throws when it is not. */
export function queryErrorOf(text: string): SkaldError {
  try {
    parseQuery(text);
  } catch (error) {
    if (error instanceof SkaldError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}
