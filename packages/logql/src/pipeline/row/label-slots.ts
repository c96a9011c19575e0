import { extractedName } from "./labels.js";

/** The label names of one run as small numbers (slots), so that a row can keep its labels in arrays. */
export class LabelSlots {
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [];
  /** Slot of `<name>_extracted`, or -1 when not asked for yet. */
  readonly #extracted: number[] = [];

  get count(): number {
    return this.#names.length;
  }

  slotOf(name: string): number {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const slot = this.#names.push(name) - 1;
    this.#slots.set(name, slot);
    this.#extracted.push(-1);
    return slot;
  }

  nameOf(slot: number): string {
    return this.#names[slot]!;
  }

  extractedSlotOf(slot: number): number {
    const known = this.#extracted[slot]!;
    if (known >= 0) return known;
    const extracted = this.slotOf(extractedName(this.nameOf(slot)));
    this.#extracted[slot] = extracted;
    return extracted;
  }
}
