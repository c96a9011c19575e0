import { grown } from "@skald/kernels";
import { fnv1aBytes } from "@skald/model";
import { HashIndex } from "../../intern/hash-index.js";
import { bytesEqual, readText } from "../../row/bytes.js";
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
  /** Of the nodes but the root: entry e is node e + 1. */
  #index = new HashIndex();
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
      bytesEqual(bytes, start, end, this.#keys[guess]!)
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
    const hash = fnv1aBytes(bytes, start, end, Math.imul(parent + 1, 0x9e3779b1));
    let node = this.#index.first(hash ^ (hash >>> 15)) + 1;
    while (node > 0) {
      if (this.#parent[node] === parent && bytesEqual(bytes, start, end, this.#keys[node]!))
        return node;
      node = this.#index.next() + 1;
    }
    this.#index.add();
    const key = bytes.slice(start, end);
    return this.#add(parent, readText(key, 0, key.length), key);
  }

  #add(parent: number, key: string, bytes: Uint8Array): number {
    const node = this.#keys.push(bytes) - 1;
    this.#parent.push(parent);
    this.#follower.push(0);
    if (node >= this.slot.length) this.#grow();
    const prefix = parent <= 0 ? "" : this.#labels[parent]!;
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
    const length = this.slot.length * 2;
    this.slot = grown(this.slot, length);
    this.wants = grown(this.wants, length);
  }

  /** Lines with ever new keys must not fill the memory. */
  #forget(): void {
    this.#keys.length = 1;
    this.#parent.length = 1;
    this.#labels.length = 1;
    this.#follower.length = 1;
    this.#follower[0] = 0;
    this.#index = new HashIndex();
  }
}

/** True when errors of the stage are looked at later. */
export function demandsErrors(demand: Demand): boolean {
  return demand === "all" || demand.has(errorLabel) || demand.has(errorDetailsLabel);
}
