import { readFileSync } from "node:fs";
import { errorCodeOf } from "@skald/model";
import { openFileRange } from "@skald/storage";
import type { Document } from "./document.js";
import { type FileKind, headBytes, kindOfContent, kindOfName } from "./file-kind.js";
import { inspectLog } from "./log.js";
import { inspectSegment, type SegmentOptions } from "./segment.js";
import { inspectDay, inspectPatterns, inspectRequest } from "./small-files.js";

/** Tells what is in a file. Throws, naming it, what is damaged, and what is none of Skald's; `newer_version` for what a later program wrote. */
export function inspectFile(path: string, options: SegmentOptions): Document {
  const reader = openFileRange(path);
  try {
    const head = Buffer.from(reader.read(0, Math.min(headBytes, reader.sizeBytes)));
    const kind = kindOfContent(head) ?? kindOfName(path);
    if (kind === undefined) throw new Error(`${path} is no file of Skald`);
    return kind === "segment" ? inspectSegment(reader, options) : inspectWhole(path, kind);
  } finally {
    reader.close();
  }
}

function inspectWhole(path: string, kind: Exclude<FileKind, "segment">): Document {
  const bytes = readFileSync(path);
  switch (kind) {
    case "log":
      return inspectLog(path, bytes);
    case "day index":
      return inspectDay(path, bytes);
    case "patterns":
      return naming(path, () => inspectPatterns(path, bytes));
    case "delete request":
      return naming(path, () => inspectRequest(path, bytes));
  }
}

function naming<T>(path: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    throw new Error(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
