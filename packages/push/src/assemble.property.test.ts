import { describe, expect, it } from "@jest/globals";
import { type Batch, formatLabels, labelsFromObject, levelInMetadata } from "@skald/model";
import { type BodyStream, makePushBody, testRuns } from "@skald/testkit";
import fc from "fast-check";
import { assembleBatch, type BatchDecisions } from "./assemble.js";
import { sanitiseLabelName } from "./columns/metadata.js";
import { decodeBody, type PushBody } from "./decode.js";

const row = fc.record({
  ns: fc.bigInt({ min: -1_000_000_000_000_000_000n, max: 4_000_000_000_000_000_000n }),
  line: fc.uint8Array({ maxLength: 30 }),
  metadata: fc.array(
    fc.tuple(
      fc.constantFrom("a", "a.b", "a_b", "9", "detected_level", "ü1"),
      fc.string({ maxLength: 6 }),
    ),
    { maxLength: 5 },
  ),
});
const pushes = fc
  .array(fc.array(row, { maxLength: 8 }), { minLength: 1, maxLength: 5 })
  .chain((streams) => {
    const rows = streams.flat().length;
    const flags = fc.array(fc.boolean(), { minLength: rows, maxLength: rows });
    const codes = fc.array(fc.constantFrom(0, 1, 6, levelInMetadata), {
      minLength: rows,
      maxLength: rows,
    });
    return fc.tuple(fc.constant(streams), flags, codes);
  });

interface PlainRow {
  readonly stream: string;
  readonly ns: bigint;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

describe("assembleBatch", () => {
  it("loses nothing but what was dropped, and gives the same batch on replay", () => {
    fc.assert(
      fc.property(pushes, ([streams, refused, codes]) => {
        const pushed: BodyStream[] = streams.map((rows, i) => ({ labels: `{s="${i}"}`, rows }));
        const source: PushBody = {
          format: "protobuf",
          encoding: "identity",
          body: makePushBody(pushed),
        };
        const decisions = decide(streams, refused, codes, source);
        const batch = assembleBatch(decodeBody(source), decisions);
        const want = streams
          .flatMap((rows, i) => rows.map((r) => ({ stream: `{s="${i}"}`, ...r })))
          .map((r, i) => ({ ...r, code: codes[i]!, isRefused: refused[i]! }))
          .filter((r) => !r.isRefused)
          .map(({ stream, ns, line, metadata, code }) => ({
            stream,
            ns,
            line: Buffer.from(line).toString("latin1"),
            metadata: stored(metadata, code),
          }));
        expect(plain(batch)).toEqual(want);
        expect(batch.lineBytes).toBe(want.reduce((sum, r) => sum + r.line.length, 0));

        const replayed = assembleBatch(decodeBody(batch.source!), {
          streams: batch.streams.map(({ ordinal, text }) => ({ ordinal, text })),
          dropped: batch.source!.dropped,
          levels: batch.levels,
          source: batch.source!,
        });
        expect(replayed).toEqual(batch);
      }),
      { numRuns: testRuns(100) },
    );
  });
});

function decide(
  streams: readonly (readonly unknown[])[],
  refused: readonly boolean[],
  codes: readonly number[],
  source: PushBody,
): BatchDecisions {
  const dropped = refused.flatMap((isRefused, i) => (isRefused ? [i] : []));
  let from = 0;
  const accepted = streams.flatMap((rows, ordinal) => {
    const labels = labelsFromObject({ s: String(ordinal) });
    const kept = refused.slice(from, from + rows.length).filter((isRefused) => !isRefused);
    from += rows.length;
    return kept.length === 0 ? [] : [{ ordinal, labels, text: formatLabels(labels) }];
  });
  const levels = Uint8Array.from(codes.filter((_, i) => !refused[i]));
  return { streams: accepted, dropped: Uint32Array.from(dropped), levels, source };
}

/** What the rules make of pushed metadata: sanitised, no empty value, last of a name, no level with a code. */
function stored(
  pairs: readonly (readonly [string, string])[],
  code: number,
): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [raw, value] of pairs) {
    const name = sanitiseLabelName(raw)!;
    const hasCode = name === "detected_level" && code !== 0 && code !== levelInMetadata;
    if (value !== "" && !hasCode) out[name] = Buffer.from(value).toString();
  }
  return out;
}

function plain(batch: Batch): PlainRow[] {
  const bytes = Buffer.from(batch.bytes);
  return batch.streams.flatMap(({ text, rowStart, rowEnd }) =>
    Array.from({ length: rowEnd - rowStart }, (_, i) => {
      const r = rowStart + i;
      const metadata: Record<string, string> = {};
      for (let p = batch.metaStart[r]!; p < batch.metaStart[r + 1]!; p++) {
        const name = batch.metaNames[batch.metaName[p]!]!;
        expect(metadata).not.toHaveProperty([name]);
        const start = batch.metaValueStart[p]!;
        metadata[name] = bytes.toString("utf8", start, start + batch.metaValueLength[p]!);
      }
      const start = batch.lineStart[r]!;
      return {
        stream: text,
        ns: BigInt(batch.seconds[r]!) * 1_000_000_000n + BigInt(batch.nanos[r]!),
        line: bytes.toString("latin1", start, start + batch.lineLength[r]!),
        metadata,
      };
    }),
  );
}
