import {
  noTimestampSeconds,
  type RawPush,
  type RawPushLimits,
  type TakeBytes,
} from "@skald/kernels";
import {
  compileRegex,
  formatLabels,
  invalidArgument,
  makeLabels,
  type OtlpAttributeRule,
  type OtlpMapping,
  type OtlpReading,
} from "@skald/model";
import { ByteCache } from "../columns/byte-cache.js";
import { sanitiseLabelName } from "../columns/metadata.js";
import { PushRows, SharedPairs, TextArena } from "../columns/push-rows.js";
import {
  AnyValues,
  forEachKeyValue,
  type KeyValue,
  maxValueDepth,
  readKeyValue,
  utf8Of,
  valueKind,
  valueTooDeep,
} from "./any-value.js";
import { FieldReader, RecordFields, recordField } from "./proto-fields.js";

/** Metadata names of the fields of records and scopes that are no attributes. */
const fieldNames = [
  "observed_timestamp",
  "severity_number",
  "severity_text",
  "dropped_attributes_count",
  "flags",
  "trace_id",
  "span_id",
  "event_name",
  "scope_name",
  "scope_version",
  "scope_dropped_attributes_count",
] as const;

type FieldName = (typeof fieldNames)[number];

const severityText = "severity_text";
const serviceName = "service.name";
/** Room behind a body for texts that are not part of it: half of its size, and this. */
const spareBytes = 4096;

/**
 * Decodes an OTLP ExportLogsServiceRequest into columns. Each record becomes a row; the rules in `reading` say whether an
 * attribute becomes a label or structured metadata. A record without a time gets `noTimestampSeconds` as its seconds and
 * its number among such records as its nanoseconds. Throws invalid_argument for malformed input and too_large
 * beyond a limit.
 */
export function decodeOtlp(
  body: Uint8Array,
  reading: OtlpReading,
  limits: RawPushLimits,
  take?: TakeBytes,
): RawPush {
  const room = body.length + (body.length >> 1) + spareBytes;
  const arena = new TextArena(Math.min(room, limits.maxDecodedBytes), limits.maxDecodedBytes, take);
  arena.copy(body, 0, body.length);
  return decodeOtlpArena(arena, reading, limits, take);
}

/** Decodes a message that fills an arena; texts are appended to the arena. */
export function decodeOtlpArena(
  arena: TextArena,
  reading: OtlpReading,
  limits: RawPushLimits,
  take?: TakeBytes,
): RawPush {
  return new OtlpDecoder(arena, reading, limits, take).decode();
}

class OtlpDecoder {
  readonly #arena: TextArena;
  /** The bytes of the arena at the start, which hold the body also when the arena grows. */
  readonly #bytes: Uint8Array;
  readonly #bodyEnd: number;
  readonly #mapping: CompiledMapping;
  readonly #receivedMs: number | undefined;
  #untimed = 0;
  readonly #columns: PushRows;
  readonly #values: AnyValues;
  readonly #names: Readonly<Record<FieldName, number>>;
  #resource = new SharedPairs();
  #resourceLabels: LabelPairs = [];
  #isServiceKnown = false;
  /** Streams of the resource by the labels that records add. */
  #streams = new Map<string, number>();
  #plainStream = -1;
  #scope = new SharedPairs();
  readonly #record = new RecordFields();
  #recordLabels: LabelPairs = [];

  constructor(arena: TextArena, reading: OtlpReading, limits: RawPushLimits, take?: TakeBytes) {
    this.#arena = arena;
    this.#bytes = arena.bytes;
    this.#bodyEnd = arena.end;
    this.#mapping = compileMapping(reading.mapping);
    this.#receivedMs = reading.receivedMs;
    this.#columns = new PushRows(arena.end, limits, take);
    this.#values = new AnyValues(arena.bytes, arena);
    this.#names = writeNames(arena);
  }

  decode(): RawPush {
    const reader = new FieldReader(this.#bytes, 0, this.#bodyEnd);
    reader.each(0x0a, this.#readResourceLogs);
    return this.#columns.finish(this.#arena);
  }

  readonly #readResourceLogs = (reader: FieldReader): void => {
    this.#resource = new SharedPairs();
    this.#resourceLabels = [];
    this.#isServiceKnown = false;
    this.#streams = new Map();
    this.#plainStream = -1;
    const start = reader.at;
    // Fields may come in any order, and records need the resource.
    reader.each(0x0a, this.#readResource);
    reader.at = start;
    reader.each(0x12, this.#readScopeLogs);
  };

  readonly #readResource = (reader: FieldReader): void => {
    reader.each(0x0a, this.#readResourceAttribute);
  };

  readonly #readResourceAttribute = (reader: FieldReader): void => {
    const pair = readKeyValue(reader);
    if (this.#namesService(pair)) this.#isServiceKnown = true;
    this.#keep(pair, this.#mapping.resource, this.#resource, this.#resourceLabels);
  };

  #namesService({ keyStart, keyLength, valueStart, valueEnd }: KeyValue): boolean {
    if (keyLength !== serviceName.length) return false;
    if (utf8Of(this.#bytes, keyStart, keyLength) !== serviceName) return false;
    this.#values.text(valueStart, valueEnd);
    return this.#values.length > 0;
  }

  readonly #readScopeLogs = (reader: FieldReader): void => {
    this.#scope = new SharedPairs();
    const start = reader.at;
    reader.each(0x0a, this.#readScope);
    reader.at = start;
    reader.each(0x12, this.#readRecord);
  };

  /** Name, version and count go behind the attributes, because the last of equal names counts. */
  readonly #readScope = (reader: FieldReader): void => {
    const own = new SharedPairs();
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === 0x0a || tag === 0x12) {
        const name = tag === 0x0a ? "scope_name" : "scope_version";
        const length = reader.length();
        own.addPair(this.#names[name], name.length, reader.at, length);
        reader.at += length;
      } else if (tag === 0x1a) {
        const outer = reader.enter();
        const pair = readKeyValue(reader);
        reader.leave(outer);
        this.#keep(pair, this.#mapping.scope, this.#scope, []);
      } else if (tag === 0x20) {
        const count = reader.int32() >>> 0;
        if (count === 0) continue;
        const start = this.#arena.end;
        this.#arena.decimal(count);
        const name = "scope_dropped_attributes_count";
        own.addPair(this.#names[name], name.length, start, this.#arena.end - start);
      } else reader.skip(tag);
    }
    this.#scope.ranges.push(...own.ranges);
  };

  readonly #readRecord = (reader: FieldReader): void => {
    const record = this.#record;
    const columns = this.#columns;
    this.#recordLabels = [];
    record.read(reader, this.#readAttribute);
    if (record.isTimed && record.isObserved) this.#addObserved();
    if (record.severity !== 0) this.#addNumber("severity_number", record.severity);
    this.#addSeverityText();
    if (record.dropped !== 0) this.#addNumber("dropped_attributes_count", record.dropped);
    if (record.flags !== 0) this.#addNumber("flags", record.flags);
    this.#addId("trace_id", recordField.traceId, 16);
    this.#addId("span_id", recordField.spanId, 8);
    const event = recordField.eventName;
    this.#add("event_name", record.starts[event]!, record.lengths[event]!);
    columns.addShared(this.#resource);
    columns.addShared(this.#scope);
    const body = record.starts[recordField.body]!;
    this.#values.text(body, body + record.lengths[recordField.body]!);
    this.#addRow();
  };

  #addRow(): void {
    const record = this.#record;
    const stream = this.#stream();
    if (!record.isTimed && !record.isObserved) {
      this.#addUntimedRow(stream);
      return;
    }
    const low = record.isTimed ? record.timeLow : record.observedLow;
    const high = record.isTimed ? record.timeHigh : record.observedHigh;
    this.#columns.addRow(stream, secondsOf(low, high), nanosOf(low, high), this.#values);
  }

  #addUntimedRow(stream: number): void {
    const ms = this.#receivedMs;
    if (ms === undefined) {
      this.#columns.addRow(stream, noTimestampSeconds, this.#untimed++, this.#values);
      return;
    }
    const seconds = Math.floor(ms / 1000);
    this.#columns.addRow(stream, seconds, (ms - seconds * 1000) * 1e6, this.#values);
  }

  readonly #readAttribute = (reader: FieldReader): void => {
    const outer = reader.enter();
    const pair = readKeyValue(reader);
    reader.leave(outer);
    this.#keep(pair, this.#mapping.log, this.#columns, this.#recordLabels);
  };

  #addObserved(): void {
    const { observedLow: low, observedHigh: high } = this.#record;
    const start = this.#arena.end;
    const seconds = secondsOf(low, high);
    if (seconds > 0) this.#arena.decimal(seconds);
    this.#arena.decimal(nanosOf(low, high), seconds > 0 ? 9 : 1);
    this.#add("observed_timestamp", start, this.#arena.end - start);
  }

  #addSeverityText(): void {
    const start = this.#record.starts[recordField.severityText]!;
    const length = this.#record.lengths[recordField.severityText]!;
    if (length === 0) return;
    if (!this.#mapping.severityTextAsLabel) this.#add(severityText, start, length);
    else this.#recordLabels.push([severityText, utf8Of(this.#bytes, start, length)]);
  }

  #addNumber(name: FieldName, value: number): void {
    const start = this.#arena.end;
    if (value < 0) this.#arena.ascii(String(value));
    else this.#arena.decimal(value);
    this.#add(name, start, this.#arena.end - start);
  }

  /** Adds an id of `idBytes` bytes; an empty one and one of zeros are left out. */
  #addId(name: FieldName, field: number, idBytes: number): void {
    const length = this.#record.lengths[field]!;
    if (length === 0) return;
    if (length !== idBytes)
      throw invalidArgument(`${name} has ${length} bytes instead of ${idBytes}`);
    const from = this.#record.starts[field]!;
    if (this.#bytes.subarray(from, from + length).every((byte) => byte === 0)) return;
    const start = this.#arena.end;
    this.#arena.hex(this.#bytes, from, length);
    this.#add(name, start, this.#arena.end - start);
  }

  #add(name: FieldName, start: number, length: number): void {
    this.#columns.addPair(this.#names[name], name.length, start, length);
  }

  /** Adds an attribute to the labels or to the metadata, as the rules say. */
  #keep(pair: KeyValue, rules: AttributeRules, metadata: PairSink, labels: LabelPairs): void {
    const action = rules.actionOf(this.#bytes, pair.keyStart, pair.keyLength);
    if (action === "drop") return;
    const name = { bytes: this.#bytes, start: pair.keyStart, length: pair.keyLength };
    this.#flatten(name, pair, 0, action === "index_label" ? labels : metadata);
  }

  /** Adds the value of an attribute; each member of a map gets a name of its own. */
  #flatten(name: Name, pair: KeyValue, depth: number, to: PairSink | LabelPairs): void {
    const values = this.#values;
    values.read(pair.valueStart, pair.valueEnd);
    if (values.kind === valueKind.map) {
      if (depth === maxValueDepth) throw valueTooDeep();
      forEachKeyValue(this.#bytes, values.from, values.from + values.size, (member) => {
        this.#flatten(this.#joined(name, member), member, depth + 1, to);
      });
      return;
    }
    values.text(pair.valueStart, pair.valueEnd);
    if (!Array.isArray(to)) {
      to.addPair(name.start, name.length, values.start, values.length);
      return;
    }
    const raw = utf8Of(name.bytes, name.start, name.length);
    const value = utf8Of(this.#arena.bytes, values.start, values.length);
    to.push([labelName(raw), value]);
  }

  #joined(prefix: Name, { keyStart, keyLength }: KeyValue): Name {
    const arena = this.#arena;
    const start = arena.end;
    arena.copy(prefix.bytes, prefix.start, prefix.length);
    arena.byte(underscore);
    arena.copy(this.#bytes, keyStart, keyLength);
    return { bytes: arena.bytes, start, length: arena.end - start };
  }

  /** The stream of a record: that of its resource, or another one when the record adds labels. */
  #stream(): number {
    if (this.#recordLabels.length === 0) {
      if (this.#plainStream < 0) this.#plainStream = this.#addStream(this.#resourceLabels);
      return this.#plainStream;
    }
    const labels = [...this.#resourceLabels, ...this.#recordLabels];
    const key = JSON.stringify(this.#recordLabels);
    let stream = this.#streams.get(key);
    if (stream === undefined) {
      stream = this.#addStream(labels);
      this.#streams.set(key, stream);
    }
    return stream;
  }

  #addStream(pairs: LabelPairs): number {
    const start = this.#arena.end;
    this.#arena.utf8(formatLabels(makeLabels(new Map(pairs))));
    return this.#columns.addStream(
      { start, length: this.#arena.end - start },
      this.#isServiceKnown,
    );
  }
}

type LabelPairs = [string, string][];

/** Takes metadata pairs: the columns of a row, or the pairs that rows share. */
interface PairSink {
  addPair(nameStart: number, nameLength: number, valueStart: number, valueLength: number): void;
}

interface Name {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly length: number;
}

const underscore = 0x5f;

function labelName(raw: string): string {
  const name = sanitiseLabelName(raw);
  if (name !== undefined) return name;
  throw invalidArgument(
    `attribute name '${raw.slice(0, 64)}' has no letter or digit to make a label name from`,
  );
}

const two32 = 0x1_0000_0000;
const nanosPerSecond = 1e9;

/** Whole seconds of a time in ns, given in halves. */
function secondsOf(low: number, high: number): number {
  const rest = restOfHigh(high);
  const seconds = Math.round((high * two32 - rest) / nanosPerSecond);
  return seconds + Math.floor((rest + low) / nanosPerSecond);
}

/** The rest of a time beyond its whole seconds, ns. */
function nanosOf(low: number, high: number): number {
  return (restOfHigh(high) + low) % nanosPerSecond;
}

// The upper half alone is exact as a double, and so is its remainder.
function restOfHigh(high: number): number {
  return (high * two32) % nanosPerSecond;
}

function writeNames(arena: TextArena): Record<FieldName, number> {
  const starts = fieldNames.map((name) => {
    const start = arena.end;
    arena.ascii(name);
    return [name, start] as const;
  });
  return Object.fromEntries(starts) as Record<FieldName, number>;
}

type AttributeAction = OtlpAttributeRule["action"];

/** Bounds of the cache of actions by attribute name. */
const cacheBounds = { maxEntries: 4096, maxKeyBytes: 1024 * 1024 };

/** The rules for the attributes of a resource, of scopes or of records. */
class AttributeRules {
  readonly #rules: readonly ((name: string) => AttributeAction | undefined)[];
  readonly #known = new ByteCache<AttributeAction>(cacheBounds);

  /** Throws invalid_argument when an expression does not parse. */
  constructor(rules: readonly OtlpAttributeRule[]) {
    this.#rules = rules.map(compileRule);
  }

  /** Returns the action for the attribute whose name is a range of bytes. */
  actionOf(bytes: Uint8Array, start: number, length: number): AttributeAction {
    if (this.#rules.length === 0) return "structured_metadata";
    let action = this.#known.get(this, bytes, start, length);
    if (action === undefined) {
      action = this.#decide(Buffer.from(bytes.subarray(start, start + length)).toString());
      this.#known.set(this, bytes, start, length, action);
    }
    return action;
  }

  #decide(name: string): AttributeAction {
    for (const rule of this.#rules) {
      const action = rule(name);
      if (action !== undefined) return action;
    }
    return "structured_metadata";
  }
}

function compileRule(rule: OtlpAttributeRule): (name: string) => AttributeAction | undefined {
  const names = new Set(rule.attributes);
  const regex = rule.regex === "" ? undefined : compileRegex(rule.regex, { anchored: true });
  return (name) => (names.has(name) || regex?.test(name) === true ? rule.action : undefined);
}

/** A mapping with its rules compiled. */
interface CompiledMapping {
  readonly resource: AttributeRules;
  readonly scope: AttributeRules;
  readonly log: AttributeRules;
  readonly severityTextAsLabel: boolean;
}

const compiled = new WeakMap<OtlpMapping, CompiledMapping>();

/** Compiles a mapping, each object once. */
function compileMapping(mapping: OtlpMapping): CompiledMapping {
  let known = compiled.get(mapping);
  if (known === undefined) {
    known = {
      resource: new AttributeRules(mapping.resource),
      scope: new AttributeRules(mapping.scope),
      log: new AttributeRules(mapping.log),
      severityTextAsLabel: mapping.severityTextAsLabel,
    };
    compiled.set(mapping, known);
  }
  return known;
}
