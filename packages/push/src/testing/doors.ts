import { type DoorBody, type DoorFormat, decodeDoor } from "../decode-door.js";
import type { FieldMapping } from "../doors/mapping.js";
import { type OtlpRow, rowsOf } from "./otlp.js";

export const noMapping: FieldMapping = { labels: [], message: [], time: [], ignore: [], extra: [] };

/** The rows of a body in the order of their records, and the reasons of the others by record. */
export interface DoorRecords {
  readonly rows: readonly (OtlpRow & { readonly record: number })[];
  readonly refused: Readonly<Record<number, string>>;
  readonly records: number;
}

export function decodeRecords(
  format: DoorFormat,
  body: string | Uint8Array,
  mapping: Partial<FieldMapping> = {},
  rest: Partial<DoorBody> = {},
): DoorRecords {
  const input: DoorBody = {
    format,
    encoding: "identity",
    body: Buffer.from(body),
    mapping: { ...noMapping, ...mapping },
    ...rest,
  };
  const { push, recordOfRow, records, refused } = decodeDoor(input, 64 * 1024 * 1024);
  const rows = rowsOf(push).map((row, i) => ({ ...row, record: recordOfRow[i]! }));
  return {
    rows: rows.sort((a, b) => a.record - b.record),
    refused: Object.fromEntries(refused.map(({ record, reason }) => [record, reason])),
    records,
  };
}
