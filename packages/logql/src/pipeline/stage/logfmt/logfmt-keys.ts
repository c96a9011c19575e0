import { fieldKind, scanLogfmtFields } from "@skald/kernels";
import { invalidArgument } from "@skald/model";
import type { Extraction, LogfmtStage } from "../../../syntax/ast.js";
import { sanitizeLabelName, stageErrors } from "../../row/labels.js";
import { labelState } from "../../row/row-labels.js";
import { BlockFields, canSearch, type FindFields } from "../fields/field-scan.js";
import { isWanted } from "../fields/field-sink.js";
import { demandsErrors, KeyTree } from "../fields/key-tree.js";
import type { PreparedStage, RowStage, RowState, StageContext } from "../row-state.js";
import { logfmtFault } from "./logfmt.js";
import { LogfmtReader } from "./logfmt-reader.js";

/**
 * `| logfmt a="x", b`: only these keys. The last value of a key wins, a key that is spelled like the label sets it too,
 * and a label that is nowhere gets an empty value.
 */
export function prepareLogfmtKeys(stage: LogfmtStage): PreparedStage {
  const extractions = stage.extractions.map(({ label, path }) => ({
    label,
    path: keyOf(path) ?? label,
  }));
  return (row, context) => compileLogfmtKeys({ ...stage, extractions }, row, context);
}

const keyToken = /^[ \t\n]*([A-Za-z_][A-Za-z0-9_]*|"[^"\]]*["\]]?)/;

/** The key that an expression names, bare or quoted; undefined for one that no key of a line has. */
function keyOf(path: string): string | undefined {
  const tokens: string[] = [];
  let rest = path;
  for (let m = keyToken.exec(rest); m !== null; m = keyToken.exec(rest)) {
    const token = m[1] as string;
    if (tokens.length > 0 && !token.startsWith('"')) {
      throw badKey(path, "syntax error: unexpected KEY, expecting $end or STRING");
    }
    tokens.push(token);
    rest = rest.slice(m[0].length);
  }
  const [char] = rest.replace(/^[ \t\n]+/, "");
  if (char !== undefined) throw badKey(path, `unexpected char ${char}`);
  const [first] = tokens;
  if (first === undefined) {
    throw badKey(path, "syntax error: unexpected $end, expecting STRING or KEY");
  }
  const key = first.replace(/^"|["\]]$/g, "");
  return tokens.length === 1 && key === sanitizeLabelName(key) ? key : undefined;
}

function badKey(path: string, reason: string): Error {
  return invalidArgument(`cannot parse expression [${path}]: ${reason}`);
}

function compileLogfmtKeys(
  { strict, extractions }: LogfmtStage,
  row: RowState,
  context: StageContext,
): RowStage {
  const { labels } = row;
  const { demand } = context;
  const wanted = extractions.filter(({ label }) => isWanted(demand, label));
  if (wanted.length === 0 && !(strict && demandsErrors(demand))) return () => true;
  const parser = new LogfmtKeys(wanted, row, strict, context);
  const labelSlots = wanted.map(({ label }) => labels.names.slotOf(label));
  return () => {
    parser.run();
    const { bytes, start } = row.line;
    for (const slot of labelSlots) {
      if (!labels.find(slot)) labels.set(labelState.parsed, slot, bytes, start, start);
    }
    return true;
  };
}

class LogfmtKeys {
  readonly #row: RowState;
  readonly #reader: LogfmtReader;
  readonly #strict: boolean;
  readonly #keys: KeyTree;
  /** By slot of a key: the labels that it sets. */
  readonly #targets: number[][] = [];
  /** Labels set by this stage in this row: it may replace them. */
  readonly #own = new Set<number>();
  /** Slots of the keys that are searched in whole blocks. */
  readonly #slots: readonly number[];
  readonly #fields: BlockFields | undefined;

  constructor(
    wanted: readonly Extraction[],
    row: RowState,
    strict: boolean,
    context: StageContext,
  ) {
    const { names, arena } = row.labels;
    this.#row = row;
    this.#reader = new LogfmtReader(arena);
    this.#strict = strict;
    for (const { label, path } of wanted) {
      for (const key of new Set([sanitizeLabelName(path), label])) {
        const slot = names.slotOf(key);
        this.#targets[slot] = [...(this.#targets[slot] ?? []), names.slotOf(label)];
      }
    }
    const keys = new Set(wanted.flatMap(({ label, path }) => [sanitizeLabelName(path), label]));
    this.#keys = new KeyTree(names, keys);
    this.#slots = [...keys].map((key) => names.slotOf(key));
    if (!canSearch([...keys], context)) return;
    const fields = new BlockFields([...keys], this.#find);
    row.beforeRows(({ lines, selection }) => fields.search(lines, selection, wholeLines));
    this.#fields = fields;
  }

  readonly #find: FindFields = ({ bytes, offsets }, selection, names, found, { enough }) => {
    const options = { strict: this.#strict, keepEmpty: true, lastWins: true, enough };
    scanLogfmtFields(bytes, offsets, selection, names, found, options);
  };

  run(): void {
    this.#own.clear();
    if (this.#fields?.begin(this.#row.position)) this.#takeFound(this.#fields);
    else this.#readLine();
  }

  #takeFound(fields: BlockFields): void {
    const { bytes } = this.#row.line;
    const reader = this.#reader;
    const { start, length, kind, capacity } = fields.columns;
    for (let i = 0; i < fields.count; i++) {
      const field = fields.order[i]!;
      const place = field * capacity + this.#row.position;
      const from = start[place]!;
      const to = from + length[place]!;
      const targets = this.#targets[this.#slots[field]!]!;
      if (kind[place] === fieldKind.plain) {
        this.#extract(targets, bytes, from, to);
      } else {
        reader.decode(bytes, from, to);
        this.#extract(targets, reader.valueBytes, reader.valueStart, reader.valueEnd);
      }
    }
  }

  #readLine(): void {
    const { labels, line } = this.#row;
    const { bytes, start, end } = line;
    const reader = this.#reader;
    this.#keys.beginLine();
    reader.begin(bytes, start, end);
    for (let got = reader.next(); got !== "end"; got = reader.next()) {
      if (got === "fault") {
        if (!this.#strict) continue;
        labels.fail(stageErrors.logfmt, logfmtFault(reader, start));
        return;
      }
      const node = this.#keys.child(0, bytes, reader.keyStart, reader.keyEnd);
      const targets = this.#targets[this.#keys.slot[node]!];
      if (targets === undefined) continue;
      this.#extract(targets, reader.valueBytes, reader.valueStart, reader.valueEnd);
    }
  }

  #extract(targets: readonly number[], bytes: Uint8Array, from: number, to: number): void {
    const { labels } = this.#row;
    for (const slot of targets) {
      const target = labels.parsedSlot(slot);
      if (labels.isExtracted(target) && !this.#own.has(target)) continue;
      this.#own.add(target);
      labels.extract(target, bytes, from, to);
    }
  }
}

const wholeLines = { complete: true, enough: 0 };
