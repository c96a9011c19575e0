import fc from "fast-check";
import type { FoundPatterns, Pattern, PatternsRequest, SampledLines } from "../../index.js";
import { count, matcher, ns, record, text, u32 } from "./common.js";

export const arbitraryPatternsRequest: fc.Arbitrary<PatternsRequest> = record<PatternsRequest>({
  tenant: text,
  matchers: fc.array(matcher, { maxLength: 3 }),
  fromNs: ns,
  toNs: ns,
  stepSeconds: fc.integer({ min: 1, max: 100_000 }),
});

const pattern: fc.Arbitrary<Pattern> = record<Pattern>({
  pattern: text,
  level: text,
  samples: fc.array(fc.tuple(count, count), { maxLength: 3 }),
});

export const arbitraryFoundPatterns: fc.Arbitrary<FoundPatterns> = record<FoundPatterns>({
  patterns: fc.array(pattern, { maxLength: 3 }),
  lines: count,
});

export const arbitrarySampledLines: fc.Arbitrary<SampledLines> = fc
  .record({
    tenant: text,
    weight: count,
    streams: fc.array(text, { minLength: 1, maxLength: 3 }),
    levels: fc.array(text, { minLength: 1, maxLength: 3 }),
    lines: fc.array(fc.tuple(u32, u32, count, fc.uint8Array({ maxLength: 9 })), { maxLength: 4 }),
  })
  .map(({ lines, streams, levels, ...rest }) => {
    let end = 0;
    return {
      ...{ ...rest, streams, levels },
      streamOf: Uint32Array.from(lines, ([stream]) => stream % streams.length),
      levelOf: Uint32Array.from(lines, ([, level]) => level % levels.length),
      seconds: Float64Array.from(lines, ([, , second]) => second),
      ends: Uint32Array.from(lines, ([, , , line]) => (end += line.length)),
      bytes: Uint8Array.from(lines.flatMap(([, , , line]) => [...line])),
    };
  });
