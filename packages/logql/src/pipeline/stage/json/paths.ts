import type { JsonStage } from "../../../syntax/ast.js";
import { Arena, bytesEqual, encodeText } from "../../row/bytes.js";
import { stageErrors } from "../../row/labels.js";
import { labelState, type RowLabels } from "../../row/row-labels.js";
import { isWanted } from "../fields/field-sink.js";
import { demandsErrors } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { parseJsonPath } from "./path-syntax.js";
import { JsonReader, jsonFault, jsonFaultText, jsonValue } from "./reader.js";
import { decodeJsonString, emptyText, unescapeInto } from "./string.js";

/** One step of a path: a member name, or an index. */
type PathStep = { readonly bytes: Uint8Array } | number;

interface PathExtraction {
  readonly label: string;
  readonly path: readonly PathStep[];
}

/** `| json a="b.c[0]", d`: the values at these paths; one that leads nowhere or cannot be read gives an empty label. */
export function prepareJsonPaths(stage: JsonStage): PreparedStage {
  const extractions = stage.extractions.map(({ label, path }) => ({
    label,
    path: parseJsonPath(path).map((step) =>
      typeof step === "number" ? step : { bytes: encodeText(step) },
    ),
  }));
  return (row, context) => compileJsonPaths(extractions, row, context);
}

function compileJsonPaths(
  extractions: readonly PathExtraction[],
  row: RowState,
  { demand }: StageContext,
): RowStage {
  const { labels, line } = row;
  const asksForErrors = demandsErrors(demand);
  const wanted = extractions
    .filter(({ label }) => asksForErrors || isWanted(demand, label))
    .map(({ label, path }) => ({ slot: labels.names.slotOf(label), path }));
  if (wanted.length === 0) return () => true;
  const finder = new JsonFinder();
  return () => {
    const { bytes, start, end } = line;
    if (start === end) return true;
    const first = bytes[start];
    if (first !== 123 && first !== 91 && first !== 34) {
      labels.fail(stageErrors.json);
      return true;
    }
    for (const { slot, path } of wanted) {
      if (!finder.find(bytes, start, end, path)) continue;
      if (finder.fault === jsonFault.none) finder.extract(labels, slot);
      else labels.fail(stageErrors.json, jsonFaultText[finder.fault]!);
    }
    for (const { slot } of wanted) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}

/** Finds the value at a path; tolerant of what stands behind it. */
class JsonFinder {
  /** What is wrong with the value that was found last. */
  fault: number = jsonFault.none;
  readonly #reader = new JsonReader();
  readonly #arena = new Arena();
  readonly #text = emptyText();

  /** Of equal names the first that leads to a value counts. */
  find(bytes: Uint8Array, from: number, end: number, path: readonly PathStep[], step = 0): boolean {
    const reader = this.#reader;
    const head = path[step]!;
    const isIndex = typeof head === "number";
    let fault = reader.open(bytes, from, end, isIndex ? 91 : 123);
    for (let index = 0; fault === jsonFault.none; index++) {
      if ((isIndex ? reader.nextItem(93) : reader.nextKey()) !== jsonFault.none) return false;
      const { at } = reader;
      const isHit = isIndex ? index === head : this.#isKey(head.bytes);
      if (isHit && step + 1 < path.length) {
        if (this.find(bytes, at, end, path, step + 1)) return true;
        reader.resume(at, end);
      }
      fault = reader.readValue();
      if (isHit && step + 1 === path.length) {
        this.fault = fault;
        return true;
      }
    }
    return false;
  }

  /** Extracts what was found: null as an empty value, a string without its escapes, anything else as it stands. */
  extract(labels: RowLabels, slot: number): void {
    const target = labels.parsedSlot(slot);
    if (labels.isExtracted(target)) return;
    const { bytes, valueStart, valueEnd, kind, isPlain } = this.#reader;
    if (kind === jsonValue.string && !isPlain) {
      const text = this.#text;
      decodeJsonString(labels.arena, bytes, valueStart, valueEnd, text);
      labels.extract(target, text.bytes, text.start, text.end);
    } else {
      labels.extract(target, bytes, valueStart, kind === jsonValue.null ? valueStart : valueEnd);
    }
  }

  #isKey(key: Uint8Array): boolean {
    const { bytes, keyStart, keyEnd, keyEscaped } = this.#reader;
    if (!keyEscaped) return bytesEqual(bytes, keyStart, keyEnd, key);
    this.#arena.used = 0;
    const from = unescapeInto(this.#arena, bytes, keyStart, keyEnd);
    return from >= 0 && bytesEqual(this.#arena.bytes, from, this.#arena.used, key);
  }
}
