import type { IncomingHttpHeaders } from "node:http";
import { invalidArgument } from "@skald/model";
import { ByteCache } from "../columns/byte-cache.js";
import { sanitiseLabelName } from "../columns/metadata.js";

/**
 * What the fields of agents' records become. A field that is an object has the members `field.member`. Plain data, so that
 * another thread can read a body by it.
 */
export interface FieldMapping {
  /** Fields that become labels, and no others do. */
  readonly labels: readonly string[];
  /**
   * Fields that may hold the line; the first that a record has is its line, and its other fields become structured metadata.
   * Without any, or without one in a record, the line is the whole record as it came.
   */
  readonly message: readonly string[];
  /** Fields that may hold the time; the first that a record has counts. Without one a record gets the time of its arrival. */
  readonly time: readonly string[];
  /** Fields that are left out; `name*` stands for all that begin with `name`. */
  readonly ignore: readonly string[];
  /** Fields that every record gets; they come before those of a record. */
  readonly extra: readonly (readonly [name: string, value: string])[];
}

/** The parts of a request that may name fields. */
export interface MappingRequest {
  readonly params: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
}

/** The names of one list: our parameter and header, then those of VictoriaLogs. */
const listNames = {
  labels: ["labels", "x-skald-labels", "_stream_fields", "vl-stream-fields"],
  message: ["message_field", "x-skald-message-field", "_msg_field", "vl-msg-field"],
  time: ["time_field", "x-skald-time-field", "_time_field", "vl-time-field"],
  ignore: ["ignore_fields", "x-skald-ignore-fields", "ignore_fields", "vl-ignore-fields"],
  extra: ["extra_fields", "x-skald-extra-fields", "extra_fields", "vl-extra-fields"],
} as const;

/** A longer list is a mistake, and each name costs a look-up. */
const maxNames = 256;

/**
 * The mapping that a request names, with the defaults of its door for what it does not name. Throws invalid_argument for a
 * list that makes no sense, and for more labels than `maxLabels`.
 */
export function parseMapping(
  request: MappingRequest,
  defaults: FieldMapping,
  maxLabels: number,
): FieldMapping {
  const listOf = (kind: keyof typeof listNames) => readList(request, listNames[kind]);
  const labels = listOf("labels") ?? defaults.labels;
  checkLabels(labels, maxLabels);
  return {
    labels,
    message: listOf("message") ?? defaults.message,
    time: listOf("time") ?? defaults.time,
    ignore: listOf("ignore") ?? defaults.ignore,
    extra: [...defaults.extra, ...(listOf("extra") ?? []).map(readExtra)],
  };
}

/** Undefined where the request does not name the list; a name without a value is an empty list. */
function readList(
  { params, headers }: MappingRequest,
  [param, header, otherParam, otherHeader]: (typeof listNames)[keyof typeof listNames],
): readonly string[] | undefined {
  const given =
    params.get(param) ?? headers[header] ?? params.get(otherParam) ?? headers[otherHeader];
  if (given === undefined || given === null) return undefined;
  const names = String(given)
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (names.length > maxNames) {
    throw invalidArgument(`${param} has ${names.length} names; the limit is ${maxNames}`);
  }
  return names;
}

function checkLabels(labels: readonly string[], maxLabels: number): void {
  if (labels.length > maxLabels) {
    throw invalidArgument(
      `${labels.length} fields would become labels, the limit is ${maxLabels} (limits_config.max_label_names_per_series): name those by which you select streams, all others can be filtered too`,
    );
  }
  const known = new Set<string>();
  for (const field of labels) {
    const name = sanitiseLabelName(field);
    if (name === undefined || known.has(name)) {
      const why = name === undefined ? "has no letter or digit" : `gives the label ${name} again`;
      throw invalidArgument(`field '${field.slice(0, 64)}' cannot become a label: it ${why}`);
    }
    known.add(name);
  }
}

function readExtra(text: string): readonly [string, string] {
  const at = text.indexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw invalidArgument(`extra_fields: '${text.slice(0, 64)}' is not name=value`);
}

/** What a field is for a record. Of several fields for the line or the time the one with the least rank counts. */
export type FieldRole =
  | { readonly kind: "label"; readonly at: number }
  | { readonly kind: "message" | "time"; readonly rank: number }
  | { readonly kind: "ignored" | "other" | "nameless" };

const other: FieldRole = { kind: "other" };
const ignored: FieldRole = { kind: "ignored" };
const nameless: FieldRole = { kind: "nameless" };
/** Bounds of the cache of roles by field name. */
const cacheBounds = { maxEntries: 4096, maxKeyBytes: 1024 * 1024 };

/** A mapping as a table of field names. */
export class FieldRoles {
  /** The names of the labels, in the order of their numbers. */
  readonly labelNames: readonly string[];
  /** Whether a field may be the line, so that the others become metadata. */
  readonly hasMessage: boolean;
  /** Whether members of nested objects have to be looked at. */
  readonly needsMembers: boolean;
  readonly #named = new Map<string, FieldRole>();
  readonly #ignoredStarts: readonly string[];
  readonly #known = new ByteCache<FieldRole>(cacheBounds);

  constructor({ labels, message, time, ignore }: FieldMapping) {
    this.labelNames = labels.map((field) => sanitiseLabelName(field) ?? field);
    this.#ignoredStarts = ignore.filter((name) => name.endsWith("*")).map((n) => n.slice(0, -1));
    for (const name of ignore) this.#named.set(name, ignored);
    for (const [at, name] of labels.entries()) this.#named.set(name, { kind: "label", at });
    // Last, so that a field which is named twice is never only a label.
    for (const [rank, name] of message.entries()) this.#named.set(name, { kind: "message", rank });
    for (const [rank, name] of time.entries()) this.#named.set(name, { kind: "time", rank });
    this.hasMessage = message.length > 0;
    const names = [...this.#named.keys(), ...this.#ignoredStarts];
    this.needsMembers = this.hasMessage || names.some((name) => name.includes("."));
  }

  /** The role of the field whose name is a range of bytes. */
  of(bytes: Uint8Array, start: number, length: number): FieldRole {
    const known = this.#known.get(this, bytes, start, length);
    if (known !== undefined) return known;
    const role = this.#decide(Buffer.from(bytes.subarray(start, start + length)).toString());
    this.#known.set(this, bytes, start, length, role);
    return role;
  }

  #decide(name: string): FieldRole {
    const named = this.#named.get(name);
    if (named !== undefined) return named;
    if (this.#ignoredStarts.some((start) => name.startsWith(start))) return ignored;
    return sanitiseLabelName(name) === undefined ? nameless : other;
  }
}
