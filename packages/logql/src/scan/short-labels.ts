import type { Labels } from "@skald/model";

/** The name of the label that stands for the labels that nobody reads; no label set has it. */
export const restLabel = "";

/** What becomes of label sets that have the same list of names, as sets that are made one after the other do. */
interface Shape {
  readonly of: readonly string[];
  readonly names: readonly string[];
  /** Places of labels that are read, and of the others. */
  readonly read: readonly number[];
  readonly rest: readonly number[];
}

/**
 * Shortens label sets to the labels of `read`, with a hash in place of all others, so that different sets stay different. A set
 * that was shortened before stays as it is.
 */
export function shortenTo(read: readonly string[]): (all: Labels) => Labels {
  const isRead = new Set(read);
  let shape: Shape = { of: [], names: [], read: [], rest: [] };
  const shapeOf = (names: readonly string[]): Shape => {
    const places = names.map((_, place) => place);
    const kept = places.filter((place) => isRead.has(names[place]!));
    const rest = places.filter((place) => !isRead.has(names[place]!));
    return {
      of: names,
      names: [restLabel, ...kept.map((place) => names[place]!)],
      read: kept,
      rest,
    };
  };
  return (all) => {
    const { names, values } = all;
    if (names !== shape.of) shape = shapeOf(names);
    if (shape.rest.length === 0 || names[0] === restLabel) return all;
    const short = [hashOf(all, shape.rest)];
    for (const place of shape.read) short.push(values[place]!);
    return { names: shape.names, values: short };
  };
}

/**
 * 64 bits of some labels: of a million sets two are the same once in 40 million tries. Two hashes of 32 bits by multiplication,
 * one mixed by a shift, one by a rotation; the constants are those of MurmurHash3 and of Knuth's multiplicative hash.
 */
function hashOf({ names, values }: Labels, places: readonly number[]): string {
  let one = places.length;
  let other = ~one;
  for (const place of places) {
    for (const text of [names[place]!, values[place]!]) {
      // The length tells a text from the one behind it.
      for (let at = -1; at < text.length; at++) {
        const code = at < 0 ? text.length : text.charCodeAt(at);
        one = Math.imul(one ^ code, 0x9e3779b1);
        one ^= one >>> 15;
        other = Math.imul(other + code, 0x85ebca6b);
        other = (other << 13) | (other >>> 19);
      }
    }
  }
  return `${(one >>> 0).toString(36)}.${(other >>> 0).toString(36)}`;
}
