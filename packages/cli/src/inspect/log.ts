import { inspectWal, type WalFault, type WalRecord } from "@skald/storage";
import type { Document } from "./document.js";

interface Counts {
  records: number;
  bytes: number;
  rows: number;
}

/** The records of a file of the write-ahead log, and its damage. */
export function inspectLog(name: string, bytes: Buffer): Document {
  const kinds = new Map<string, Counts>();
  const tenants = new Map<string, Counts>();
  const faults: WalFault[] = [];
  const walk = inspectWal(name, bytes, {
    onRecord: (record, _offset, recordBytes) => {
      count(kinds, record === "void" ? record : record.kind, record, recordBytes);
      if (record !== "void") count(tenants, record.tenant, record, recordBytes);
    },
    onFault: (fault) => void faults.push(fault),
  });
  for (let step = walk.next(); !step.done; ) step = walk.next();
  const total = [...kinds.values()];
  return {
    kind: "write-ahead log",
    facts: {
      sizeBytes: bytes.length,
      records: total.reduce((sum, { records }) => sum + records, 0),
      rows: total.reduce((sum, { rows }) => sum + rows, 0),
      tenants: tenants.size,
      damaged: faults.filter(({ kind }) => kind !== "torn").length,
    },
    tables: {
      recordsByKind: Array.from(kinds, ([kind, counts]) => ({ kind, ...counts })),
      recordsByTenant: Array.from(tenants, ([tenant, counts]) => ({ tenant, ...counts })),
      damage: faults.map((fault) => ({ ...fault })),
    },
  };
}

function count(
  counts: Map<string, Counts>,
  key: string,
  record: WalRecord | "void",
  bytes: number,
): void {
  const before = counts.get(key) ?? { records: 0, bytes: 0, rows: 0 };
  counts.set(key, {
    records: before.records + 1,
    bytes: before.bytes + bytes,
    rows: before.rows + rowsOf(record),
  });
}

function rowsOf(record: WalRecord | "void"): number {
  if (record === "void" || record.kind === "streams") return 0;
  if (record.kind === "push_body") return record.levels.length;
  return record.ranges.reduce((sum, { rowFrom, rowTo }) => sum + rowTo - rowFrom, 0);
}
