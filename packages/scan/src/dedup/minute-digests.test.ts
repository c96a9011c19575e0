import { afterAll, expect, it } from "@jest/globals";
import type { LocalRef } from "@skald/storage";
import { SourceCache } from "../source/cache.js";
import {
  BlockDigestCache,
  headWithin,
  makeDirectory,
  makeHead,
  makeSegment,
  row,
  scanHere,
  testDayNs,
} from "../testing/sources.js";

const minuteNs = 60_000_000_000;
const directory = makeDirectory();
const sources = new SourceCache({ maxOpenSegments: 2, maxIndexBytes: 1e9 });
afterAll(() => {
  sources.close();
  directory.remove();
});

/** The minutes of the day with rows by stream, and their digests, as a thread that remembers others finds them. */
function digestsOf(ref: LocalRef, digests: BlockDigestCache) {
  const range = { fromNs: testDayNs, toNs: testDayNs + BigInt(10 * minuteNs) };
  const task = { sources: [{ ref }], matchers: [], minutesEach: 1, ...range };
  return sources.use((open) => scanHere("digests", task, { open, digests, check: () => {} }));
}

/** As many rows in each minute: each minute is a block of a head. */
const rows = [0, 1, 2].flatMap((minute) =>
  [0, 1, 2].map((i) => row("a", minute * minuteNs + i, `line ${minute} ${i}`)),
);

it("are those of the blocks that a query sees, whichever blocks an earlier one saw", () => {
  const head = makeHead(rows, { id: "h", rowsPerBlock: 3 });
  const remembered = new BlockDigestCache();
  for (const minute of [0, 1, 2]) {
    const fromNs = testDayNs + BigInt(minute * minuteNs);
    const seen = headWithin(head, { fromNs, toNs: fromNs + BigInt(minuteNs) });
    expect(seen.blocks).toHaveLength(1);
    expect(digestsOf(seen, remembered)).toEqual(digestsOf(seen, new BlockDigestCache()));
  }
});

it("are those of a segment although its head had the same id, and other numbers for its streams", () => {
  const two = [row("b", 0, "first"), row("a", minuteNs, "second")];
  const head = makeHead(two, { id: "s" });
  const segment = makeSegment(directory.path, two, { id: "s" });
  const remembered = new BlockDigestCache();
  digestsOf(head, remembered);
  expect(digestsOf(segment, remembered)).toEqual(digestsOf(segment, new BlockDigestCache()));
});
