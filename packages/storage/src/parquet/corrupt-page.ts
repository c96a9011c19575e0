import { internal, type SkaldError } from "@skald/model";

/** The error of a page whose bytes are not what its encoding allows. */
export function corruptPage(what: string): SkaldError {
  return internal(`corrupt page: ${what}`);
}
