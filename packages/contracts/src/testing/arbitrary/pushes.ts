import {
  type BatchSource,
  formatLabels,
  labelsFromObject,
  type OtlpAttributeRule,
  type OtlpReading,
} from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { makeBatch, makePushBody, type TestStream } from "@skald/testkit";
import fc from "fast-check";
import type { PushOutcome, PushRequest } from "../../index.js";
import { ascending, count, number, record, text } from "./common.js";

export const arbitraryPushOutcome: fc.Arbitrary<PushOutcome> = record<PushOutcome>({
  refusals: fc.array(
    record<PushOutcome["refusals"][number]>({
      status: fc.constantFrom(400, 429),
      reason: text,
      message: text,
      entries: count,
      bytes: fc.maxSafeNat(),
    }),
    { maxLength: 3 },
  ),
});

const testStream: fc.Arbitrary<TestStream> = fc.record({
  labels: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { maxKeys: 3 }),
  rows: fc.array(
    fc.record({
      ns: fc.bigInt({ min: 0n, max: 2n ** 62n }),
      line: text,
      metadata: fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text, { maxKeys: 2 }),
      level: fc.constantFrom(0, 3, 255),
    }),
    { maxLength: 6 },
  ),
});

const sourceFields = {
  format: fc.constantFrom<BatchSource["format"][]>(
    "protobuf",
    "json",
    "legacy_json",
    "otlp_protobuf",
    "otlp_json",
  ),
  encoding: fc.constantFrom<BatchSource["encoding"][]>(
    "identity",
    "gzip",
    "deflate",
    "zstd",
    "lz4",
  ),
  dropped: ascending,
};

const otlpRules = fc.array(
  record<OtlpAttributeRule>({
    action: fc.constantFrom("index_label", "structured_metadata", "drop"),
    attributes: fc.array(text, { maxLength: 3 }),
    regex: text,
  }),
  { maxLength: 3 },
);

const otlpReading = record<OtlpReading, "receivedMs">(
  {
    mapping: record<OtlpReading["mapping"]>({
      resource: otlpRules,
      scope: otlpRules,
      log: otlpRules,
      severityTextAsLabel: fc.boolean(),
    }),
  },
  { receivedMs: number },
);

export const arbitraryPush: fc.Arbitrary<PushRequest> = fc
  .tuple(
    text,
    fc.array(testStream, { maxLength: 4 }),
    fc.option(record<Omit<BatchSource, "body">, "otlp">(sourceFields, { otlp: otlpReading })),
    fc.nat(300),
  )
  .map(([tenant, streams, source, unused]) => {
    const batch = makeBatch(streams);
    // Bytes that no row refers to, as the rest of a body is.
    const bytes = new Uint8Array(batch.bytes.length + unused);
    bytes.set(batch.bytes);
    const body = new TextEncoder().encode(`body of ${tenant}`);
    return {
      tenant,
      batch: {
        ...batch,
        bytes,
        ...(source === null ? {} : { source: { ...undecoded(source), body } }),
      },
    };
  });

/** As what is sent in columns: the body is none that could be decoded. */
function undecoded(source: Omit<BatchSource, "body">): Omit<BatchSource, "body"> {
  return source.format === "protobuf" ? { ...source, encoding: "gzip" } : source;
}

/** A push with a body that gives its rows. */
export const arbitraryBodyPush: fc.Arbitrary<PushRequest> = fc
  .tuple(text, fc.array(testStream, { maxLength: 4 }), fc.infiniteStream(fc.boolean()))
  .map(([tenant, streams, drops]) => {
    const levels = [0, 3, 255];
    const labels = streams.map((stream) => labelsFromObject(stream.labels));
    const body = Uint8Array.from(
      makePushBody(
        streams.map(({ rows }, i) => ({
          labels: formatLabels(labels[i]!),
          rows: rows.map(({ metadata = {}, ...row }) => ({
            ...row,
            metadata: Object.entries(metadata),
          })),
        })),
      ),
    );
    const origin = { format: "protobuf", encoding: "identity", body } as const;
    const raw = decodeBody(origin);
    const isDropped = Array.from({ length: raw.rowCount }, () => drops.next().value as boolean);
    const left = (from: number, to: number) => isDropped.slice(from, to).includes(false);
    const batch = assembleBatch(raw, {
      streams: labels.flatMap((own, ordinal) =>
        left(raw.streamRowStart[ordinal]!, raw.streamRowStart[ordinal + 1]!)
          ? [{ ordinal, labels: own, text: formatLabels(own) }]
          : [],
      ),
      dropped: Uint32Array.from([...isDropped.keys()].filter((row) => isDropped[row])),
      levels: Uint8Array.from(
        isDropped.filter((one) => !one),
        (_, row) => levels[row % levels.length]!,
      ),
      source: origin,
    });
    return { tenant, batch };
  });
