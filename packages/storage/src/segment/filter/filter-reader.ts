import { crc32 } from "node:zlib";
import {
  bitmapSlot,
  highCoefficient,
  lowCoefficient,
  type NeedleKey,
  needleKeys,
  ribbonWidth,
  startOf,
} from "@skald/kernels";
import { internal, type NeedleFormula, type NeedleText, paddingBytes } from "@skald/model";
import type { PageMemory } from "../../bytes.js";
import type { ObjectRange } from "../../object-store/object-store.js";
import type { SyncRangeReader } from "../range-reader.js";
import { wrongChecksum } from "../segment.js";
import {
  type FilterDomain,
  type FilterKind,
  type FilterTable,
  filterDomains,
  groupBytes,
} from "./filter-table.js";
import { valueKeys } from "./value-keys.js";

type Group = FilterTable["groups"][number];

/** A group is read, and verified, in pieces of this size once it was read as a whole. */
const pieceBytes = 1024;
/** Keys whose answers are remembered: those of some texts. */
const maxRememberedKeys = 64;

/**
 * Asks the filters of a segment, 64 blocks at once. The first read of a group takes all of it and verifies it against its
 * checksum; later ones take the pieces that hold a slot, and verify those against checksums that the first one made.
 */
export class FilterReader {
  readonly #reader: SyncRangeReader;
  readonly #table: FilterTable;
  /** The checksums of the pieces of groups that were read as a whole. */
  readonly #pieces = new Map<Group, Uint32Array>();
  readonly #memory = new SlotMemory();
  /** What groups answered, by key: a client asks for the lines and for their numbers, and asks again. */
  readonly #answers = new Map<number, Map<Group, BlockBits>>();

  constructor(reader: SyncRangeReader, table: FilterTable) {
    this.#reader = reader;
    this.#table = table;
  }

  /** Clears the flags of blocks that surely lack what the formula asks for. Throws `internal`. */
  refuse(formula: NeedleFormula, wanted: Uint8Array): void {
    this.#reader.expect?.(this.#unread(domainsOf(formula), wanted));
    this.#refuse(formula, wanted);
  }

  /** Where the groups of wanted blocks are that were not read yet. */
  #unread(domains: ReadonlySet<FilterDomain>, wanted: Uint8Array): ObjectRange[] {
    return this.#table.groups
      .filter((group) => domains.has(group.domain) && !this.#pieces.has(group))
      .filter(({ domain, from, blocks }) => {
        const of = this.#table.blocks[domain];
        for (let block = from; block < from + blocks; block++) {
          if (wanted[block] === 1 && !of[block]!.isEmpty) return true;
        }
        return false;
      })
      .map((group) => ({ offset: group.offset, length: groupBytes(group) }));
  }

  #refuse(formula: NeedleFormula, wanted: Uint8Array): void {
    switch (formula.kind) {
      case "all":
        for (const part of formula.of) this.#refuse(part, wanted);
        return;
      case "any":
        this.#refuseAny(formula.of, wanted);
        return;
      case "text":
        this.#ask(filterDomains.lines, needleKeys(formula.text), wanted, formula);
        return;
      case "value": {
        const keys = valueKeys(formula.name, formula.value);
        const plain = keys.map((key) => ({ key, isExtra: false }));
        this.#ask(filterDomains.metadata, plain, wanted, undefined);
      }
    }
  }

  #refuseAny(parts: readonly NeedleFormula[], wanted: Uint8Array): void {
    // Blocks that no part has let pass yet.
    const rest = wanted.slice();
    for (const part of parts) {
      if (!rest.includes(1)) return;
      const passed = rest.slice();
      this.#refuse(part, passed);
      for (let block = 0; block < rest.length; block++) if (passed[block] === 1) rest[block] = 0;
    }
    for (let block = 0; block < rest.length; block++) if (rest[block] === 1) wanted[block] = 0;
  }

  #ask(
    domain: FilterDomain,
    keys: readonly NeedleKey[],
    wanted: Uint8Array,
    text: NeedleText | undefined,
  ): void {
    if (keys.length === 0) return;
    const blocks = this.#table.blocks[domain];
    for (let block = 0; block < wanted.length; block++) {
      if (wanted[block] === 1 && blocks[block]!.isEmpty && !isExempt(blocks[block]!, text)) {
        wanted[block] = 0;
      }
    }
    for (const group of this.#table.groups) {
      if (group.domain === domain) this.#askGroup(group, keys, wanted, text);
    }
  }

  #askGroup(
    group: Group,
    keys: readonly NeedleKey[],
    wanted: Uint8Array,
    text: NeedleText | undefined,
  ): void {
    const { from, blocks: count } = group;
    const blocks = this.#table.blocks[group.domain];
    const asked = new BlockBits();
    let isPlain = true;
    for (let i = 0; i < count; i++) {
      if (wanted[from + i] !== 1) continue;
      const block = blocks[from + i]!;
      if (block.isEmpty || isExempt(block, text)) continue;
      asked.add(i);
      isPlain &&= block.threshold === 0 && !block.isSingle;
    }
    if (asked.isEmpty) return;
    const left = asked.copy();
    for (const { key, isExtra } of keys) {
      const lacking = this.#lacking(group, key).copy();
      for (let i = 0; !isPlain && i < count; i++) {
        const { threshold, isSingle } = blocks[from + i]!;
        const isLeftOut = threshold !== 0 && (key & 0xffff) >= threshold;
        if (isLeftOut || (isExtra && isSingle)) lacking.remove(i);
      }
      left.removeAll(lacking);
      if (left.isEmpty) break;
    }
    for (let i = 0; i < count; i++) {
      if (asked.has(i) && !left.has(i)) wanted[from + i] = 0;
    }
  }

  /** The blocks of a group that a key is surely not in. */
  #lacking(group: Group, key: number): BlockBits {
    let known = this.#answers.get(key);
    if (known === undefined) {
      known = new Map();
      if (this.#answers.size === maxRememberedKeys) {
        const [oldest] = this.#answers.keys();
        this.#answers.delete(oldest!);
      }
      this.#answers.set(key, known);
    }
    let lacking = known.get(group);
    if (lacking === undefined) {
      lacking = lackingIn[this.#table.kind](this.#rowsOf(group), group, key);
      known.set(group, lacking);
    }
    return lacking;
  }

  /** The bits of the slots of a group from one on, as many as a key has. */
  #rowsOf(group: Group): (start: number) => SlotRows {
    const { offset, blocks } = group;
    const pieces = this.#pieces.get(group);
    if (pieces === undefined) {
      const whole = this.#reader.read(offset, groupBytes(group));
      this.#verify(group, 0, crc32(whole), group.crc);
      this.#pieces.set(group, checksumsOf(whole));
      return (start) => ({ bytes: whole, bit: start * blocks });
    }
    const slots = this.#table.kind === "ribbon" ? ribbonWidth : 1;
    return (start) => {
      const first = Math.floor((start * blocks) / 8 / pieceBytes);
      const end = Math.ceil(((start + slots) * blocks) / 8 / pieceBytes);
      const from = first * pieceBytes;
      const to = Math.min(end * pieceBytes, groupBytes(group));
      const bytes = this.#reader.read(offset + from, to - from, this.#memory);
      for (let piece = first; piece < end; piece++) {
        const at = piece * pieceBytes;
        const found = crc32(bytes.subarray(at - from, at - from + pieceBytes));
        this.#verify(group, at, found, pieces[piece]!);
      }
      return { bytes, bit: start * blocks - from * 8 };
    };
  }

  #verify(group: Group, at: number, found: number, expected: number): void {
    if (found === expected) return;
    const { offset, from, blocks } = group;
    const part = `the filter of blocks ${from} to ${from + blocks - 1}, at byte ${offset + at},`;
    throw internal(wrongChecksum(part, expected, found));
  }
}

function checksumsOf(whole: Uint8Array): Uint32Array {
  const count = Math.ceil(whole.byteLength / pieceBytes);
  return Uint32Array.from({ length: count }, (_, piece) =>
    crc32(whole.subarray(piece * pieceBytes, (piece + 1) * pieceBytes)),
  );
}

/** The domains of the filters that a formula asks. */
function domainsOf(formula: NeedleFormula): Set<FilterDomain> {
  if (formula.kind === "text") return new Set([filterDomains.lines]);
  if (formula.kind === "value") return new Set([filterDomains.metadata]);
  return new Set(formula.of.flatMap((part) => [...domainsOf(part)]));
}

/** The bits of one slot stand at `bit` of the bytes, the next slot's behind them; padding behind the last byte. */
interface SlotRows {
  readonly bytes: Uint8Array;
  readonly bit: number;
}

/** Blocks of a group, a bit for each. */
class BlockBits {
  low = 0;
  high = 0;

  get isEmpty(): boolean {
    return this.low === 0 && this.high === 0;
  }

  has(i: number): boolean {
    return (((i < 32 ? this.low : this.high) >>> (i & 31)) & 1) === 1;
  }

  add(i: number): void {
    if (i < 32) this.low |= 1 << i;
    else this.high |= 1 << (i & 31);
  }

  remove(i: number): void {
    if (i < 32) this.low &= ~(1 << i);
    else this.high &= ~(1 << (i & 31));
  }

  removeAll({ low, high }: BlockBits): void {
    this.low &= ~low;
    this.high &= ~high;
  }

  /** Flips those that have a bit among the 64 from bit `place` of the bytes on. */
  flip(bytes: Uint8Array, place: number): void {
    const at = place >>> 3;
    const shift = place & 7;
    const low = wordAt(bytes, at);
    const high = wordAt(bytes, at + 4);
    if (shift === 0) {
      this.low ^= low;
      this.high ^= high;
    } else {
      this.low ^= (low >>> shift) | (high << (32 - shift));
      this.high ^= (high >>> shift) | (bytes[at + 8]! << (32 - shift));
    }
  }

  invert(): void {
    this.low = ~this.low;
    this.high = ~this.high;
  }

  copy(): BlockBits {
    const copy = new BlockBits();
    copy.low = this.low;
    copy.high = this.high;
    return copy;
  }
}

/** The blocks that a key is surely not in. */
type LackingBlocks = (rows: (start: number) => SlotRows, group: Group, key: number) => BlockBits;

/** Those where its slot has no bit. */
function lackingInBitmaps(
  rows: (start: number) => SlotRows,
  { slots }: Group,
  key: number,
): BlockBits {
  const { bytes, bit } = rows(bitmapSlot(key, slots));
  const lacking = new BlockBits();
  lacking.flip(bytes, bit);
  lacking.invert();
  return lacking;
}

/** Those where the bits at its slots have odd parity. */
function lackingInRibbons(
  rows: (start: number) => SlotRows,
  { blocks, slots }: Group,
  key: number,
): BlockBits {
  const { bytes, bit } = rows(startOf(key, slots));
  const odd = new BlockBits();
  for (let half = 0; half < 2; half++) {
    let coefficient = half === 0 ? lowCoefficient(key) : highCoefficient(key);
    while (coefficient !== 0) {
      const slot = half * 32 + 31 - Math.clz32(coefficient & -coefficient);
      coefficient &= coefficient - 1;
      odd.flip(bytes, bit + slot * blocks);
    }
  }
  return odd;
}

const lackingIn: Readonly<Record<FilterKind, LackingBlocks>> = {
  ribbon: lackingInRibbons,
  bitmap: lackingInBitmaps,
};

/** Little endian; bytes behind the end are 0. */
function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** A block whose lines have signs that fold to letters is not asked for letters that fold. */
function isExempt({ hasSigns }: { hasSigns: boolean }, text: NeedleText | undefined): boolean {
  return hasSigns && text?.folds === true;
}

/** Memory that every read of slots uses again. */
class SlotMemory implements PageMemory {
  #bytes = new Uint8Array(1024);

  take(bytes: number): Uint8Array {
    const size = bytes + paddingBytes;
    if (this.#bytes.length < size) this.#bytes = new Uint8Array(size);
    return this.#bytes;
  }
}
