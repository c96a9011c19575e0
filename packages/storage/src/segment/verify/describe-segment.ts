import { internal } from "@skald/model";
import { type ReadFooter, readFooter, sumOf } from "../../parquet/footer.js";
import { zstd, zstdContentBytes } from "../../zstd.js";
import { filterDomains, groupBytes } from "../filter/filter-table.js";
import { SectionReader, section } from "../index-sections.js";
import type { SyncRangeReader } from "../range-reader.js";
import type { SegmentIndex } from "../read/index-reader.js";
import { openIndex, openSegment } from "../read/reader.js";
import type { Segment } from "../segment.js";
import { type FoundSegment, readEnd } from "./verify-segment.js";

/** Bytes of a part of a segment, as stored and once decompressed. */
interface PartSize {
  readonly name: string;
  readonly storedBytes: number;
  readonly rawBytes: number;
}

/** What the index and the footer of a segment say about it; no page was read. */
export interface SegmentDescription extends Omit<FoundSegment, "streams"> {
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly rowGroups: number;
  readonly blocks: number;
  readonly streams: number;
  /** Pages, Bloom filters of columns, own filters, own index and footer. */
  readonly parts: readonly PartSize[];
  /** By the names that SQL knows, in the order of the file. */
  readonly columns: readonly PartSize[];
  /** Sections of the own index before it was compressed. */
  readonly sections: readonly { name: string; values: number; bytes: number }[];
  /** Filters of each domain, undefined when there are none. */
  readonly filters: { groups: number; lines: number; metadata: number } | undefined;
  /** Streams with digests of their minutes, and the minutes. */
  readonly digests: { streams: number; minutes: number };
  /** Rows by `detected_level`, of the runs where they were counted. */
  readonly levels: { countedRuns: number; rows: Readonly<Record<string, number>> };
  /** Texts whose rows the index lists, and how many rows have each. */
  readonly rowSets: Readonly<Record<string, number>>;
  /** Columns of fields, blocks that have them, and rows that are left to parsers. */
  readonly fields: { columns: number; blocks: number; irregularRows: number };
  /** The segment itself, for streams and blocks. */
  readonly segment: Segment;
}

/** Describes a segment of any tenant. Throws `internal`, naming the file, when its index or footer is damaged. */
export function describeSegment(reader: SyncRangeReader): SegmentDescription {
  const index = openIndex(reader);
  const segment = openSegment(reader, index, index.image);
  const end = readEnd(reader);
  const footer = readFooter(end.footerBytes);
  const columns = footer.leaves.map(({ path }, c) => {
    const chunks = footer.rowGroups.map((group) => group.chunks[c]!);
    const name = path.filter((part) => part !== "key_value").join(".");
    return {
      name,
      storedBytes: sumOf(chunks, ({ storedBytes }) => storedBytes),
      rawBytes: sumOf(chunks, ({ rawBytes }) => rawBytes),
    };
  });
  const { rowCount: rows, lineBytes, blockCount, groupBlocks, streams, id, tenant } = index;
  const { baseNs, minNs, maxNs, sizeBytes } = segment;
  return {
    ...{ id, tenant, baseNs, minNs, maxNs, rows, lineBytes, sizeBytes },
    ...{ rowGroups: groupBlocks.length, blocks: blockCount, streams: streams.count },
    ...partsOf(reader, index, { ...end, footer }, columns),
    columns,
    digests: digestsOf(segment),
    levels: levelsOf(segment),
    rowSets: rowSetsOf(index),
    fields: fieldsOf(segment, index),
    segment,
  };
}

function partsOf(
  reader: SyncRangeReader,
  index: SegmentIndex,
  { trailer, footerBytes, footer }: ReturnType<typeof readEnd> & { readonly footer: ReadFooter },
  columns: readonly PartSize[],
): Pick<SegmentDescription, "parts" | "sections" | "filters"> {
  const stored = reader.read(trailer.indexOffset, trailer.indexBytes);
  const rawBytes = zstdContentBytes(stored);
  if (rawBytes === undefined) throw internal(`segment ${reader.name} has an index of no size`);
  const names = new Map<number, string>(Object.entries(section).map(([name, id]) => [id, name]));
  const sizes = new SectionReader(zstd.decompress(stored, rawBytes)).sizes();
  const sections = Array.from(sizes, ([id, { count, bytes }]) => ({
    ...{ name: names.get(id) ?? `section ${id}`, values: count, bytes },
  }));
  const groups = index.filters()?.groups;
  const filterBytes = sumOf(groups ?? [], groupBytes);
  const pageBytes = sumOf(columns, ({ storedBytes }) => storedBytes);
  const chunks = footer.rowGroups.flatMap((group) => group.chunks);
  const bloomBytes = sumOf(chunks, ({ bloom }) => bloom?.length ?? 0);
  const known = pageBytes + bloomBytes + filterBytes + stored.byteLength + footerBytes.length;
  const asStored = (name: string, bytes: number) => ({ name, storedBytes: bytes, rawBytes: bytes });
  const bytesOf = (domain: number) =>
    sumOf(groups?.filter((group) => group.domain === domain) ?? [], groupBytes);
  return {
    parts: [
      { name: "pages", storedBytes: pageBytes, rawBytes: sumOf(columns, (one) => one.rawBytes) },
      asStored("bloom filters of columns", bloomBytes),
      asStored("filters", filterBytes),
      { name: "index", storedBytes: stored.byteLength, rawBytes },
      asStored("footer", footerBytes.length),
      asStored("page indexes and frame", reader.sizeBytes - known),
    ],
    sections,
    filters:
      groups === undefined
        ? undefined
        : {
            groups: groups.length,
            lines: bytesOf(filterDomains.lines),
            metadata: bytesOf(filterDomains.metadata),
          },
  };
}

function digestsOf(segment: Segment): SegmentDescription["digests"] {
  let streams = 0;
  let minutes = 0;
  for (let stream = 0; stream < segment.streamCount; stream++) {
    const digests = segment.digests(stream);
    if (digests === undefined) continue;
    streams++;
    minutes += digests.minutes.length;
  }
  return { streams, minutes };
}

function fieldsOf(segment: Segment, index: SegmentIndex): SegmentDescription["fields"] {
  let blocks = 0;
  let irregularRows = 0;
  for (let block = 0; block < segment.blockCount; block++) {
    const fields = segment.facts(block)?.fields;
    if (fields === undefined) continue;
    blocks++;
    irregularRows += fields.irregular.count;
  }
  return { columns: index.fieldNames().length, blocks, irregularRows };
}

function rowSetsOf(index: SegmentIndex): SegmentDescription["rowSets"] {
  const facts = index.facts();
  const texts = facts?.texts.map((text, i) => [Buffer.from(text).toString(), facts.rowCount(i)]);
  return Object.fromEntries(texts ?? []);
}

function levelsOf(segment: Segment): SegmentDescription["levels"] {
  const rows: Record<string, number> = Object.create(null);
  let countedRuns = 0;
  for (let block = 0; block < segment.blockCount; block++) {
    for (let run = 0; run < segment.runs(block).count; run++) {
      const counts = segment.levels(block, run);
      if (counts === undefined) continue;
      countedRuns++;
      counts.levels.forEach((level, i) => {
        rows[level] = (rows[level] ?? 0) + counts.rows[i]!;
      });
    }
  }
  return { countedRuns, rows };
}
