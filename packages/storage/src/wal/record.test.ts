import { expect, it } from "@jest/globals";
import type { OtlpReading } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { decodeWalRecord, encodeWalRecord, type WalRecord, walRecordTypes } from "./record.js";

const otlp: OtlpReading = {
  mapping: {
    resource: [{ action: "index_label", attributes: ["service.name", "größe"], regex: "" }],
    scope: [{ action: "drop", attributes: [], regex: "x.*" }],
    log: [],
    severityTextAsLabel: true,
  },
  receivedMs: 1_795_168_800_123,
};

it.each([
  ["otlp_protobuf", "zstd"],
  ["otlp_json", "lz4"],
] as const)("a push in %s and %s keeps what it was read with", (format, encoding) => {
  const record: WalRecord = {
    kind: "push_body",
    tenant: "t",
    heads: [{ day: 20_778, id: "h" }],
    ordinals: Uint32Array.of(0),
    streams: Uint32Array.of(7),
    levels: Uint8Array.of(4),
    source: { format, encoding, otlp, body: Uint8Array.of(1, 2), dropped: Uint32Array.of(1) },
  };
  const payload = Buffer.concat(encodeWalRecord(record));
  const decoded = decodeWalRecord(walRecordTypes.push_body, payload);
  expect(decoded).toMatchObject({ source: { format, encoding, otlp } });
  expect(Buffer.concat(encodeWalRecord(decoded))).toEqual(payload);
});

it("a part of a push in columns has the names of its own rows only", () => {
  const row = (ns: bigint, metadata: Record<string, string>) => ({ ns, line: "x", metadata });
  const rows = [row(1n, { a: "1", b: "2" }), row(2n, { c: "3", b: "4" }), row(3n, { d: "5" })];
  const batch = makeBatch([{ labels: { app: "x" }, rows }]);
  const partOf = (rowFrom: number, rowTo: number) => {
    const ranges = [{ stream: 7, rowFrom, rowTo }];
    const heads = [{ day: 0, id: "h" }];
    const record = { kind: "push_columns", tenant: "t", heads, ranges, batch } as const;
    const payload = Buffer.concat(encodeWalRecord(record));
    const read = decodeWalRecord(walRecordTypes.push_columns, payload);
    return read.kind === "push_columns" ? [read.batch.metaNames, [...read.batch.metaName]] : [];
  };
  expect(partOf(0, 3)).toEqual([
    ["a", "b", "c", "d"],
    [0, 1, 2, 1, 3],
  ]);
  expect(partOf(1, 3)).toEqual([
    ["c", "b", "d"],
    [0, 1, 2],
  ]);
  expect(partOf(0, 1)).toEqual([
    ["a", "b"],
    [0, 1],
  ]);
});
