import { expect, it } from "@jest/globals";
import type { OtlpReading } from "@skald/model";
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
