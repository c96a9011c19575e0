import type { RawPush } from "@skald/kernels";
import type { AcceptedStream } from "@skald/push";
import type { ReceivedAmount } from "../settings/metrics.js";
import { DroppedRows } from "./dropped-rows.js";
import { PushDays } from "./push-days.js";
import { Refusals } from "./refusals.js";
import { metadataBytesOf, type RowRules, refuseRow, rowRefusalText } from "./row-rules.js";
import type { PushStream } from "./stream-rules.js";

/** What validation leaves of a push, and what it measured on the way. */
export interface Validated {
  /** Streams with at least one row left. */
  readonly streams: readonly AcceptedStream[];
  /** Row ordinals that were refused, ascending. */
  readonly dropped: Uint32Array;
  readonly refusals: Refusals;
  /** Rows that fell to a block of ingestion, which counts only when nothing else was wrong. */
  readonly blocked: Refusals;
  /** All rows, refused ones included, but those of internal streams, which are counted by themselves. */
  readonly received: ReceivedAmount;
  readonly receivedInternal: ReceivedAmount;
  /** Lines and metadata of the rows that are left. */
  readonly acceptedBytes: number;
}

export interface ValidateInput {
  readonly push: RawPush;
  /** Aligned with the streams of the push. */
  readonly streams: readonly PushStream[];
  readonly rules: RowRules;
  /** Given when ingestion is blocked: refuses every row that the label rules let pass. */
  readonly blockedText?: string;
}

/** Rows that are looked at between two points where other work may go first. */
const rowsPerStep = 4096;
/** What a stream takes beside its rows. */
const rowsPerStream = 8;

/** Holds streams and rows against the rules; yields where it may be interrupted. */
export function* validate(input: ValidateInput): Generator<void, Validated> {
  const validation = new Validation(input);
  const { streamCount, streamRowStart } = input.push;
  let left = rowsPerStep;
  for (let ordinal = 0; ordinal < streamCount; ordinal++) {
    const to = streamRowStart[ordinal + 1]!;
    left -= rowsPerStream;
    for (let from = streamRowStart[ordinal]!; from < to; ) {
      const end = Math.min(to, from + Math.max(1, left));
      validation.readRows(ordinal, from, end);
      left -= end - from;
      from = end;
      if (left > 0) continue;
      yield;
      left = rowsPerStep;
    }
    validation.closeStream(ordinal);
  }
  return validation.finish();
}

class Validation {
  readonly #push: RawPush;
  readonly #streams: readonly PushStream[];
  readonly #rules: RowRules;
  readonly #blockedText: string | undefined;
  readonly #days: PushDays;
  readonly #dropped = new DroppedRows();
  readonly #refusals = new Refusals();
  readonly #blocked = new Refusals();
  readonly #accepted: AcceptedStream[] = [];
  readonly #received: ReceivedAmount = { rows: 0, lineBytes: 0, metadataBytes: 0 };
  readonly #receivedInternal: ReceivedAmount = { rows: 0, lineBytes: 0, metadataBytes: 0 };
  #acceptedBytes = 0;
  /** Of the stream being read. */
  #keptRows = 0;
  #refusedEntries = 0;
  #refusedBytes = 0;

  constructor(input: ValidateInput) {
    this.#push = input.push;
    this.#streams = input.streams;
    this.#rules = input.rules;
    this.#days = new PushDays(input.rules.maxDays);
    this.#blockedText = input.blockedText;
  }

  readRows(ordinal: number, from: number, to: number): void {
    const stream = this.#streams[ordinal]!;
    const checked = stream.refusal === undefined && this.#blockedText === undefined;
    if (checked) this.#checkRows(stream, from, to);
    else this.#refuseRows(stream, from, to);
  }

  /** Books a stream when its last row was read; one without rows leaves no trace. */
  closeStream(ordinal: number): void {
    const { labels, text, refusal } = this.#streams[ordinal]!;
    if (this.#keptRows > 0) this.#accepted.push({ ordinal, labels, text });
    if (this.#refusedEntries > 0) {
      const reason = refusal?.reason ?? "blocked_ingestion";
      const to = refusal === undefined ? this.#blocked : this.#refusals;
      to.add(reason, this.#refusedEntries, this.#refusedBytes, () => {
        return refusal?.message ?? this.#blockedText ?? "";
      });
    }
    this.#keptRows = 0;
    this.#refusedEntries = 0;
    this.#refusedBytes = 0;
  }

  finish(): Validated {
    return {
      streams: this.#accepted,
      dropped: this.#dropped.finish(),
      refusals: this.#refusals,
      blocked: this.#blocked,
      received: this.#received,
      receivedInternal: this.#receivedInternal,
      acceptedBytes: this.#acceptedBytes,
    };
  }

  #checkRows(stream: PushStream, from: number, to: number): void {
    const push = this.#push;
    const rules = this.#rules;
    const hasPairs = push.pairCount > 0;
    let lineBytes = 0;
    let metadataBytes = 0;
    let refusedBytes = 0;
    for (let row = from; row < to; row++) {
      const rowMetadata = hasPairs ? metadataBytesOf(push, row) : 0;
      const rowLine = push.lineLength[row]!;
      lineBytes += rowLine;
      metadataBytes += rowMetadata;
      const reason = refuseRow(push, row, rowMetadata, rules) ?? this.#days.refuse(push, row);
      if (reason === undefined) continue;
      refusedBytes += rowLine + rowMetadata;
      this.#dropped.add(row);
      this.#keptRows--;
      this.#refusals.add(reason, 1, rowLine + rowMetadata, () =>
        rowRefusalText(push, row, reason, rules, stream.text),
      );
    }
    this.#keptRows += to - from;
    this.#count(stream, to - from, lineBytes, metadataBytes);
    this.#acceptedBytes += lineBytes + metadataBytes - refusedBytes;
  }

  #refuseRows(stream: PushStream, from: number, to: number): void {
    let lineBytes = 0;
    let metadataBytes = 0;
    for (let row = from; row < to; row++) {
      lineBytes += this.#push.lineLength[row]!;
      metadataBytes += metadataBytesOf(this.#push, row);
    }
    this.#dropped.addRange(from, to);
    this.#count(stream, to - from, lineBytes, metadataBytes);
    this.#refusedEntries += to - from;
    this.#refusedBytes += lineBytes + metadataBytes;
  }

  #count(stream: PushStream, rows: number, lineBytes: number, metadataBytes: number): void {
    const received = stream.isInternal ? this.#receivedInternal : this.#received;
    received.rows += rows;
    received.lineBytes += lineBytes;
    received.metadataBytes += metadataBytes;
  }
}
