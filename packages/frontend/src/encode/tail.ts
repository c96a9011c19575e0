import type { DroppedRow } from "@skald/contracts";
import type { LogResult, RowLabels } from "@skald/logql";
import { formatLabels, formatRfc3339, labelsToObject } from "@skald/model";
import { encodeCategories } from "./json.js";
import { jsonText, PieceWriter } from "./pieces.js";

/** Rows of a tail that go together, in the order in which they are sent. */
export interface TailItem {
  readonly rows?: LogResult;
  readonly order: readonly number[];
  readonly dropped: readonly DroppedRow[];
  /** Dropped rows besides those. */
  readonly unnamed?: number;
}

export interface TailForm {
  /** Keep index labels, structured metadata and parsed labels apart. */
  readonly categorize: boolean;
  /** As the legacy endpoint sends it. */
  readonly legacy: boolean;
}

/** Rows of one message at most. */
const maxRows = 100;

/** The messages of an item: rows that follow each other and have the same labels stand in one stream. */
export function* encodeTail(item: TailItem, form: TailForm): Generator<Uint8Array> {
  const { order, dropped } = item;
  if (order.length === 0 && dropped.length === 0) return;
  for (let from = 0; from === 0 || from < order.length; from += maxRows) {
    const rows = order.slice(from, from + maxRows);
    yield encodeMessage({ ...item, order: rows, dropped: from === 0 ? dropped : [] }, form);
  }
}

function encodeMessage(
  { rows, order, dropped, unnamed = 0 }: TailItem,
  form: TailForm,
): Uint8Array {
  const out = new PieceWriter();
  out.text('{"streams":[');
  if (rows !== undefined) writeStreams(out, rows, order, form);
  out.text("]");
  if (form.legacy) {
    const entries = dropped.map(({ timestampNs, labels }) => ({
      Timestamp: formatRfc3339(timestampNs),
      Labels: formatLabels(labels),
    }));
    out.text(`,"dropped_entries":${entries.length === 0 ? "null" : jsonText(entries)}`);
  } else if (dropped.length > 0) {
    const entries = dropped.map(({ timestampNs, labels }) => ({
      timestamp: String(timestampNs),
      labels: labelsToObject(labels),
    }));
    const total = dropped.length + unnamed;
    out.text(`,"dropped_entries":${jsonText(entries)},"dropped_total":${total}`);
  }
  if (form.categorize && !form.legacy) out.text(',"encodingFlags":["categorize-labels"]');
  out.text("}");
  const pieces = [...out.rest()];
  return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
}

function writeStreams(
  out: PieceWriter,
  rows: LogResult,
  order: readonly number[],
  form: TailForm,
): void {
  let last = "";
  for (const row of order) {
    const labels = rows.labels[rows.labelSet[row] as number] as RowLabels;
    const head = streamHead(labels, form);
    if (head !== last) out.text(`${last === "" ? "" : "]},"}${head}`);
    else out.text(",");
    last = head;
    const timestampNs = rows.timestamps[row] as bigint;
    out.text(form.legacy ? `{"ts":"${formatRfc3339(timestampNs)}","line":` : `["${timestampNs}",`);
    out.line(rows.lines, row);
    if (form.categorize && !form.legacy) out.text(`,${encodeCategories(labels)}`);
    out.text(form.legacy ? "}" : "]");
  }
  if (last !== "") out.text("]}");
}

const heads = new WeakMap<RowLabels, Map<string, string>>();

/** What a stream begins with; made once of each label set. */
function streamHead(labels: RowLabels, { categorize, legacy }: TailForm): string {
  const kind = legacy ? "legacy" : categorize ? "stream" : "all";
  const known = heads.get(labels) ?? new Map<string, string>();
  heads.set(labels, known);
  let head = known.get(kind);
  if (head !== undefined) return head;
  if (legacy) head = `{"labels":${jsonText(formatLabels(labels.labels))},"entries":[`;
  else {
    const shown = categorize ? labels.categories.stream : labels.labels;
    head = `{"stream":${jsonText(labelsToObject(shown))},"values":[`;
  }
  known.set(kind, head);
  return head;
}
