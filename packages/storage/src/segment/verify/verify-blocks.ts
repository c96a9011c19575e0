import { internal, sliceOf, type TimeSlices } from "@skald/model";
import { minuteNs } from "../digest/digest-table.js";
import { hashBlockRows } from "../digest/row-hash.js";
import type { Segment } from "../segment.js";
import type { Damage } from "./verify-pages.js";

/** Decodes every block and holds it against what its header, the digests, the marks and the counts of levels say. Yields raw bytes. */
export function* verifyBlocks(
  segment: Segment,
  onDamage: (damage: Damage) => void,
): Generator<number, void> {
  const digests = new DigestCheck(segment, onDamage);
  for (let number = 0; number < segment.blockCount; number++) {
    try {
      const block = verifyBlock(segment, number);
      digests.add(block);
      checkMarks(segment.marks(number), block);
    } catch (error) {
      digests.giveUp();
      onDamage({ part: `block ${number}`, message: (error as Error).message });
    }
    yield segment.header(number).rawBytes;
  }
  digests.finish();
}

type DecodedBlock = ReturnType<typeof verifyBlock>;

function verifyBlock(segment: Segment, number: number) {
  const block = segment.block(number);
  const { runs, rowCount } = block;
  const timestamps = block.timestamps();
  const lines = block.lines();
  for (let run = 0; run < runs.count; run++) {
    const from = runs.rowStart[run]!;
    const to = runs.rowStart[run + 1]!;
    for (let row = from + 1; row < to; row++) {
      if (timestamps[row]! < timestamps[row - 1]!) throw internal(`run ${run} goes back in time`);
    }
    if (timestamps[from] !== runs.minTime[run] || timestamps[to - 1] !== runs.maxTime[run])
      throw internal(`run ${run} has other times than its header`);
    if (lines.offsets[to]! - lines.offsets[from]! !== runs.lineBytes[run])
      throw internal(`run ${run} has other lines than its header`);
    const levels = segment.levels(number, run);
    if (levels !== undefined && levels.rows.reduce((sum, rows) => sum + rows, 0) !== to - from)
      throw internal(`run ${run} has counts of levels of other rows`);
    checkSlices(segment.slices(number, run), { timestamps, offsets: lines.offsets, from, to });
  }
  const metadata = block.metadataNames().flatMap((name) => {
    const column = block.metadata(name);
    return column === undefined ? [] : [[name, column] as const];
  });
  return { runs, timestamps, hashes: hashBlockRows({ rowCount, timestamps, lines, metadata }) };
}

/** Throws `internal` when the marks are not those of the rows. */
function checkMarks(marks: Uint32Array | undefined, { hashes: { low } }: DecodedBlock): void {
  if (marks?.every((mark, row) => mark === low[row]) === false)
    throw internal("its marks are not those of its rows");
}

/** Throws `internal` when the rows `from .. to)` are not those of the slices. */
function checkSlices(
  slices: TimeSlices | undefined,
  {
    timestamps,
    offsets,
    from,
    to,
  }: { timestamps: Float64Array; offsets: Uint32Array; from: number; to: number },
): void {
  if (slices === undefined) return;
  let row = from;
  for (let at = slices.from; at < slices.to; at++) {
    const end = row + slices.rows[at]!;
    const slice = slices.first + at - slices.from;
    for (let one = row; one < Math.min(end, to); one++) {
      if (sliceOf(timestamps[one]!, slices.stepNs) !== slice)
        throw internal(`slice ${slice} has rows of other times`);
    }
    if (end > to || offsets[end]! - offsets[row]! !== slices.lineBytes[at])
      throw internal(`slice ${slice} has other lines than its rows`);
    row = end;
  }
  if (row !== to) throw internal("slices have fewer rows than their run");
}

/** Sums row hashes over the blocks of a stream, minute by minute, and compares them with its digests. */
class DigestCheck {
  readonly #segment: Segment;
  readonly #onDamage: (damage: Damage) => void;
  #stream = -1;
  #minutes = new Map<number, { rows: number; low: number; high: number }>();
  #isKnown = true;

  constructor(segment: Segment, onDamage: (damage: Damage) => void) {
    this.#segment = segment;
    this.#onDamage = onDamage;
  }

  add({ runs, timestamps, hashes }: DecodedBlock): void {
    for (let run = 0; run < runs.count; run++) {
      if (runs.stream[run] !== this.#stream) this.#open(runs.stream[run]!);
      for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
        const minute = Math.floor(timestamps[row]! / minuteNs);
        let sums = this.#minutes.get(minute);
        if (sums === undefined) {
          sums = { rows: 0, low: 0, high: 0 };
          this.#minutes.set(minute, sums);
        }
        sums.rows++;
        sums.low = (sums.low + hashes.low[row]!) >>> 0;
        sums.high = (sums.high + hashes.high[row]!) >>> 0;
      }
    }
  }

  /** The stream at hand, and those of a block, have rows that were not read. */
  giveUp(): void {
    this.#isKnown = false;
  }

  finish(): void {
    const stream = this.#stream;
    if (stream < 0 || !this.#isKnown) return;
    const digests = this.#segment.digests(stream);
    if (digests === undefined) return;
    const isSame =
      digests.minutes.length === this.#minutes.size &&
      digests.minutes.every((minute, i) => {
        const own = this.#minutes.get(minute);
        return (
          own !== undefined &&
          own.rows === digests.rows[i] &&
          own.low === digests.sums[2 * i] &&
          own.high === digests.sums[2 * i + 1]
        );
      });
    if (isSame) return;
    this.#onDamage({
      part: `digests of stream ${this.#segment.text(stream)}`,
      message: "they are not those of the rows",
    });
  }

  #open(stream: number): void {
    this.finish();
    this.#stream = stream;
    this.#minutes = new Map();
  }
}
