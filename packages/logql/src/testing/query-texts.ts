import fc from "fast-check";
import { printQuery } from "../syntax/print.js";
import { arbitraryQuery } from "./arbitrary.js";

/** Texts of any queries that the parser can give: the same for the same seed. */
export function randomQueryTexts(seed: number, count: number): string[] {
  return fc.sample(arbitraryQuery(), { seed, numRuns: count }).map(printQuery);
}
