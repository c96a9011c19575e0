import { expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { mutate, seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { decodeBody, type PushBody } from "../decode.js";
import {
  decodeRows,
  type JsonRequest,
  type JsonValue,
  otlpBody,
  plainMapping,
  rowsOf,
  untimedNs,
} from "../testing/otlp.js";

const names = fc.constantFrom("a", "a.b", "service.name", "9x", "größe", "__r__", "team");
const texts = fc.string({ unit: "grapheme", maxLength: 12 });
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);

const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.record({ stringValue: texts }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ intValue: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) }),
    fc.record({ doubleValue: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
    fc.record({ bytesValue: fc.base64String({ maxLength: 12 }) }),
    fc.constant({}),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie("value"), { maxLength: 3 }) }) }),
    fc.record({
      kvlistValue: fc.record({
        values: fc.array(fc.record({ key: names, value: tie("value") }), { maxLength: 3 }),
      }),
    }),
  ),
}));

const attributes = fc.array(fc.record({ key: names, value }), { maxLength: 4 });
const record = fc.record(
  {
    timeUnixNano: u64,
    observedTimeUnixNano: u64,
    severityNumber: fc.integer({ min: -2, max: 30 }),
    severityText: texts,
    body: value,
    attributes,
    droppedAttributesCount: fc.nat(),
    flags: fc.nat(),
    traceId: fc.constantFrom("", "5b8efff798038103d269b633813fc60c"),
    spanId: fc.constantFrom("", "eee19b7ec3c1b174"),
    eventName: texts,
  },
  { requiredKeys: [] },
);
const scope = fc.record(
  { name: texts, version: texts, attributes, droppedAttributesCount: fc.nat() },
  { requiredKeys: [] },
);
const scopeLogs = fc.record(
  { scope, logRecords: fc.array(record, { maxLength: 4 }) },
  { requiredKeys: ["logRecords"] },
);
const request: fc.Arbitrary<JsonRequest> = fc.record({
  resourceLogs: fc.array(
    fc.record(
      { resource: fc.record({ attributes }), scopeLogs: fc.array(scopeLogs, { maxLength: 2 }) },
      { requiredKeys: ["scopeLogs"] },
    ),
    { maxLength: 3 },
  ),
}) as fc.Arbitrary<JsonRequest>;
const mapping = fc.constantFrom(plainMapping, {
  ...plainMapping,
  scope: [{ action: "drop", attributes: ["a"], regex: "" } as const],
  log: [{ action: "index_label", attributes: [], regex: "t.*|a" } as const],
  severityTextAsLabel: true,
});

it("JSON and protobuf of a request give the same rows", () => {
  fc.assert(
    fc.property(request, mapping, (body, rules) => {
      const rows = decodeRows(otlpBody("otlp_json", body, rules));
      expect(rows).toEqual(decodeRows(otlpBody("otlp_protobuf", body, rules)));
      const count = body.resourceLogs
        .flatMap((resource) => resource.scopeLogs)
        .reduce((sum, { logRecords }) => sum + logRecords.length, 0);
      expect(rows).toHaveLength(count);
    }),
    { numRuns: testRuns(300) },
  );
});

it("a damaged body is refused, or gives rows within its bytes", () => {
  const random = seededRandom(testSeed());
  fc.assert(
    fc.property(
      request,
      mapping,
      fc.constantFrom("otlp_json" as const, "otlp_protobuf" as const),
      (body, rules, format) => {
        const whole = otlpBody(format, body, rules);
        for (let i = 0; i < 10; i++) tryDecoding({ ...whole, body: mutate(whole.body, random) });
      },
    ),
    { numRuns: testRuns(300) },
  );
});

function tryDecoding(body: PushBody): void {
  try {
    const push = decodeBody(body);
    const end = push.bytes.length;
    for (const { ns } of rowsOf(push)) expect(ns).toBeGreaterThanOrEqual(untimedNs);
    for (let row = 0; row < push.rowCount; row++) {
      expect(push.lineStart[row]! + push.lineLength[row]!).toBeLessThanOrEqual(end);
    }
    for (let pair = 0; pair < push.pairCount; pair++) {
      expect(push.metaValueStart[pair]! + push.metaValueLength[pair]!).toBeLessThanOrEqual(end);
    }
  } catch (error) {
    if (!(error instanceof SkaldError) || error.status >= 500) throw error;
  }
}
