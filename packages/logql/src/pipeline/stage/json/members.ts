import { blockEnd, jsonFault, skipBlanks, stringEnd, tokenEnd, tokenKind } from "./bytes.js";

/** The members of one object as ranges: keys and strings without their quotes, escapes as they stand. */
export class JsonMembers {
  count = 0;
  /** Keys read: one more than members when a value is malformed. */
  keyCount = 0;
  readonly keyStart: number[] = [];
  readonly keyEnd: number[] = [];
  readonly valueStart: number[] = [];
  readonly valueEnd: number[] = [];
  readonly isString: boolean[] = [];

  /** Reads the object that the range begins with; answers a jsonFault. */
  read(bytes: Uint8Array, from: number, end: number): number {
    this.count = 0;
    this.keyCount = 0;
    let at = skipBlanks(bytes, from, end);
    if (at >= end || bytes[at] !== 123) return jsonFault.object;
    at = skipBlanks(bytes, at + 1, end);
    if (at >= end) return jsonFault.json;
    while (bytes[at] !== 125) {
      if (bytes[at] !== 34) return jsonFault.object;
      const keyEnd = stringEnd(bytes, at + 1, end);
      if (keyEnd < 0) return jsonFault.json;
      this.keyStart[this.count] = at + 1;
      this.keyEnd[this.count] = keyEnd;
      this.keyCount++;
      at = skipBlanks(bytes, keyEnd + 1, end);
      if (at >= end || bytes[at] !== 58) return jsonFault.json;
      at = skipBlanks(bytes, at + 1, end);
      if (at >= end) return jsonFault.json;
      const fault = this.#value(bytes, at, end);
      if (fault !== jsonFault.none) return fault;
      const i = this.count++;
      at = skipBlanks(bytes, this.valueEnd[i]! + (this.isString[i] ? 1 : 0), end);
      if (at >= end) return jsonFault.array;
      if (bytes[at] === 125) break;
      if (bytes[at] !== 44) return jsonFault.object;
      at = skipBlanks(bytes, at + 1, end);
      if (at >= end) return jsonFault.array;
    }
    return jsonFault.none;
  }

  #value(bytes: Uint8Array, at: number, end: number): number {
    const i = this.count;
    const c = bytes[at]!;
    this.isString[i] = c === 34;
    this.valueStart[i] = c === 34 ? at + 1 : at;
    if (c === 34) {
      const close = stringEnd(bytes, at + 1, end);
      this.valueEnd[i] = close;
      return close < 0 ? jsonFault.string : jsonFault.none;
    }
    if (c === 123 || c === 91) {
      const close = blockEnd(bytes, at, end);
      this.valueEnd[i] = close;
      return close >= 0 ? jsonFault.none : c === 123 ? jsonFault.object : jsonFault.array;
    }
    const stop = tokenEnd(bytes, at, end);
    this.valueEnd[i] = stop;
    return tokenKind(bytes, at, stop) === "unknown" ? jsonFault.unknown : jsonFault.none;
  }
}
