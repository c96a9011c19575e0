import type { RawPush } from "@skald/kernels";
import {
  formatLabels,
  invalidArgument,
  type Labels,
  labelValue,
  type PushFormat,
} from "@skald/model";
import { type ByteCache, type LabelPairs, parsePushLabels } from "@skald/push";
import type { PushLimits } from "./config.js";
import { levelCodeOf, type StreamLevel } from "./levels.js";
import { type DiscardReason, echo } from "./push-response.js";

/** Streams that are resolved between two yields. */
const streamsPerStep = 64;

/**
 * Finds the streams of a push. A known label text costs one lookup in the cache; a new one is parsed, and the rules are
 * applied to it. Throws invalid_argument when one does not parse, which refuses the whole push. Yields where other work
 * may run first.
 */
export function* resolveStreams(
  push: RawPush,
  format: PushFormat,
  rules: StreamRules,
  cache: ByteCache<PushStream>,
): Generator<void, readonly PushStream[]> {
  const streams: PushStream[] = [];
  const { bytes, streamLabelStart, streamLabelLength } = push;
  for (let ordinal = 0; ordinal < push.streamCount; ordinal++) {
    const start = streamLabelStart[ordinal]!;
    const length = streamLabelLength[ordinal]!;
    const own = push.streamServiceKnown?.[ordinal] === 1 ? rules.undiscovered : rules;
    let stream = cache.get(own, bytes, start, length);
    if (stream === undefined) {
      stream = own.apply(parsePushLabels(format, bytes, start, length));
      cache.set(own, bytes, start, length, stream);
    }
    streams.push(stream);
    if (ordinal % streamsPerStep === streamsPerStep - 1) yield;
  }
  return streams;
}

/** A label set as it is stored, with the results of the label rules of its tenant. */
export interface PushStream extends StreamLevel {
  /** Canonical label text. */
  readonly text: string;
  /** Whether a service of the cluster writes the stream for itself. */
  readonly isInternal: boolean;
  readonly refusal: { readonly reason: DiscardReason; readonly message: string } | undefined;
}

const serviceName = "service_name";
const unknownService = "unknown_service";
const backfillNames = ["__backfill__", "__backfill_shard__"] as const;
/** Streams that services of the cluster write for themselves carry one of these. */
const internalNames = ["__aggregated_metric__", "__pattern__"] as const;

/**
 * The label rules of one tenant: they add labels to a stream and check them against limits. An object of this class owns
 * the cached streams, so a new one (other limits, other shard) forgets the old results.
 */
export class StreamRules {
  readonly #tenant: string;
  readonly #limits: PushLimits;
  readonly #backfillShard: string | undefined;
  readonly #serviceFields: FieldOrder;
  readonly #levelFields: FieldOrder;
  #undiscovered: StreamRules | undefined;

  constructor(tenant: string, limits: PushLimits, backfillShard?: string) {
    this.#tenant = tenant;
    this.#limits = limits;
    this.#backfillShard = backfillShard;
    const { discover_log_levels, allow_structured_metadata } = limits;
    this.#serviceFields = fieldOrder(limits.discover_service_name);
    this.#levelFields = fieldOrder(
      discover_log_levels && allow_structured_metadata ? limits.log_level_fields : [],
    );
  }

  /** The same rules without `service_name`, for streams whose service is known although it is not a label. */
  get undiscovered(): StreamRules {
    this.#undiscovered ??= new StreamRules(
      this.#tenant,
      { ...this.#limits, discover_service_name: [] },
      this.#backfillShard,
    );
    return this.#undiscovered;
  }

  /** Applies the rules to labels as pushed: removes empty values, adds `service_name` and the shard of a backfill. */
  apply(pairs: LabelPairs): PushStream {
    const kept = pairs.filter(([, value]) => value !== "");
    this.#add(pairs, kept);
    const labels = sorted(kept);
    const text = formatLabels(labels);
    const refusal =
      this.#refuseBackfill(pairs, text) ??
      refuseLabels(labels, text, this.#limits) ??
      this.#refuseUnenforced(labels, text);
    const levelText = firstValue(this.#levelFields, kept) ?? "";
    const level = levelText === "" ? 0 : levelCodeOf(levelText);
    const isInternal = kept.some(([name]) => internalNames.some((internal) => internal === name));
    return { text, level, levelText, isInternal, refusal };
  }

  #add(pairs: LabelPairs, kept: LabelPair[]): void {
    const service = discoverService(pairs, this.#serviceFields);
    if (service !== undefined) kept.push([serviceName, service]);
    if (this.#backfillShard !== undefined) {
      kept.push([backfillNames[0], "true"], [backfillNames[1], this.#backfillShard]);
    }
  }

  #refuseBackfill(pairs: LabelPairs, text: string): PushStream["refusal"] {
    const sent = backfillNames.find((name) => pairs.some((pair) => pair[0] === name));
    if (sent === undefined) return undefined;
    const message = `stream '${echo(text)}' has the reserved label '${sent}'; send the header X-Loki-Backfill-Shard instead`;
    return { reason: "invalid_labels", message };
  }

  #refuseUnenforced(labels: Labels, text: string): PushStream["refusal"] {
    const missing = this.#limits.enforced_labels.filter((name) => labelValue(labels, name) === "");
    if (missing.length === 0) return undefined;
    const message = `missing required labels '${missing.join(",")}' for user '${this.#tenant}' for stream '${echo(text)}' (policy: '')`;
    return { reason: "missing_enforced_labels", message };
  }
}

type LabelPair = LabelPairs[number];

/** The place of each name in a list of names; the first counts. */
type FieldOrder = ReadonlyMap<string, number>;

function fieldOrder(names: readonly string[]): FieldOrder {
  return new Map(names.map((name, place) => [name, place] as const).reverse());
}

/** The value of the label whose name comes first in that order, of labels that have one. */
function firstValue(order: FieldOrder, pairs: LabelPairs): string | undefined {
  let first: string | undefined;
  let best = Number.POSITIVE_INFINITY;
  for (const [name, value] of pairs) {
    const place = order.get(name);
    if (place === undefined || place >= best || value === "") continue;
    best = place;
    first = value;
  }
  return first;
}

/** Sorts pairs by name, in place. Pairs of equal names stay in order, for the error that names them. */
function sorted(pairs: LabelPair[]): Labels {
  pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  return { names: pairs.map((pair) => pair[0]), values: pairs.map((pair) => pair[1]) };
}

/** The service of a stream that does not name it; undefined when it does, or when discovery is off. */
function discoverService(pairs: LabelPairs, fields: FieldOrder): string | undefined {
  if (fields.size === 0) return undefined;
  const isKnown = ([name, value]: LabelPair) =>
    value !== "" && (name === serviceName || internalNames.some((internal) => internal === name));
  return pairs.some(isKnown) ? undefined : (firstValue(fields, pairs) ?? unknownService);
}

/** The first rule that a label set breaks. */
function refuseLabels(labels: Labels, text: string, limits: PushLimits): PushStream["refusal"] {
  const { names, values } = labels;
  if (names.length === 0) {
    return {
      reason: "missing_labels",
      message: "error at least one label pair is required per stream",
    };
  }
  let counted = 0;
  for (const name of names) if (!isUncounted(name)) counted++;
  if (counted > limits.max_label_names_per_series) {
    const message = `entry for stream '${echo(text)}' has ${counted} label names; limit ${limits.max_label_names_per_series}`;
    return { reason: "max_label_names_per_series", message };
  }
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string;
    const value = values[i] as string;
    if (isLonger(name, limits.max_label_name_length)) {
      const message = `stream '${echo(text)}' has label name too long: '${echo(name)}'`;
      return { reason: "label_name_too_long", message };
    }
    if (isLonger(value, limits.max_label_value_length)) {
      const message = `stream '${echo(text)}' has label value too long: '${echo(value)}'`;
      return { reason: "label_value_too_long", message };
    }
    if (name === names[i - 1]) {
      const message = `stream '${echo(text)}' has duplicate label name: '${name}'`;
      return { reason: "duplicate_label_names", message };
    }
  }
  return undefined;
}

/** Most texts are short enough whatever their characters are; UTF-8 has at most three bytes for a unit of a string. */
function isLonger(text: string, maxBytes: number): boolean {
  return text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes;
}

/** Labels that the distributor adds do not count. */
function isUncounted(name: string): boolean {
  return name === serviceName || name === backfillNames[0] || name === backfillNames[1];
}

const maxBackfillShardBytes = 128;

/** Throws invalid_argument for a name of a shard that no stream may have. */
export function checkBackfillShard(shard: string | undefined): void {
  if (shard === undefined) return;
  const length = Buffer.byteLength(shard);
  if (length > 0 && length <= maxBackfillShardBytes) return;
  throw invalidArgument(
    `X-Loki-Backfill-Shard must have 1 to ${maxBackfillShardBytes} bytes, not ${length}`,
  );
}
