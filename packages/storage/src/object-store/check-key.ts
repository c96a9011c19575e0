import { internal, invalidArgument, type SkaldError } from "@skald/model";

/** S3's limit, in bytes of UTF-8. */
const maxKeyBytes = 1024;

/** Refuses what no store could keep: empty, too long, absolute, with `.`, `..` or empty parts, or control characters. */
export function checkKey(key: string): void {
  const parts = key.split("/");
  const good =
    key !== "" &&
    Buffer.byteLength(key) <= maxKeyBytes &&
    !parts.some((part) => part === "" || part === "." || part === "..") &&
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    !/[\x00-\x1f\x7f\\]/.test(key);
  if (!good) throw invalidArgument(`object key ${JSON.stringify(key)} is not valid`);
}

/** The error of a range that reaches beyond its object. */
export function rangeError(key: string, offset: number, length: number, size: number): SkaldError {
  return internal(`object ${key} has ${size} bytes, not ${length} from ${offset}`);
}
