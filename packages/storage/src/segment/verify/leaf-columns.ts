import { internal } from "@skald/model";
import { encoding, physicalType } from "../../parquet/format.js";
import type { Leaf } from "../../parquet/schema.js";
import {
  firstMetadataColumn,
  lineColumn,
  type SegmentIndex,
  timestampColumn,
} from "../read/index-reader.js";

/** The number of a column of Parquet in the own index; undefined for labels. Throws `internal` where that lacks it. */
export function columnOf({ path }: Leaf, index: SegmentIndex): number | undefined {
  const [first, second, third] = path;
  if (first === "timestamp") return timestampColumn;
  if (first === "line") return lineColumn;
  if (first === "metadata_more") return index.columnCount - (third === "key" ? 2 : 1);
  if (first !== "metadata") return undefined;
  const column = index.metadataNames.indexOf(second as string);
  if (column < 0) throw internal(`footer has a column ${second} that the index lacks`);
  return firstMetadataColumn + column;
}

/** What a column is called in the text of a damage. */
export function nameOf({ path }: Leaf): string {
  return path.filter((part) => part !== "key_value").join(".");
}

/** Whether a column is that of a label. */
export function isLabel({ path }: Leaf): boolean {
  return path[0] === "labels";
}

/** Whether the pages of a column have codes. */
export function hasDictionary(leaf: Leaf): boolean {
  return encodingOf(leaf) === encoding.rleDictionary;
}

/** How the values of a column are written. */
export function encodingOf(leaf: Leaf): number {
  if (leaf.type === physicalType.int64) return encoding.deltaBinaryPacked;
  const isKey = leaf.path.length === 3 && leaf.path[2] === "key";
  return isLabel(leaf) || isKey ? encoding.rleDictionary : encoding.deltaLengthByteArray;
}
