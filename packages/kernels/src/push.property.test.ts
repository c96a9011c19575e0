import { describe, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import snappy from "snappy";
import { forms } from "./testing/forms.js";
import { fuzzPushes } from "./testing/fuzz.js";
import { jsonOracle, someLabels } from "./testing/json-oracle.js";
import { latin1, pushRequestType, toPlain, wideLimits } from "./testing/push-oracle.js";

const text = fc.string({ unit: "binary", maxLength: 40 });
const pairs = fc.array(fc.tuple(text, text), { maxLength: 3 });

/** Bytes with many repeats at all distances, as snappy likes them. */
const repetitive = fc
  .array(
    fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 24 }), fc.integer({ min: 1, max: 40 })),
    {
      maxLength: 30,
    },
  )
  .map((runs) => Buffer.concat(runs.flatMap(([run, times]) => Array<Uint8Array>(times).fill(run))));

describe.each(forms)("push properties, %s", (_name, kernels) => {
  it("decodes what snappy compresses", () => {
    fc.assert(
      fc.property(fc.oneof(repetitive, fc.uint8Array({ maxLength: 5000 })), (bytes) => {
        const decoded = kernels.decodeSnappy(snappy.compressSync(Buffer.from(bytes)), 1 << 20);
        expect(Buffer.compare(decoded, bytes)).toBe(0);
        expect(decoded.buffer.byteLength).toBeGreaterThanOrEqual(bytes.length + 64);
      }),
    );
  });

  it("decodes what protobuf encodes", () => {
    const entry = fc.record({
      seconds: fc.integer({ min: -9_200_000_000, max: 9_200_000_000 }),
      nanos: fc.integer({ min: 0, max: 999_999_999 }),
      line: fc.uint8Array({ maxLength: 60 }),
      pairs,
    });
    const streams = fc.array(fc.record({ labels: text, rows: fc.array(entry, { maxLength: 5 }) }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(streams, (wanted) => {
        const message = pushRequestType.encode({
          streams: wanted.map(({ labels, rows }) => ({
            labels,
            entries: rows.map(({ seconds, nanos, line, pairs }) => ({
              timestamp: { seconds, nanos },
              line,
              structuredMetadata: pairs.map(([name, value]) => ({ name, value })),
            })),
          })),
        });
        const block = snappy.compressSync(Buffer.from(message.finish()));
        const got = toPlain(kernels.decodeSnappyProtobufPush(block, wideLimits));
        expect(got).toEqual(
          wanted.map(({ labels, rows }) => ({
            labels: latin1(labels),
            rows: rows.map(({ seconds, nanos, line, pairs }) => ({
              seconds: seconds + 0,
              nanos,
              line: Buffer.from(line).toString("latin1"),
              pairs: pairs.map(([name, value]) => [latin1(name), latin1(value)]),
            })),
          })),
        );
      }),
    );
  });

  it("scans JSON as JSON.parse does", () => {
    const time = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
    const metadata = fc.dictionary(text, text, { maxKeys: 3 });
    const entry = fc.oneof(fc.tuple(time, text), fc.tuple(time, text, metadata));
    const stream = fc.record({
      other: fc.jsonValue(),
      values: fc.array(entry, { maxLength: 5 }),
      stream: fc.dictionary(text, text, { maxKeys: 3 }),
    });
    const body = fc.record({ more: fc.jsonValue(), streams: fc.array(stream, { maxLength: 4 }) });
    fc.assert(
      fc.property(body, fc.constantFrom("", " "), fc.boolean(), (value, indent, escaped) => {
        const json = JSON.stringify(value, null, indent).replaceAll("\n", " ");
        const bytes = Buffer.from(escaped ? escapeUnicode(json) : json);
        const want = jsonOracle(bytes);
        const got = toPlain(kernels.scanJsonPush(bytes, wideLimits));
        expect(got.map((stream) => ({ ...stream, labels: someLabels }))).toEqual(want);
        const labels = value.streams.map(({ stream }) => JSON.parse(JSON.stringify(stream)));
        expect(
          got.map((stream) => JSON.parse(Buffer.from(stream.labels, "latin1").toString())),
        ).toEqual(labels);
      }),
    );
  });
});

describe("hostile pushes", () => {
  it("are judged alike by both forms and by JSON.parse", () => {
    const runs = testRuns(4000);
    const { accepted, refused } = fuzzPushes(runs, seededRandom(testSeed())(2 ** 32));
    expect(accepted).toBeGreaterThan(runs / 20);
    expect(refused).toBeGreaterThan(runs / 4);
  });
});

/** JSON in which every character beyond ASCII is an escape. */
function escapeUnicode(json: string): string {
  return json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
