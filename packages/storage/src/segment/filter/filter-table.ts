import { internal } from "@skald/model";
import { type SectionReader, type SectionWriter, section } from "../index-sections.js";

/** Kinds of block filters that section 26 may name. A reader takes one that it does not know for none. */
const filterKinds = { none: 0, ribbon: 1, bitmap: 2 } as const;
/** The form that filters are written in: bitmaps are made in a fraction of the time, ribbons are smaller. */
export type FilterKind = Exclude<keyof typeof filterKinds, "none">;

/** What the filters of a group are about. */
export const filterDomains = { lines: 0, metadata: 1 } as const;
export type FilterDomain = (typeof filterDomains)[keyof typeof filterDomains];

/** Most blocks of one group: they are asked together, a bit for each. */
export const maxGroupBlocks = 64;

/** Filters of blocks that follow each other, of equal size: bit `slot * blocks + i` is that of block `from + i`. */
interface FilterGroup {
  readonly domain: FilterDomain;
  readonly from: number;
  readonly blocks: number;
  readonly slots: number;
}

/** The filters of a group as they are written. */
export interface WrittenGroup extends FilterGroup {
  readonly bits: Uint8Array;
  readonly crc: number;
}

/** How the keys of one block were chosen. */
export interface FilterBlock {
  /** Only keys whose lower 16 bits are below this are in the filter; 0: all are. */
  readonly threshold: number;
  /** The additional keys of plain windows are not in the filter. */
  readonly isSingle: boolean;
  /** Lines have U+212A or U+017F, which fold to k and s. */
  readonly hasSigns: boolean;
  /** There is no key at all. */
  readonly isEmpty: boolean;
}

/** What the index says of the filters of a file. */
export interface FilterTable {
  readonly kind: FilterKind;
  /** With the place of each in the file. */
  readonly groups: readonly (FilterGroup & { readonly offset: number; readonly crc: number })[];
  /** By domain and block. */
  readonly blocks: Readonly<Record<FilterDomain, readonly FilterBlock[]>>;
}

/** Bytes of the filters of a group. */
export function groupBytes({ slots, blocks }: Pick<FilterGroup, "slots" | "blocks">): number {
  return Math.ceil((slots * blocks) / 8);
}

const domains = Object.values(filterDomains);
const knownKinds: readonly FilterKind[] = ["ribbon", "bitmap"];
const groupNumbers = 4;
const single = 1 << 16;
const signs = 1 << 17;
const empty = 1 << 18;

/** Writes the sections of filters that begin at `offset` of the file and stand one behind the other. */
export function writeFilterTable(
  sections: SectionWriter,
  offset: number,
  {
    kind,
    groups,
    blocks,
  }: Omit<FilterTable, "groups"> & {
    readonly groups: readonly (FilterGroup & { readonly crc: number })[];
  },
): void {
  const bytes = groups.reduce((sum, group) => sum + groupBytes(group), 0);
  sections.numbers(section.filters, [filterKinds[kind], offset, bytes]);
  const numbers = groups.flatMap((group) => [group.domain, group.from, group.blocks, group.slots]);
  sections.numbers(section.filterGroups, numbers);
  const crcs = groups.map(({ crc }) => crc);
  sections.words(section.filterCrcs, crcs);
  for (const domain of domains)
    sections.numbers(section.filterBlocks, blocks[domain].map(blockNumber), domain);
}

/** Undefined when the file has no filters of a known kind. Throws `internal`. */
export function readFilterTable(
  sections: SectionReader,
  blockCount: number,
  end: number,
): FilterTable | undefined {
  if (!sections.has(section.filters)) return undefined;
  const [number, offset = 0, bytes = 0] = sections.numbers(section.filters);
  const kind = knownKinds.find((name) => filterKinds[name] === number);
  if (kind === undefined) return undefined;
  const numbers = sections.numbers(section.filterGroups);
  const crcs = sections.words(section.filterCrcs);
  if (numbers.length !== crcs.length * groupNumbers) throw internal("index has a wrong filter");
  const groups: FilterTable["groups"][number][] = [];
  let at = offset;
  for (const [i, crc] of crcs.entries()) {
    const [domain, from = 0, blocks = 0, slots = 0] = numbers.subarray(i * groupNumbers);
    const group = { domain: domain as FilterDomain, from, blocks, slots, offset: at, crc };
    if (blocks > maxGroupBlocks || from + blocks > blockCount || slots < maxGroupBlocks) {
      throw internal("index has a filter of blocks that it does not have");
    }
    groups.push(group);
    at += groupBytes(group);
  }
  if (at !== offset + bytes || at > end) throw internal("index has a filter outside the file");
  const blocks = (domain: FilterDomain) =>
    Array.from(sections.numbers(section.filterBlocks, domain), blockOf);
  const table = { kind, groups, blocks: { 0: blocks(0), 1: blocks(1) } };
  if (domains.some((domain) => table.blocks[domain].length !== blockCount)) {
    throw internal("index has filters of other blocks");
  }
  return table;
}

function blockNumber({ threshold, isSingle, hasSigns, isEmpty }: FilterBlock): number {
  return threshold | (isSingle ? single : 0) | (hasSigns ? signs : 0) | (isEmpty ? empty : 0);
}

function blockOf(value: number): FilterBlock {
  return {
    threshold: value & 0xffff,
    isSingle: (value & single) !== 0,
    hasSigns: (value & signs) !== 0,
    isEmpty: (value & empty) !== 0,
  };
}
