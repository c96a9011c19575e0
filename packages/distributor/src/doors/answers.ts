import { bulkActions } from "@skald/push";
import type { PushResponse, RecordRefusal, RecordReport } from "../push-response.js";

/** What a client of a door gets. */
export interface DoorAnswer {
  readonly status: number;
  readonly contentType?: string;
  readonly body?: string;
}

/** An answer whose body is so long that it is written in turns. */
export interface LongAnswer extends Omit<DoorAnswer, "body"> {
  readonly body: Generator<void, Uint8Array>;
}

const json = "application/json; charset=UTF-8";
const plain = "text/plain; charset=utf-8";
/** All records are stored; other successes, such as 260 for a tenant whose ingestion is blocked, are those of a limit. */
const stored = 204;
const tooManyRequests = 429;
/** A bulk is answered item by item, so these tell about the request only. */
const itemTypes: Readonly<Record<number, string>> = {
  400: "document_parsing_exception",
  429: "es_rejected_execution_exception",
};

/** A text for a refusal, nothing for a success: as pushes are answered. */
export function plainAnswer({ status, text }: PushResponse): DoorAnswer {
  return text === undefined ? { status } : { status, contentType: plain, body: `${text}\n` };
}

/**
 * The same for a journal: the sender gives up at the first refusal, and would send what it is about again for ever. So a
 * refused entry is no failure.
 */
export function journalAnswer(response: PushResponse): DoorAnswer {
  const isPartial = response.report !== undefined && response.status === 400;
  return {
    ...plainAnswer(response),
    status: isPartial || response.status === 204 ? 202 : response.status,
  };
}

/** What Elasticsearch answers to a bulk: the outcome of each action. */
export function bulkAnswer(response: PushResponse): DoorAnswer | LongAnswer {
  const { report } = response;
  if (report === undefined) return elasticError(response);
  return { status: 200, contentType: json, body: bulkItems(report) };
}

/** What it answers to one document. */
export function documentAnswer(response: PushResponse): DoorAnswer {
  if (response.report === undefined || response.report.records === 0) return elasticError(response);
  const [refusal] = response.report.refusals;
  if (refusal !== undefined) {
    return elasticError({ status: response.status, text: refusal.reason });
  }
  return { status: 201, contentType: json, body: '{"result":"created"}\n' };
}

function elasticError({ status, text = "the body has no document" }: PushResponse): DoorAnswer {
  const shown = status === stored ? 400 : status;
  const error = { type: itemTypes[shown] ?? "status_exception", reason: text };
  const body = `${JSON.stringify({ error: { root_cause: [error], ...error }, status: shown })}\n`;
  return { status: shown, contentType: json, body };
}

const successes = bulkActions.map((action) => Buffer.from(`{"${action}":{"status":201}}`));
const comma = 0x2c;
/** Items that are written between two yields. */
const itemsPerStep = 1024;
/** Most items are a success. */
const itemBytes = 32;

/** Writes the items as bytes: a million of them as texts would take this thread for a second. */
function* bulkItems(report: RecordReport): Generator<void, Uint8Array> {
  const { records, actions, refusals } = report;
  const head = Buffer.from(`{"took":0,"errors":${report.refused > 0},"items":[`);
  const tail = Buffer.from("]}\n");
  let bytes = Buffer.allocUnsafe(head.length + records * itemBytes + tail.length);
  let end = head.copy(bytes);
  const write = (part: Buffer): void => {
    if (end + part.length + tail.length >= bytes.length) {
      const grown = Buffer.allocUnsafe(2 * (end + part.length + tail.length));
      bytes.copy(grown, 0, 0, end);
      bytes = grown;
    }
    end += part.copy(bytes, end);
  };
  const ends: Buffer[] = [];
  for (let record = 0; record < records; record++) {
    if (record > 0) bytes[end++] = comma;
    const action = actions?.[record] ?? 0;
    const refusal = report.refusalOf(record);
    if (refusal < 0) {
      write(successes[action] as Buffer);
    } else {
      // A limit refuses many records for one reason.
      ends[refusal] ??= refusalEnd(refusals[refusal] as RecordRefusal);
      write(failures[action] as Buffer);
      write(ends[refusal]);
    }
    if (record % itemsPerStep === itemsPerStep - 1) yield;
  }
  write(tail);
  return bytes.subarray(0, end);
}

const failures = bulkActions.map((action) => Buffer.from(`{"${action}":{"status":`));

function refusalEnd({ status, reason }: RecordRefusal): Buffer {
  const type = itemTypes[status] ?? "status_exception";
  return Buffer.from(`${status},"error":{"type":"${type}","reason":${JSON.stringify(reason)}}}}`);
}

/** What Splunk's collector answers, with its codes. */
export function hecAnswer(response: PushResponse): DoorAnswer {
  const { status, text = "", report } = response;
  if (report?.records === 0) return hecResult(400, { text: "No data", code: 5 });
  if (status === stored) return hecResult(200, { text: "Success", code: 0 });
  const first = report?.firstRefused ?? -1;
  if (status === tooManyRequests || status >= 500) {
    return hecResult(status, { text: `Server is busy: ${text}`, code: 9 });
  }
  const number = first < 0 ? {} : { "invalid-event-number": first };
  return hecResult(status, { text: `Invalid data format: ${text}`, code: 6, ...number });
}

export function hecResult(status: number, result: object): DoorAnswer {
  return { status, contentType: json, body: `${JSON.stringify(result)}\n` };
}

/** What the intake of Datadog answers. */
export function datadogAnswer({ status, text }: PushResponse): DoorAnswer {
  if (status === stored) return { status: 202, contentType: json, body: "{}\n" };
  const errors = [{ status: String(status), title: text }];
  return { status, contentType: json, body: `${JSON.stringify({ errors })}\n` };
}
