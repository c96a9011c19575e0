import { invalidArgument, type PushFormat, tooLarge } from "@skald/model";
import { parseLabelObject } from "./json.js";
import type { LabelPairs } from "./pairs.js";
import { parseLabelText } from "./text.js";

/** Label text of one stream beyond this is refused with 413. */
export const maxLabelTextBytes = 16 * 1024 * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses the labels of a stream from the bytes of its push: label text `{a="b"}` of the protobuf and legacy forms,
 * the `stream` object of the JSON form. Throws invalid_argument `couldn't parse labels: ...`, or too_large.
 */
export function parsePushLabels(
  format: PushFormat,
  bytes: Uint8Array,
  start: number,
  length: number,
): LabelPairs {
  if (length > maxLabelTextBytes) {
    throw tooLarge(
      `request body too large: labels of a stream are ${length} bytes, limit ${maxLabelTextBytes} bytes`,
    );
  }
  const text = decode(bytes.subarray(start, start + length));
  return format === "json" ? parseLabelObject(text) : parseLabelText(text);
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw invalidArgument("couldn't parse labels: 1:1: parse error: invalid UTF-8 rune", { cause });
  }
}
