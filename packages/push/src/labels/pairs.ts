import { invalidArgument, type SkaldError } from "@skald/model";

/** Name and value of each label as written: in order, repeated names and empty values included. */
export type LabelPairs = readonly (readonly [name: string, value: string])[];

/** Labels of one stream beyond this are refused unread, whatever the tenant's limit says. */
export const maxLabelPairs = 4096;

/** The error of a label text at a position in UTF-16 units; its column counts bytes. */
export function labelTextError(text: string, at: number, message: string): SkaldError {
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = Buffer.byteLength(before.slice(before.lastIndexOf("\n") + 1)) + 1;
  return invalidArgument(`couldn't parse labels: ${line}:${column}: parse error: ${message}`);
}
