import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { parseQuery, planQuery } from "@skald/logql";
import { SkaldError } from "@skald/model";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { decodeMessage, encodeMessage, type MessageCodec } from "@skald/transport/protobuf";
import fc from "fast-check";
import protobuf from "protobufjs";
import type { PushRequest } from "../index.js";
import * as answers from "../testing/arbitrary/answers.js";
import * as changes from "../testing/arbitrary/changes.js";
import * as common from "../testing/arbitrary/common.js";
import * as patterns from "../testing/arbitrary/patterns.js";
import * as pushes from "../testing/arbitrary/pushes.js";
import * as rules from "../testing/arbitrary/rules.js";
import * as tasks from "../testing/arbitrary/tasks.js";
import { textOf } from "../testing/echo.js";
import { rowsOf } from "../testing/rows-of.js";
import { decodeOutcome, encodeOutcome } from "./columns/outcome.js";
import { decodeStreams, decodeTexts, encodeStreams, encodeTexts } from "./columns/streams.js";
import { decodeVolumes, encodeVolumes } from "./columns/volumes.js";
import * as ingester from "./ingester-messages.js";
import * as pattern from "./pattern-messages.js";
import { plan as planCodec } from "./plan/plan.js";
import { decodePush, encodePush, encodePushInParts, ingesterOutcome, pushOutcome } from "./push.js";
import { decodePushBody, encodePushBody } from "./push-body.js";
import * as query from "./query-messages.js";
import { ruleGroupsAnswer } from "./rule-messages.js";
import * as digests from "./scan/digests.js";
import * as masks from "./scan/row-masks.js";
import * as scan from "./scan/tasks.js";
import * as tail from "./tail-messages.js";

const seed = testSeed();
const text = fc.string({ unit: "grapheme", maxLength: 12 });

interface Sample {
  readonly arbitrary: fc.Arbitrary<unknown>;
  encode(value: unknown): Uint8Array;
  decode(bytes: Uint8Array): unknown;
}

function of<T>(values: fc.Arbitrary<T>, codec: MessageCodec<T>): Sample {
  return {
    arbitrary: values,
    encode: (value) => encodeMessage(codec, value as T),
    decode: (bytes) => decodeMessage(codec, bytes),
  };
}

function shared<T>(task: fc.Arbitrary<T>) {
  return fc
    .tuple(task, common.arbitraryShare, common.arbitraryBackground)
    .map(([one, share, more]) => ({
      task: one,
      share,
      ...more,
    }));
}

const samples: Readonly<Record<string, Sample>> = {
  "push outcome": of(pushes.arbitraryPushOutcome, pushOutcome),
  "ingester outcome": of(
    fc
      .tuple(pushes.arbitraryPushOutcome, fc.boolean())
      .map(([outcome, takesBodies]) => ({ ...outcome, takesBodies })),
    ingesterOutcome,
  ),
  "select request": of(tasks.arbitrarySelect, ingester.selectRequest),
  "held changes request": of(changes.arbitraryHeldChangesRequest, ingester.heldChangesRequest),
  "held changes": of(changes.arbitraryHeldChanges, ingester.heldChanges),
  "changes request": of(changes.arbitraryChangesRequest, query.changesRequest),
  "changes answer": of(changes.arbitraryChangesAnswer, query.changesAnswer),
  selection: of(tasks.arbitrarySelection, ingester.selection),
  "scan call": of(shared(tasks.arbitraryScanTask(seed)), scan.scanCall),
  "volume call": of(shared(tasks.arbitraryVolumeTask), scan.volumesCall),
  "match call": of(shared(tasks.arbitraryMatchTask(seed)), scan.matchesCall),
  "matched rows": of(tasks.arbitraryMatched, masks.matchedRows),
  "digest call": of(shared(tasks.arbitraryDigestTask), scan.digestsCall),
  "row hash call": of(shared(tasks.arbitraryRowHashTask), scan.rowHashesCall),
  "minute digests": of(tasks.arbitraryDigests, digests.minuteDigests),
  "placed hashes": of(tasks.arbitraryHashes, digests.placedHashes),
  "deletes request": of(tasks.arbitraryDeletesRequest, masks.deletesRequest),
  "deletes answer": of(
    fc.array(tasks.arbitraryFilter(seed), { maxLength: 3 }).map((filters) => ({ filters })),
    masks.deletesAnswer,
  ),
  "label call": of(shared(tasks.arbitraryLabelTask), scan.labelsCall),
  "duplicate call": of(shared(tasks.arbitraryDuplicateTask), scan.duplicatesCall),
  "row mask": of(tasks.arbitraryMask, masks.rowMask),
  "flush request": of(fc.constantFrom({}, { tenant: "a" }), ingester.flushRequest),
  "release request": of(fc.record({ view: text, more: fc.array(text) }), ingester.releaseRequest),
  released: of(fc.record({ takesMany: fc.boolean() }), ingester.released),
  "measure answer": of(
    fc.double().map((bytes) => ({ bytes })),
    ingester.measureAnswer,
  ),
  "query request": of(answers.arbitraryQueryRequest(seed), query.queryRequest),
  "query answer": of(answers.arbitraryQueryAnswer, query.queryAnswer),
  "volume request": of(tasks.arbitraryVolumeRequest, query.volumeRequest),
  "volume answer": of(answers.arbitraryVolumeAnswer, query.volumeAnswer),
  "catalog request": of(
    fc.oneof(
      tasks.arbitraryCatalogRequest,
      fc
        .tuple(tasks.arbitraryCountRequest(seed), common.arbitraryShare)
        .map(([request, share]) => ({ ...request, share })),
    ),
    query.catalogRequest,
  ),
  "streams request": of(answers.arbitraryStreamsRequest, query.streamsRequest),
  "streams answer": of(
    fc
      .array(
        fc.record({
          tenant: text,
          streams: fc.array(answers.arbitraryColumns, { maxLength: 2 }),
        }),
      )
      .map((tenants) => ({ tenants })),
    query.streamsAnswer,
  ),
  "labels answer": of(
    fc
      .array(fc.record({ tenant: text, texts: fc.array(text) }), { maxLength: 3 })
      .map((tenants) => ({ tenants })),
    query.labelsAnswer,
  ),
  "catalog answer": of(
    fc.array(common.arbitrarySource).map((refs) => ({
      segments: refs.filter((ref) => ref.kind === "segment"),
      counted: refs.map(({ sizeBytes }) => Uint8Array.of(sizeBytes, 7)),
      countedSegments: refs.length,
      known: refs.map(({ id }) => id),
    })),
    query.catalogAnswer,
  ),
  "tail request": of(answers.arbitraryTailRequest(seed), tail.tailRequest),
  "tail rows": of(answers.arbitraryTailRows, tail.tailRows),
  "patterns request": of(patterns.arbitraryPatternsRequest, pattern.patternsRequest),
  "found patterns": of(patterns.arbitraryFoundPatterns, pattern.foundPatterns),
  "sampled lines": of(patterns.arbitrarySampledLines, pattern.sampledLines),
  "rule groups": of(
    fc.array(rules.arbitraryRuleGroup, { maxLength: 2 }).map((groups) => ({ groups })),
    ruleGroupsAnswer,
  ),
  outcome: {
    arbitrary: answers.arbitraryOutcome,
    encode: (value) => encodeOutcome(value as Parameters<typeof encodeOutcome>[0]),
    decode: (bytes) => decodeOutcome(bytes as Uint8Array<ArrayBuffer>),
  },
  volumes: {
    arbitrary: answers.arbitraryVolumes,
    encode: (value) => encodeVolumes(value as Parameters<typeof encodeVolumes>[0]),
    decode: (bytes) => decodeVolumes(bytes as Uint8Array<ArrayBuffer>),
  },
  streams: {
    arbitrary: answers.arbitraryColumns,
    encode: (value) => encodeStreams(value as Parameters<typeof encodeStreams>[0]),
    decode: (bytes) => decodeStreams(bytes as Uint8Array<ArrayBuffer>),
  },
  texts: {
    arbitrary: fc.array(text),
    encode: (value) => encodeTexts(value as string[]),
    decode: (bytes) => decodeTexts(bytes as Uint8Array<ArrayBuffer>),
  },
  "push body": {
    arbitrary: pushes.arbitraryBodyPush,
    encode: (value) => Buffer.concat(encodePushBody(value as PushRequest) as Uint8Array[]),
    decode: (bytes) => decodePushBody(bytes),
  },
  push: {
    arbitrary: pushes.arbitraryPush,
    encode: (value) => Buffer.concat(encodePush(value as PushRequest)),
    decode: (bytes) => decodePush(bytes),
  },
};

const names = Object.keys(samples);

/** What `proto/messages.proto` calls each. */
const protoNames: Readonly<Record<string, string>> = {
  "push outcome": "PushOutcome",
  "ingester outcome": "IngesterOutcome",
  "push body": "PushBodyRequest",
  "select request": "SelectRequest",
  "held changes request": "HeldChangesRequest",
  "held changes": "HeldChanges",
  "changes request": "ChangesRequest",
  "changes answer": "ChangesAnswer",
  selection: "Selection",
  "scan call": "ScanCall",
  "volume call": "VolumesCall",
  "match call": "MatchesCall",
  "matched rows": "MatchedRows",
  "digest call": "DigestsCall",
  "row hash call": "RowHashesCall",
  "minute digests": "MinuteDigests",
  "placed hashes": "PlacedHashes",
  "deletes request": "DeletesRequest",
  "deletes answer": "DeletesAnswer",
  "label call": "LabelsCall",
  "duplicate call": "DuplicatesCall",
  "row mask": "RowMask",
  "flush request": "FlushRequest",
  "release request": "ReleaseRequest",
  released: "Released",
  "measure answer": "MeasureAnswer",
  "query request": "QueryRequest",
  "query answer": "QueryAnswer",
  "volume request": "VolumeRequest",
  "volume answer": "VolumeAnswer",
  "catalog request": "CatalogRequest",
  "streams request": "StreamsRequest",
  "streams answer": "StreamsAnswer",
  "labels answer": "LabelsAnswer",
  "catalog answer": "CatalogAnswer",
  "tail request": "TailRequest",
  "tail rows": "TailRows",
  "patterns request": "PatternsRequest",
  "found patterns": "FoundPatterns",
  "sampled lines": "SampledLines",
  "rule groups": "RuleGroupsAnswer",
  outcome: "Outcome",
  volumes: "VolumeOutcome",
  streams: "StreamColumns",
  texts: "TextList",
  push: "PushRequest",
};

describe("a message comes back as it was sent", () => {
  it.each(names.filter((name) => name !== "push"))("%s", (name) => {
    const { arbitrary: values, encode, decode } = samples[name]!;
    const property = fc.property(values, (value) => {
      const found = decode(encode(value));
      // What differs in nothing needs no account of it, which costs more than all the rest.
      if (!isDeepStrictEqual(found, value)) expect(found).toEqual(value);
    });
    fc.assert(property, { seed, numRuns: testRuns(200) });
  });

  it.each(names.filter((name) => name !== "push"))(
    "%s, from a newer version that says more",
    (name) => {
      const { arbitrary: values, encode, decode } = samples[name]!;
      // Fields 1000 to 1002: a number, a text, and 8 bytes.
      const more = Buffer.from("c03e07ca3e026869d13e0102030405060708", "hex");
      const property = fc.property(values, (value) =>
        expect(decode(Buffer.concat([encode(value), more]))).toEqual(value),
      );
      fc.assert(property, { seed, numRuns: testRuns(20) });
    },
  );

  it("push", () => {
    const property = fc.property(pushes.arbitraryPush, (push) => {
      const found = decodePush(Buffer.concat(encodePush(push)));
      expect(found.tenant).toBe(push.tenant);
      expect(rowsOf(found.batch)).toEqual(rowsOf(push.batch));
      expect(found.batch.source).toEqual(push.batch.source);
      expect(found.batch.lineBytes).toBe(push.batch.lineBytes);
    });
    fc.assert(property, { seed, numRuns: testRuns(300) });
  });

  it("a push in parts", () => {
    const property = fc.property(
      pushes.arbitraryPush,
      fc.integer({ min: 1, max: 300 }),
      (push, max) => {
        const parts = [...encodePushInParts(push, max)].map((part) =>
          decodePush(Buffer.concat(part)),
        );
        expect(parts.flatMap(({ batch }) => rowsOf(batch))).toEqual(rowsOf(push.batch));
        expect(parts.every(({ tenant }) => tenant === push.tenant)).toBe(true);
        for (const { batch } of parts) {
          const size = batch.rowCount * 32 + batch.lineBytes;
          if (batch.rowCount > 1) expect(size).toBeLessThanOrEqual(max);
        }
      },
    );
    fc.assert(property, { seed, numRuns: testRuns(300) });
  });

  it("a plan that is as deep as the parser lets it be", () => {
    const params = { startNs: 0n, endNs: 9n, stepNs: 1n, limit: 1, intervalNs: 0n };
    const sum = Array.from({ length: 400 }, () => 'rate({a="b"}[1m])').join(" + ");
    const filters = Array.from({ length: 1000 }, (_, i) => `c > ${i}`).join(" or ");
    for (const text of [sum, `{a="b"} | ${filters}`]) {
      const plan = planQuery(parseQuery(text), { ...params, direction: "forward" });
      expect(decodeMessage(planCodec, encodeMessage(planCodec, plan))).toEqual(plan);
    }
  });
});

describe("others read messages by proto/messages.proto", () => {
  const file = new URL("../../../../proto/messages.proto", import.meta.url);
  const { root } = protobuf.parse(readFileSync(file, "utf8"));
  it.each(names)("%s", (name) => {
    const { arbitrary: values, encode, decode } = samples[name]!;
    const type = root.lookupType(`skald.v1.${protoNames[name]}`);
    const property = fc.property(values, (value) => {
      const ours = encode(value);
      // A field that it does not know, or takes for something else, would not come back.
      const theirs = type.encode(type.decode(ours)).finish();
      const [found, sent] = [textOf(decode(theirs)), textOf(decode(ours))];
      if (found !== sent) expect(found).toBe(sent);
    });
    fc.assert(property, { seed, numRuns: testRuns(60) });
  });
});

/** Throws what is not a refusal; `expect` would cost more than the hundred thousand messages. */
function checkRefusal(error: unknown): void {
  if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
}

describe("a message that is damaged is read or refused, never more", () => {
  it.each(names)("%s", (name) => {
    const { arbitrary: values, encode, decode } = samples[name]!;
    const random = seededRandom(seed);
    for (const value of fc.sample(values, { seed, numRuns: testRuns(60) })) {
      const good = encode(value);
      for (let i = 0; i < 60 && good.length > 0; i++) {
        const bytes = Uint8Array.from(good);
        for (let flips = random(3); flips >= 0; flips--) bytes[random(bytes.length)] = random(256);
        const end = random(4) === 0 ? random(bytes.length) : bytes.length;
        try {
          decode(bytes.subarray(0, end));
        } catch (error) {
          checkRefusal(error);
        }
      }
    }
  });

  it("any bytes", () => {
    const random = seededRandom(seed);
    for (let i = 0; i < testRuns(2000); i++) {
      const bytes = Uint8Array.from({ length: random(60) }, () => random(256));
      for (const { decode } of Object.values(samples)) {
        try {
          decode(bytes);
        } catch (error) {
          checkRefusal(error);
        }
      }
    }
  });
});
