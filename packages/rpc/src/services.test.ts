import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  answerScheduled,
  decodeTexts,
  type EncodedStreams,
  type Pattern,
  scheduledQuerier,
} from "@skald/contracts";
import * as answers from "@skald/contracts/testing/arbitrary/answers";
import * as changes from "@skald/contracts/testing/arbitrary/changes";
import * as common from "@skald/contracts/testing/arbitrary/common";
import * as patterns from "@skald/contracts/testing/arbitrary/patterns";
import * as pushes from "@skald/contracts/testing/arbitrary/pushes";
import * as tasks from "@skald/contracts/testing/arbitrary/tasks";
import { textOf } from "@skald/contracts/testing/text-of";
import { makeBatch, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { type Carrier, carriers, happened } from "./testing/carriers.js";
import { echoQuerier, textOfPush } from "./testing/echo.js";

const seed = testSeed();
const { signal } = new AbortController();
const options = { signal };

/** Runs a call with messages of any kind. */
async function withAny<T>(messages: fc.Arbitrary<T>, call: (value: T) => Promise<void>) {
  await fc.assert(fc.asyncProperty(messages, call), { seed, numRuns: testRuns(20) });
}

describe.each(carriers)("the contracts by %s", (_name, open) => {
  let carrier: Carrier;
  beforeAll(async () => {
    carrier = await open();
  });
  afterAll(() => carrier.stop());

  const told = (bytes: EncodedStreams) => decodeTexts(bytes)[0];

  it.each(["ingester", "distributor"] as const)("push to %s", (service) =>
    withAny(pushes.arbitraryPush, async (push) => {
      const { ingester, distributor } = carrier.services;
      const ask = service === "ingester" ? ingester.push : distributor.pushBatch;
      const { refusals } = await ask(push, options);
      const { entries, message } = refusals[0]!;
      expect([entries, message]).toEqual([push.batch.rowCount, textOfPush(push)]);
    }),
  );

  it("push to an ingester as the body that it came as", () =>
    withAny(pushes.arbitraryBodyPush, async (push) => {
      const { refusals } = await carrier.services.ingester.push(push, options);
      expect(refusals[0]?.message).toBe(textOfPush(push));
    }));

  it("Ingester.select", () =>
    withAny(tasks.arbitrarySelect, async (request) => {
      expect(await carrier.services.ingester.select(request, options)).toEqual({
        view: textOf(request),
        sources: [],
        completeFromNs: request.fromNs,
      });
    }));

  it("Ingester.changes", () =>
    withAny(changes.arbitraryHeldChangesRequest, async (request) => {
      const spans = request.spans.map(({ fromNs, toNs }) => ({ fromNs, toNs }));
      expect(await carrier.services.ingester.changes(request, options)).toMatchObject({
        spans: [{ token: textOf(request), changed: spans }],
        lookedFromNs: -1n,
      });
    }));

  it("Ingester.release and flush", async () => {
    const { ingester } = carrier.services;
    expect(await ingester.release("v", options)).toBeUndefined();
    expect(await ingester.flush({}, options)).toBeUndefined();
    await ingester.flush({ tenant: "a" }, options);
    await happened(carrier, 'flushed {"tenant":"a"}');
    expect(carrier.seen).toContain("flushed {}");
    // Views are given back together, a little later.
    await happened(carrier, "released v");
  });

  it("Ingester.scan and measure", () =>
    withAny(
      fc.tuple(tasks.arbitraryScanTask(seed), common.arbitraryShare),
      async ([task, share]) => {
        const { ingester } = carrier.services;
        const want = textOf({ task, share });
        expect(JSON.parse(told(await ingester.run("scan", task, { signal, share }))!)).toEqual(
          JSON.parse(want),
        );
        expect(await ingester.run("measure", task, { signal, share })).toEqual({
          ...{ bytes: want.length, blocks: 2, blocksToRead: 1 },
        });
      },
    ));

  it("Ingester.volumes, a scan that nobody waits for", () =>
    withAny(
      fc.tuple(tasks.arbitraryVolumeTask, common.arbitraryShare, common.arbitraryBackground),
      async ([task, share, more]) => {
        const { ingester } = carrier.services;
        const want = JSON.parse(textOf({ task, share, ...more }));
        const found = await ingester.run("volumes", task, { signal, share, ...more });
        expect(JSON.parse(told(found)!)).toEqual(want);
      },
    ));

  it("Ingester.streams, labels", () =>
    withAny(fc.tuple(tasks.arbitraryLabelTask, common.arbitraryShare), async ([task, share]) => {
      const { ingester } = carrier.services;
      const want = JSON.parse(textOf({ task, share }));
      expect(JSON.parse(told(await ingester.run("labels", task, { signal, share }))!)).toEqual(
        want,
      );
      const { label: _, ...streamTask } = task;
      delete want.task.label;
      expect(
        JSON.parse(told(await ingester.run("streams", streamTask, { signal, share }))!),
      ).toEqual(want);
    }));

  it("Ingester.duplicates", () =>
    withAny(
      fc.tuple(tasks.arbitraryDuplicateTask, common.arbitraryShare),
      async ([task, share]) => {
        const { blocks, rows } = await carrier.services.ingester.run("duplicates", task, {
          signal,
          share,
        });
        expect([...blocks]).toEqual([1, 7]);
        const length = textOf({ task, share }).length;
        expect(rows.map((one) => [...one])).toEqual([[length], [0, 2 ** 32 - 1]]);
      },
    ));

  it("Ingester.matches", () =>
    withAny(
      fc.tuple(tasks.arbitraryMatchTask(seed), common.arbitraryShare, common.arbitraryBackground),
      async ([task, share, more]) => {
        const { ingester } = carrier.services;
        const { mask, rowCount } = await ingester.run("matches", task, { signal, share, ...more });
        expect(mask).toEqual({ blocks: Uint32Array.of(3), rows: [Uint32Array.of(1, 2)] });
        expect(rowCount).toBe(textOf({ task, share, ...more }).length);
      },
    ));

  it("Ingester.digests", () =>
    withAny(
      fc.tuple(tasks.arbitraryDigestTask, common.arbitraryShare, common.arbitraryBackground),
      async ([task, share, more]) => {
        const digests = await carrier.services.ingester.run("digests", task, {
          signal,
          share,
          ...more,
        });
        expect(textOf(digests)).toBe(
          textOf({
            ...{ streams: [2 ** 53 - 1], counts: [1], minutes: [2 ** 32 - 1] },
            ...{ rows: [textOf({ task, share, ...more }).length], sums: [2 ** 32 - 1, 0] },
          }),
        );
      },
    ));

  it("Ingester.rowHashes", () =>
    withAny(
      fc.tuple(tasks.arbitraryRowHashTask, common.arbitraryShare, common.arbitraryBackground),
      async ([task, share, more]) => {
        const rows = await carrier.services.ingester.run("rowHashes", task, {
          signal,
          share,
          ...more,
        });
        expect(textOf(rows)).toBe(
          textOf({
            ...{ minute: [1], source: [2], block: [3] },
            ...{ row: [textOf({ task, share, ...more }).length], hashes: [5, 2 ** 32 - 1] },
          }),
        );
      },
    ));

  it("Catalog.list with any request", () =>
    withAny(tasks.arbitraryCatalogRequest, async (request) => {
      const [segment] = await carrier.services.catalog.list(request, options);
      expect(JSON.parse(segment!.id)).toEqual(JSON.parse(textOf(request)));
    }));

  it("Catalog.count with any request", () =>
    withAny(
      fc.tuple(tasks.arbitraryCountRequest(seed), common.arbitraryShare),
      async ([request, share]) => {
        const { counted, ...answer } = await carrier.services.catalog.count(request, {
          ...{ signal, share },
        });
        const known = request.held ?? [];
        expect(answer).toEqual({ segments: [], countedSegments: 2 ** 40, known });
        expect(Buffer.from(counted[0]!).toString()).toBe(textOf({ ...request, share }));
      },
    ));

  it("Deletes.active", () =>
    withAny(tasks.arbitraryDeletesRequest, async (request) => {
      const filters = await carrier.services.deletes.active(request, options);
      const { fromNs, toNs } = request;
      const log = { kind: "log", matchers: [], stages: [] };
      expect(filters).toEqual([{ id: textOf(request), fromNs, toNs, log, nowNs: 0n }]);
    }));

  it("Catalog.list", async () => {
    const request = { tenant: "a", fromNs: -1n, toNs: 2n ** 60n, maxAgeMs: 0 };
    const [segment] = await carrier.services.catalog.list(request, options);
    expect(segment).toEqual({
      kind: "segment",
      id: textOf(request),
      tenant: "a",
      minNs: -1n,
      maxNs: 2n ** 60n,
      location: { kind: "object", key: "k" },
      sizeBytes: 2 ** 40,
    });
  });

  it("PatternIngester.patterns", () =>
    withAny(patterns.arbitraryPatternsRequest, async (request) => {
      const { patternIngester } = carrier.services;
      const { patterns, lines } = await patternIngester.patterns(request, options);
      const [{ pattern, ...rest }, ...others] = patterns as [Pattern, ...Pattern[]];
      expect(JSON.parse(pattern)).toEqual(JSON.parse(textOf(request)));
      expect([rest, lines]).toEqual([{ level: "info", samples: [[60, 2 ** 40]] }, 2 ** 41]);
      expect(others).toEqual([{ pattern: "é <_>", level: "", samples: [] }]);
    }));

  it("PatternIngester.learn", () =>
    withAny(patterns.arbitrarySampledLines, async (lines) => {
      await carrier.services.patternIngester.learn(lines, options);
      await happened(carrier, textOf(lines));
    }));

  it("Rules.groups and changed", async () => {
    const { rules } = carrier.services;
    const [first, second] = await rules.groups({ tenant: "é" }, options);
    expect(JSON.parse(first!.name)).toEqual({ tenant: "é" });
    expect(first).not.toHaveProperty("lastEvaluationMs");
    expect([second!.name, second!.lastEvaluationMs]).toEqual(["g", 2 ** 40]);
    expect(await rules.changed(options)).toBeUndefined();
    await happened(carrier, "rules changed");
  });

  it("Tailer.tail to its end", () =>
    withAny(answers.arbitraryTailRequest(seed), async (request) => {
      const items = [];
      for await (const item of carrier.services.tailer.tail(request, options)) items.push(item);
      const [dropped] = items[1]!.dropped;
      expect(JSON.parse(dropped!.labels.values[0]!)).toEqual(JSON.parse(textOf(request)));
      expect([items.length, items[0], dropped!.timestampNs]).toEqual([2, { dropped: [] }, -1n]);
    }));

  it("a push that is larger than a server takes arrives", async () => {
    const rows = Array.from({ length: 100 }, (_, i) => ({
      ns: BigInt(i),
      line: String(i).repeat(60_000),
    }));
    const batch = makeBatch([{ labels: { a: "b" }, rows }]);
    const { refusals } = await carrier.services.ingester.push({ tenant: "a", batch }, options);
    expect(refusals.reduce((total, { entries }) => total + entries, 0)).toBe(100);
  });
});

describe("a querier behind a scheduler", () => {
  const querier = scheduledQuerier(() => ({
    run: async (call, own) => ({
      body: await answerScheduled(echoQuerier, call, own),
      queueSeconds: 2,
    }),
  }));

  it("query", () =>
    withAny(answers.arbitraryQueryRequest(seed), async (request) => {
      const { result, stats } = await querier.run("query", request, options);
      expect(JSON.parse(result.warnings[0]!)).toEqual(JSON.parse(textOf(request)));
      expect([stats.store.downloadNs, stats.queueSeconds]).toEqual([1.5, 2]);
    }));

  it("volumes", () =>
    withAny(tasks.arbitraryVolumeRequest, async (request) => {
      const { groups, stats, ...rest } = await querier.run("volumes", request, options);
      expect(JSON.parse(groups[0]!.values[0]!)).toEqual(JSON.parse(textOf(request)));
      expect([stats.store.downloadNs, stats.queueSeconds]).toEqual([1.5, 2]);
      expect(rest).toEqual({
        group: Uint32Array.of(0),
        bucket: Uint32Array.of(7),
        rows: Float64Array.of(2 ** 40),
        bytes: Float64Array.of(0.5),
        blocks: 1,
        blockBytes: 700,
        streamCount: 2,
        warnings: ["w"],
      });
    }));

  it("streams, labels", () =>
    withAny(answers.arbitraryStreamsRequest, async (request) => {
      const [streams] = await querier.run("streams", request, options);
      const want = JSON.parse(textOf(request));
      expect(JSON.parse(streams!.tenant)).toEqual(want);
      const [labels] = await querier.run("labels", { ...request, label: "l" }, options);
      expect(labels!.texts[0]).toBe("é");
      expect(JSON.parse(labels!.texts[1]!)).toEqual({ ...want, label: "l" });
    }));
});
