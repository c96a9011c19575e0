import { errorCodeOf, type SegmentRef } from "@skald/model";
import type { IndexImage } from "../segment/index-image.js";
import { SegmentIndex } from "../segment/read/index-reader.js";
import { openSegmentFile } from "../segment/read/open-file.js";
import { countSegment } from "./count-segments.js";
import { DayEdit } from "./day-edit.js";
import { DayIndex, type GoneSegment } from "./day-index.js";
import { decodeDayIndex } from "./image.js";

/** A segment that comes to a day: a file of this machine, or one whose index was read. */
export interface AddedSegment {
  readonly ref: SegmentRef;
  readonly image?: IndexImage;
  readonly level: number;
}

/** What is to become of a day; plain data, for another thread. */
export interface DayChange {
  readonly tenant: string;
  readonly baseNs: bigint;
  /** The index before, if there is one. */
  readonly base: IndexImage | undefined;
  readonly add: readonly AddedSegment[];
  readonly remove: readonly GoneSegment[];
  readonly forget: readonly string[];
  readonly generation: number;
  /** ms since the epoch */
  readonly writtenMs: number;
}

export interface EditedDay {
  readonly bytes: Uint8Array;
  readonly image: IndexImage;
  /** Of those to add: what cannot be read, and why. They are not in the index. */
  readonly damaged: readonly { readonly id: string; readonly reason: string }[];
}

/** Makes the next index of a day. Blocks the thread: reads the footer of each file, and may be slow for many streams. */
export function editDay(change: DayChange): EditedDay {
  const { base, add, remove, forget } = change;
  const edit = new DayEdit(base === undefined ? change : new DayIndex(base));
  const damaged: { id: string; reason: string }[] = [];
  for (const added of add) {
    try {
      addSegment(edit, added);
    } catch (error) {
      if (errorCodeOf(error) !== "internal") throw error;
      damaged.push({ id: added.ref.id, reason: (error as Error).message });
    }
  }
  for (const gone of remove) edit.remove(gone);
  for (const id of forget) edit.forget(id);
  const bytes = edit.encode(change);
  return { bytes, image: decodeDayIndex("that was just made", bytes), damaged };
}

function addSegment(edit: DayEdit, { ref, image, level }: AddedSegment): void {
  const { id, minNs, maxNs, sizeBytes } = ref;
  const index = new SegmentIndex(image ?? imageOf(ref));
  const texts = Array.from({ length: index.streams.count }, (_, s) => index.streams.text(s));
  const { rowCount: rows, lineBytes } = index;
  const segment = { id, minNs, maxNs, sizeBytes, rows, lineBytes, level };
  edit.add(segment, texts, countSegment(index));
}

function imageOf(ref: SegmentRef): IndexImage {
  const { segment, close } = openSegmentFile(ref);
  close();
  return segment.image;
}
