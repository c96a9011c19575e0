import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { parseQuery, planQuery } from "@skald/logql";
import { SkaldError } from "@skald/model";
import { assembleBatch, decodeBody, takeStreams } from "@skald/push";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import protobuf from "protobufjs";
import type { PushRequest } from "../index.js";
import * as answers from "../testing/arbitrary/answers.js";
import * as changes from "../testing/arbitrary/changes.js";
import * as common from "../testing/arbitrary/common.js";
import * as patterns from "../testing/arbitrary/patterns.js";
import * as pushes from "../testing/arbitrary/pushes.js";
import * as rules from "../testing/arbitrary/rules.js";
import * as scheduler from "../testing/arbitrary/scheduler.js";
import * as tasks from "../testing/arbitrary/tasks.js";
import { rowsOf } from "../testing/rows-of.js";
import { textOf } from "../testing/text-of.js";
import { decode, encode } from "./codec.js";
import { decodePush, encodePush, encodePushBody, encodePushInParts } from "./push.js";
import type { Inside, MessageName } from "./types.js";

const seed = testSeed();
const text = fc.string({ unit: "grapheme", maxLength: 12 });

interface Sample {
  /** The message of proto/messages.proto. */
  readonly message: MessageName;
  readonly arbitrary: fc.Arbitrary<unknown>;
  encode(value: unknown): Uint8Array;
  decode(bytes: Uint8Array): unknown;
}

function of<N extends MessageName>(values: fc.Arbitrary<Inside<NoInfer<N>>>, message: N): Sample {
  // The compiler would look at the types of all messages.
  const any = message as string as "Empty";
  return {
    message,
    arbitrary: values,
    encode: (value) => encode(any, value as object),
    decode: (bytes) => decode(any, bytes),
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
  "push outcome": of(pushes.arbitraryPushOutcome, "PushOutcome"),
  "select request": of(tasks.arbitrarySelect, "SelectRequest"),
  "held changes request": of(changes.arbitraryHeldChangesRequest, "HeldChangesRequest"),
  "held changes": of(changes.arbitraryHeldChanges, "HeldChanges"),
  "changes request": of(changes.arbitraryChangesRequest, "ChangesRequest"),
  "changes answer": of(
    changes.arbitraryChangesAnswer.map(({ spans }) => spans),
    "ChangesAnswer",
  ),
  selection: of(tasks.arbitrarySelection, "Selection"),
  "scan call": of(shared(tasks.arbitraryScanTask(seed)), "ScanRequest"),
  "volume call": of(shared(tasks.arbitraryVolumeTask), "ScanVolumesRequest"),
  "match call": of(shared(tasks.arbitraryMatchTask(seed)), "MatchesRequest"),
  "matched rows": of(tasks.arbitraryMatched, "MatchedRows"),
  "digest call": of(shared(tasks.arbitraryDigestTask), "DigestsRequest"),
  "row hash call": of(shared(tasks.arbitraryRowHashTask), "RowHashesRequest"),
  "minute digests": of(tasks.arbitraryDigests, "MinuteDigests"),
  "placed hashes": of(tasks.arbitraryHashes, "PlacedHashes"),
  "deletes request": of(tasks.arbitraryDeletesRequest, "DeletesRequest"),
  "deletes answer": of(fc.array(tasks.arbitraryFilter(seed), { maxLength: 3 }), "DeletesAnswer"),
  "label call": of(shared(tasks.arbitraryLabelTask), "ScanLabelsRequest"),
  "duplicate call": of(shared(tasks.arbitraryDuplicateTask), "DuplicatesRequest"),
  "row mask": of(tasks.arbitraryMask, "RowMask"),
  "flush request": of(fc.constantFrom({}, { tenant: "a" }), "FlushRequest"),
  "release request": of(fc.record({ views: fc.array(text) }), "ReleaseRequest"),
  "measure answer": of(
    fc.record({ bytes: fc.double(), blocks: fc.double(), blocksToRead: fc.double() }),
    "MeasureAnswer",
  ),
  "query request": of(answers.arbitraryQueryRequest(seed), "QueryRequest"),
  "query answer": of(answers.arbitraryQueryAnswer, "QueryAnswer"),
  "volume request": of(tasks.arbitraryVolumeRequest, "VolumeRequest"),
  "volume answer": of(answers.arbitraryVolumeAnswer, "VolumeAnswer"),
  "catalog request": of(
    fc.oneof(
      tasks.arbitraryCatalogRequest,
      fc
        .tuple(tasks.arbitraryCountRequest(seed), common.arbitraryShare)
        .map(([request, share]) => ({ ...request, share })),
    ),
    "CatalogRequest",
  ),
  "streams request": of(answers.arbitraryStreamsRequest, "StreamsRequest"),
  "streams answer": of(
    fc.array(
      fc.record({
        tenant: text,
        streams: fc.array(answers.arbitraryColumns, { maxLength: 2 }),
      }),
    ),
    "StreamsAnswer",
  ),
  "labels answer": of(
    fc.array(fc.record({ tenant: text, texts: fc.array(text) }), { maxLength: 3 }),
    "LabelsAnswer",
  ),
  "catalog answer": of(
    fc.array(common.arbitrarySource).map((refs) => ({
      segments: refs.filter((ref) => ref.kind === "segment"),
      counted: refs.map(({ sizeBytes }) => Uint8Array.of(sizeBytes, 7)),
      countedSegments: refs.length,
      known: refs.map(({ id }) => id),
    })),
    "CatalogAnswer",
  ),
  "tail request": of(answers.arbitraryTailRequest(seed), "TailRequest"),
  "tail rows": of(answers.arbitraryTailRows, "TailRows"),
  "patterns request": of(patterns.arbitraryPatternsRequest, "PatternsRequest"),
  "found patterns": of(patterns.arbitraryFoundPatterns, "FoundPatterns"),
  "sampled lines": of(patterns.arbitrarySampledLines, "SampledLines"),
  "rule groups": of(fc.array(rules.arbitraryRuleGroup, { maxLength: 2 }), "RuleGroupsAnswer"),
  outcome: of(answers.arbitraryOutcome, "Outcome"),
  volumes: of(answers.arbitraryVolumes, "VolumeOutcome"),
  streams: of(answers.arbitraryColumns, "StreamColumns"),
  texts: of(fc.array(text), "TextList"),
  "scheduled call": of(scheduler.arbitraryCall, "ScheduledCall"),
  "scheduled answer": of(scheduler.arbitraryAnswer, "ScheduledAnswer"),
  "take request": of(fc.record({ querier: text }), "TakeRequest"),
  "take next": of(scheduler.arbitraryTake, "TakeNext"),
  "taken calls": of(scheduler.arbitraryTaken, "TakenCalls"),
  "finished call": of(scheduler.arbitraryFinished, "FinishedCall"),
  "cancelled calls": of(scheduler.arbitraryCancelled, "CancelledCalls"),
  "push body": {
    arbitrary: pushes.arbitraryBodyPush,
    message: "PushRequest",
    encode: (value) => {
      const { tenant, batch } = value as PushRequest;
      return encodePushBody({ tenant, whole: batch }) as Uint8Array;
    },
    decode: (bytes) => decodePush(bytes),
  },
  push: {
    arbitrary: pushes.arbitraryPush,
    message: "PushRequest",
    encode: (value) => encodePush(value as PushRequest),
    decode: (bytes) => decodePush(bytes),
  },
};

const names = Object.keys(samples);

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
      const found = decodePush(encodePush(push));
      expect(found.tenant).toBe(push.tenant);
      expect(rowsOf(found.batch)).toEqual(rowsOf(push.batch));
      expect(found.batch.source).toEqual(push.batch.source);
      expect(found.batch.lineBytes).toBe(push.batch.lineBytes);
    });
    fc.assert(property, { seed, numRuns: testRuns(300) });
  });

  it("some streams of a push, as stretches of its body", () => {
    const property = fc.property(
      pushes.arbitraryBodyPush,
      fc.infiniteStream(fc.boolean()),
      ({ tenant, batch }, chosen) => {
        const all = Uint32Array.from(batch.streams.keys());
        const streams = all.filter(() => chosen.next().value as boolean);
        const sent = encodePushBody({ tenant, whole: batch, streams });
        const found = decodePush(sent!);
        const wanted = rowsOf(takeStreams(batch, streams));
        const places = new Map(
          Array.from(streams, (index, i) => [batch.streams[index]!.ordinal, i]),
        );
        expect(found.tenant).toBe(tenant);
        expect(rowsOf(found.batch)).toEqual(
          wanted.map((row) => ({ ...row, ordinal: places.get(row.ordinal) })),
        );
        // The log of the ingester gives the same rows again.
        const { source } = found.batch;
        const again = assembleBatch(decodeBody(source!), {
          ...{ streams: found.batch.streams, dropped: source!.dropped },
          levels: found.batch.levels,
        });
        expect(rowsOf(again)).toEqual(rowsOf(found.batch));
      },
    );
    fc.assert(property, { seed, numRuns: testRuns(300) });
  });

  it("a push in parts", () => {
    const property = fc.property(
      pushes.arbitraryPush,
      fc.integer({ min: 1, max: 300 }),
      (push, max) => {
        const parts = [...encodePushInParts(push, max)].map((part) => decodePush(part));
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
      expect(decode("Plan", encode("Plan", plan))).toEqual(plan);
    }
  });
});

describe("others read messages by proto/messages.proto", () => {
  const file = new URL("../../../../proto/messages.proto", import.meta.url);
  const { root } = protobuf.parse(readFileSync(file, "utf8"));
  it.each(names)("%s", (name) => {
    const { arbitrary: values, encode, decode, message } = samples[name]!;
    const type = root.lookupType(`skald.v1.${message}`);
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
