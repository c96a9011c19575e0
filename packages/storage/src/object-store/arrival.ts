/** When the rows of a segment or head arrived, against those of others of its tenant; see docs/formats/segment.md. */
export interface Arrival {
  /** When its head was made, ms since the epoch, and the number of that head in its process. */
  readonly createdMs: number;
  readonly number: number;
  /** Place in the log of the last row of a part of a head; infinite for the last part. */
  readonly file: number;
  readonly offset: number;
}

/** What is known of rows that are sealed or held. */
interface Arrived {
  readonly id: string;
  readonly minNs: bigint;
}

const ofHead = /-([0-9a-z]{1,10})-[0-9a-f]{8}-([0-9a-z]{1,10})(?:_(\d+)_(\d+))?$/;
const ofMerged = /^merged-([0-9a-z]{1,10})-([0-9a-z]{1,10})-[0-9a-f]{32}$/;
const msNs = 1_000_000n;

/** The part of an id that says when a head was made: its number in its process tells those of one millisecond apart. */
export function headId(instance: string, createdMs: number, start: string, number: number): string {
  return `${instance}-${createdMs.toString(36)}-${start}-${number.toString(36)}`;
}

/** The id of what is merged from some segments: it stands where the first of them did. */
export function arrivalText(first: Arrived): string {
  const { createdMs, number } = arrivalOf(first);
  return `${Math.max(0, createdMs).toString(36)}-${number.toString(36)}`;
}

/** What an id says; that of another make stands where its first row does. */
export function arrivalOf({ id, minNs }: Arrived): Arrival {
  const merged = ofMerged.exec(id);
  if (merged !== null) {
    const [, createdMs = "", number = ""] = merged;
    return { createdMs: base36(createdMs), number: base36(number), file: 0, offset: 0 };
  }
  const head = ofHead.exec(id);
  if (head === null) return { createdMs: Number(minNs / msNs), number: 0, file: 0, offset: 0 };
  const [, createdMs = "", number = "", file, offset] = head;
  return {
    createdMs: base36(createdMs),
    number: base36(number),
    file: file === undefined ? Number.POSITIVE_INFINITY : Number(file),
    offset: offset === undefined ? 0 : Number(offset),
  };
}

/** The same, each with its arrival, those that arrived first before the others. */
export function inOrderOfArrival<T extends Arrived>(some: readonly T[]): T[] {
  return some
    .map((one) => ({ one, arrival: arrivalOf(one) }))
    .sort((a, b) => compareArrival(a.arrival, b.arrival) || compareFirst(a.one, b.one))
    .map(({ one }) => one);
}

function compareArrival(a: Arrival, b: Arrival): number {
  return (
    a.createdMs - b.createdMs ||
    a.number - b.number ||
    compareNumbers(a.file, b.file) ||
    a.offset - b.offset
  );
}

function compareFirst(a: Arrived, b: Arrived): number {
  if (a.minNs !== b.minNs) return a.minNs < b.minNs ? -1 : 1;
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

/** Also of two that are infinite. */
function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function base36(text: string): number {
  return Number.parseInt(text, 36);
}
