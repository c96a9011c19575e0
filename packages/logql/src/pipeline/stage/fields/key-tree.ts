import { readText } from "../../row/bytes.js";
import type { LabelSlots } from "../../row/label-slots.js";
import {
  errorDetailsLabel,
  errorLabel,
  extractedName,
  sanitizeLabelName,
} from "../../row/labels.js";
import type { Demand } from "../row-state.js";

const nodesMax = 65_536;

/** Bits of `wants`. */
export const keyWants = {
  /** The value, when it keeps its name. */
  plain: 1,
  /** The value, when its name is taken and it becomes `<name>_extracted`. */
  extracted: 2,
  /** Members of the value. */
  members: 4,
} as const;

/**
 * Keys of parsed lines, nested ones below their parents, and what each means: learnt once, then found by bytes. Keys
 * come in much the same order in line after line, so the key that followed last time is tried first.
 */
export class KeyTree {
  /** Slot of the label, or -1; by node. */
  slot: Int32Array = new Int32Array(256);
  wants: Uint8Array = new Uint8Array(256);
  readonly #names: LabelSlots;
  readonly #demand: Demand;
  readonly #labels: string[] = [];
  readonly #keys: Uint8Array[] = [];
  readonly #parent: number[] = [];
  readonly #follower: number[] = [];
  #table = new Int32Array(1024);
  #previous = 0;

  constructor(names: LabelSlots, demand: Demand) {
    this.#names = names;
    this.#demand = demand;
    this.#add(-1, "", new Uint8Array(0));
  }

  /** Call before the first key of a line. */
  beginLine(): void {
    this.#previous = 0;
    if (this.#keys.length > nodesMax) this.#forget();
  }

  /** The node of a key (raw bytes without escapes) below a parent; the root is 0. */
  child(parent: number, bytes: Uint8Array, start: number, end: number): number {
    const guess = this.#follower[this.#previous]!;
    if (
      guess > 0 &&
      this.#parent[guess] === parent &&
      isKey(this.#keys[guess]!, bytes, start, end)
    ) {
      this.#previous = guess;
      return guess;
    }
    const node = this.#lookup(parent, bytes, start, end);
    this.#follower[this.#previous] = node;
    this.#previous = node;
    return node;
  }

  #lookup(parent: number, bytes: Uint8Array, start: number, end: number): number {
    let hash = Math.imul(parent + 1, 0x9e3779b1);
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
    const mask = this.#table.length - 1;
    let at = (hash ^ (hash >>> 15)) & mask;
    while (true) {
      const node = this.#table[at]!;
      if (node === 0) break;
      if (this.#parent[node] === parent && isKey(this.#keys[node]!, bytes, start, end)) return node;
      at = (at + 1) & mask;
    }
    const key = bytes.slice(start, end);
    const node = this.#add(parent, readText(key, 0, key.length), key);
    this.#table[at] = node;
    if (this.#keys.length * 2 > this.#table.length) this.#rehash();
    return node;
  }

  #add(parent: number, key: string, bytes: Uint8Array): number {
    const node = this.#keys.push(bytes) - 1;
    this.#parent.push(parent);
    this.#follower.push(0);
    if (node >= this.slot.length) this.#grow();
    const prefix = parent <= 0 ? "" : (this.#labels[parent] as string);
    const label =
      parent < 0
        ? ""
        : prefix === ""
          ? sanitizeLabelName(key)
          : `${prefix}_${sanitizeLabelName(key, true)}`;
    this.#labels.push(label);
    const wants = this.#wantsOf(label);
    this.wants[node] = wants;
    const isLabel = label !== "" && (wants & (keyWants.plain | keyWants.extracted)) !== 0;
    this.slot[node] = isLabel ? this.#names.slotOf(label) : -1;
    return node;
  }

  #wantsOf(label: string): number {
    const demand = this.#demand;
    if (demand === "all") return keyWants.plain | keyWants.extracted | keyWants.members;
    // a fault anywhere in the line counts for who asks for errors
    let wants = demandsErrors(demand) ? keyWants.members : 0;
    if (demand.has(label)) wants |= keyWants.plain;
    if (demand.has(extractedName(label))) wants |= keyWants.extracted;
    for (const name of demand) {
      if (label === "" || name.startsWith(`${label}_`)) wants |= keyWants.members;
    }
    return wants;
  }

  #grow(): void {
    const slot = new Int32Array(this.slot.length * 2);
    slot.set(this.slot);
    this.slot = slot;
    const wants = new Uint8Array(slot.length);
    wants.set(this.wants);
    this.wants = wants;
  }

  #rehash(): void {
    this.#table = new Int32Array(this.#table.length * 2);
    const mask = this.#table.length - 1;
    for (let node = 1; node < this.#keys.length; node++) {
      let hash = Math.imul(this.#parent[node]! + 1, 0x9e3779b1);
      for (const byte of this.#keys[node]!) hash = Math.imul(hash ^ byte, 0x01000193);
      let at = (hash ^ (hash >>> 15)) & mask;
      while (this.#table[at] !== 0) at = (at + 1) & mask;
      this.#table[at] = node;
    }
  }

  /** Lines with ever new keys must not fill the memory. */
  #forget(): void {
    this.#keys.length = 1;
    this.#parent.length = 1;
    this.#labels.length = 1;
    this.#follower.length = 1;
    this.#follower[0] = 0;
    this.#table = new Int32Array(1024);
  }
}

/** True when errors of the stage are looked at later. */
export function demandsErrors(demand: Demand): boolean {
  return demand === "all" || demand.has(errorLabel) || demand.has(errorDetailsLabel);
}

function isKey(key: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  const { length } = key;
  if (length !== end - start) return false;
  for (let i = 0; i < length; i++) if (key[i] !== bytes[start + i]) return false;
  return true;
}
