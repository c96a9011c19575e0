import { invalidArgument } from "@skald/model";
import {
  type DoorPush,
  DoorRows,
  type DoorRowsOptions,
  type PieceOfBody,
  wholeBody,
} from "./door-rows.js";
import { ObjectReader } from "./object-reader.js";

/** A longer record of a body in pieces is refused unread, so that no piece has to be larger. */
export const maxRecordBytes = 4 * 1024 * 1024;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Decodes lines of one JSON object each. */
export function decodeJsonLines(options: DoorRowsOptions, piece = wholeBody): DoorPush {
  const rows = new DoorRows(options);
  const reader = new ObjectReader(rows);
  const { scanner } = reader;
  const readObject = () => reader.endWith();
  return decodeLines(rows, piece, (start, end) => {
    scanner.at = start;
    scanner.limit = end;
    rows.record(readObject);
  });
}

/** Decodes lines of text, each of which is a line of the log as it is. */
export function decodeTextLines(options: DoorRowsOptions, piece = wholeBody): DoorPush {
  const rows = new DoorRows(options);
  return decodeLines(rows, piece, (start, end) => {
    rows.begin();
    rows.beginWhole();
    rows.end({ start, length: end - start });
  });
}

/** Calls `read` for the range of each line that has something but blanks. */
function decodeLines(
  rows: DoorRows,
  { isLast, within }: PieceOfBody,
  read: (start: number, end: number) => void,
): DoorPush {
  const { body } = rows;
  let from = 0;
  let isSkipping = within !== "";
  for (let end = body.indexOf(lineFeed); end >= 0; end = body.indexOf(lineFeed, from)) {
    if (!isSkipping) readLine(body, from, end, read);
    isSkipping = false;
    from = end + 1;
  }
  if (isLast) {
    if (!isSkipping) readLine(body, from, body.length, read);
    return rows.finish();
  }
  if (body.length - from >= maxRecordBytes && !isSkipping) {
    rows.begin();
    rows.refuse(recordTooLong());
    isSkipping = true;
  }
  return rows.finish({
    read: isSkipping ? body.length : from,
    skip: 0,
    within: isSkipping ? "line" : "",
  });
}

function readLine(
  body: Uint8Array,
  from: number,
  to: number,
  read: (start: number, end: number) => void,
): void {
  let start = from;
  let end = to;
  while (start < end && isBlank(body[start]!)) start++;
  while (end > start && isBlank(body[end - 1]!)) end--;
  if (end > start) read(start, end);
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === carriageReturn;
}

export function recordTooLong(): Error {
  return invalidArgument(`the record is longer than ${maxRecordBytes} bytes`);
}
