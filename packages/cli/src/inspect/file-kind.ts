import { isPatternFile } from "@skald/patterns/file";

export type FileKind = "segment" | "log" | "day index" | "patterns" | "delete request";

/** Bytes at the start of a file that tell its kind. */
export const headBytes = 64;

/** Of the first bytes of a file; undefined for what is none of Skald's. */
export function kindOfContent(head: Buffer): FileKind | undefined {
  const text = head.toString("latin1");
  if (text.startsWith("PAR1")) return "segment";
  if (text.startsWith("SKALDWAL")) return "log";
  if (text.startsWith("SKALDDAY")) return "day index";
  if (isPatternFile(head)) return "patterns";
  return /^\s*\{\s*"version"\s*:\s*\d+\s*,\s*"crc32"/.test(text) ? "delete request" : undefined;
}

/** Of its name: a damaged head must not hide a file. */
export function kindOfName(name: string): FileKind | undefined {
  if (name.endsWith(".parquet")) return "segment";
  if (/(^|\/)\d{8,15}\.wal$/.test(name)) return "log";
  if (name.endsWith(".day")) return "day index";
  if (name.endsWith("patterns/patterns.bin")) return "patterns";
  return /(^|\/)delete_requests\/.*\.json$/.test(name) ? "delete request" : undefined;
}
