import type { RawPush } from "@skald/kernels";
import { detectedLevelName, levelInMetadata, levelNames } from "@skald/model";
import type { MetadataNames } from "@skald/push";
import type { PushLimits } from "../settings/limits.js";
import { levelCodeOf, severityCodeOf } from "../validate/level-code.js";
import type { PushStream } from "../validate/stream-rules.js";
import type { ForeignLevels } from "./unmapped-levels.js";

/** Ranks of metadata names, best first; a name that says nothing about the level has `noRank`. */
const detectedRank = 0;
const firstFieldRank = 1;
const severityNumber = "severity_number";
const noRank = 0xffff;
/** Position of the first field with one of two names, or -1. */
function firstOf(fields: readonly string[], name: string, raw: string): number {
  return fields.findIndex((field) => field === raw || field === name);
}

/** Longest text that can be a level of the table. */
const maxLevelBytes = 16;
const maxMemo = 1024;

/** Reads levels from structured metadata. */
export class MetadataLevels {
  /** Whether any metadata name of the push can decide about a level. */
  readonly decides: boolean;
  readonly #push: RawPush;
  readonly #names: MetadataNames;
  readonly #discovers: boolean;
  readonly #rankOf: Uint16Array;
  readonly #severityRank: number;
  #memo: Map<string, number> | undefined;

  constructor(push: RawPush, names: MetadataNames, limits: PushLimits) {
    this.#push = push;
    this.#names = names;
    this.#discovers = limits.discover_log_levels && limits.allow_structured_metadata;
    const fields = this.#discovers ? limits.log_level_fields : [];
    this.#severityRank = firstFieldRank + fields.length;
    const rankOf = new Uint16Array(names.names.length);
    let decides = false;
    for (let i = 0; i < rankOf.length; i++) {
      rankOf[i] = this.#rank(names.names[i]!, names.raw[i]!, fields);
      if (rankOf[i] !== noRank) decides = true;
    }
    this.#rankOf = rankOf;
    this.decides = decides;
  }

  /** Sets the level of each row that has one in its metadata, or in the labels of its stream. */
  readRows(
    from: number,
    to: number,
    stream: PushStream,
    levels: Uint8Array,
    foreign: ForeignLevels,
  ): void {
    for (let row = from; row < to; row++) {
      const pair = this.#bestPair(row);
      const rank = pair < 0 ? noRank : this.#rankOf[this.#names.ofPair[pair]!]!;
      if (rank === detectedRank) {
        levels[row] = this.#discovers ? this.#codeOf(pair) : this.#plainCodeOf(pair);
      } else if (stream.level !== 0) {
        levels[row] = stream.level;
        if (stream.level === levelInMetadata) foreign.setText(row, stream.levelText);
      } else if (rank === this.#severityRank) {
        levels[row] = severityCodeOf(this.#shortText(pair) ?? "");
      } else if (rank !== noRank) {
        const code = this.#codeOf(pair);
        levels[row] = code;
        if (code === levelInMetadata) foreign.setPair(row, pair);
      }
    }
  }

  #rank(name: string, raw: string, fields: readonly string[]): number {
    if (name === detectedLevelName) return detectedRank;
    if (!this.#discovers) return noRank;
    const at = raw === name ? fields.indexOf(name) : firstOf(fields, name, raw);
    if (at >= 0) return firstFieldRank + at;
    return name === severityNumber ? this.#severityRank : noRank;
  }

  /** The pair of a row that decides: lowest rank, of equal ranks the last one; -1 for none. */
  #bestPair(row: number): number {
    const { metaStart, metaValueLength } = this.#push;
    let best = -1;
    let bestRank = noRank - 1;
    const end = metaStart[row + 1]!;
    for (let pair = metaStart[row]!; pair < end; pair++) {
      const rank = this.#rankOf[this.#names.ofPair[pair]!]!;
      if (rank > bestRank || metaValueLength[pair] === 0) continue;
      best = pair;
      bestRank = rank;
    }
    return best;
  }

  #codeOf(pair: number): number {
    const text = this.#shortText(pair);
    if (text === undefined) return levelInMetadata;
    const known = this.#memo?.get(text);
    if (known !== undefined) return known;
    const code = levelCodeOf(text);
    this.#memo ??= new Map();
    if (this.#memo.size < maxMemo) this.#memo.set(text, code);
    return code;
  }

  /** Without discovery nothing is normalised: only the exact names of the table have a code. */
  #plainCodeOf(pair: number): number {
    const code = levelNames.indexOf((this.#shortText(pair) ?? "") as (typeof levelNames)[number]);
    return code > 0 ? code : levelInMetadata;
  }

  /** The value of a pair when it is short enough to be a level. */
  #shortText(pair: number): string | undefined {
    const start = this.#push.metaValueStart[pair]!;
    const length = this.#push.metaValueLength[pair]!;
    if (length > maxLevelBytes) return undefined;
    let text = "";
    for (let i = start; i < start + length; i++) text += String.fromCharCode(this.#push.bytes[i]!);
    return text;
  }
}
