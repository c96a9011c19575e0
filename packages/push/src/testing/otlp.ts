import { noTimestampSeconds, type RawPush } from "@skald/kernels";
import type { OtlpMapping } from "@skald/model";
import { sanitiseLabelName } from "../columns/metadata.js";
import { decodeBody, type PushBody } from "../decode.js";

/** An AnyValue as OTLP JSON has it, one of its fields set. */
export interface JsonValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number | string;
  readonly arrayValue?: { readonly values: readonly JsonValue[] };
  readonly kvlistValue?: { readonly values: readonly JsonAttribute[] };
  readonly bytesValue?: string;
}

export interface JsonAttribute {
  readonly key: string;
  readonly value: JsonValue;
}

export interface JsonRecord {
  readonly timeUnixNano?: string;
  readonly observedTimeUnixNano?: string;
  readonly severityNumber?: number;
  readonly severityText?: string;
  readonly body?: JsonValue;
  readonly attributes?: readonly JsonAttribute[];
  readonly droppedAttributesCount?: number;
  readonly flags?: number;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly eventName?: string;
}

export interface JsonRequest {
  readonly resourceLogs: readonly {
    readonly resource?: { readonly attributes: readonly JsonAttribute[] };
    readonly scopeLogs: readonly {
      readonly scope?: {
        readonly name?: string;
        readonly version?: string;
        readonly attributes?: readonly JsonAttribute[];
        readonly droppedAttributesCount?: number;
      };
      readonly logRecords: readonly JsonRecord[];
    }[];
  }[];
}

/** Everything metadata but the name of the service. */
export const plainMapping: OtlpMapping = {
  resource: [{ action: "index_label", attributes: ["service.name"], regex: "" }],
  scope: [],
  log: [],
  severityTextAsLabel: false,
};

/** What the first record without a time has until it is given one: the start of year 1. */
export const untimedNs = BigInt(noTimestampSeconds) * 1_000_000_000n;

/** A request of one resource and one scope. */
export function requestOf(
  records: readonly JsonRecord[],
  resource: readonly JsonAttribute[] = [attribute("service.name", "shop")],
): JsonRequest {
  return {
    resourceLogs: [{ resource: { attributes: resource }, scopeLogs: [{ logRecords: records }] }],
  };
}

export function attribute(key: string, value: string | JsonValue): JsonAttribute {
  return { key, value: typeof value === "string" ? { stringValue: value } : value };
}

/** The body of a request in one of its two forms. */
export function otlpBody(
  format: "otlp_json" | "otlp_protobuf",
  request: JsonRequest,
  mapping: OtlpMapping = plainMapping,
): PushBody {
  const body =
    format === "otlp_json" ? Buffer.from(JSON.stringify(request)) : encodeRequest(request);
  return { format, encoding: "identity", body, otlp: { mapping } };
}

/** A row with what its stream and its metadata say; of a name given twice the last value. */
export interface OtlpRow {
  readonly stream: string;
  readonly ns: bigint;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export function decodeRows(body: PushBody): OtlpRow[] {
  return rowsOf(decodeBody(body));
}

export function rowsOf(push: RawPush): OtlpRow[] {
  const rows: OtlpRow[] = [];
  const text = (start: number, length: number) =>
    Buffer.from(push.bytes.subarray(start, start + length)).toString();
  for (let stream = 0; stream < push.streamCount; stream++) {
    const labels = text(push.streamLabelStart[stream]!, push.streamLabelLength[stream]!);
    for (let row = push.streamRowStart[stream]!; row < push.streamRowStart[stream + 1]!; row++) {
      const metadata: Record<string, string> = {};
      for (let pair = push.metaStart[row]!; pair < push.metaStart[row + 1]!; pair++) {
        const name = text(push.metaNameStart[pair]!, push.metaNameLength[pair]!);
        metadata[sanitiseLabelName(name) ?? name] = text(
          push.metaValueStart[pair]!,
          push.metaValueLength[pair]!,
        );
      }
      const ns = BigInt(push.seconds[row]!) * 1_000_000_000n + BigInt(push.nanos[row]!);
      rows.push({
        stream: labels,
        ns,
        line: text(push.lineStart[row]!, push.lineLength[row]!),
        metadata,
      });
    }
  }
  return rows;
}

/** A request in protobuf. */
export function encodeRequest({ resourceLogs }: JsonRequest): Buffer {
  return Buffer.concat(
    resourceLogs.map(({ resource, scopeLogs }) =>
      bytes(1, [
        ...(resource === undefined ? [] : [bytes(1, attributes(1, resource.attributes))]),
        ...scopeLogs.map(({ scope, logRecords }) =>
          bytes(2, [
            ...(scope === undefined
              ? []
              : [
                  bytes(1, [
                    ...optional(scope.name, (name) => bytes(1, [Buffer.from(name)])),
                    ...optional(scope.version, (version) => bytes(2, [Buffer.from(version)])),
                    ...attributes(3, scope.attributes),
                    ...optional(scope.droppedAttributesCount, (count) => varint(4, BigInt(count))),
                  ]),
                ]),
            ...logRecords.map((record) => bytes(2, encodeRecord(record))),
          ]),
        ),
      ]),
    ),
  );
}

function encodeRecord(record: JsonRecord): Buffer[] {
  const text = (field: number) => (value: string) => bytes(field, [Buffer.from(value)]);
  const hex = (field: number) => (value: string) => bytes(field, [Buffer.from(value, "hex")]);
  return [
    ...optional(record.timeUnixNano, (time) => fixed64(1, BigInt(time))),
    ...optional(record.severityNumber, (number) => varint(2, BigInt.asUintN(64, BigInt(number)))),
    ...optional(record.severityText, text(3)),
    ...optional(record.body, (body) => bytes(5, encodeValue(body))),
    ...attributes(6, record.attributes),
    ...optional(record.droppedAttributesCount, (count) => varint(7, BigInt(count))),
    ...optional(record.flags, (flags) => fixed32(8, flags)),
    ...optional(record.traceId, hex(9)),
    ...optional(record.spanId, hex(10)),
    ...optional(record.observedTimeUnixNano, (time) => fixed64(11, BigInt(time))),
    ...optional(record.eventName, text(12)),
  ];
}

function encodeValue(value: JsonValue): Buffer[] {
  return [
    ...optional(value.stringValue, (text) => bytes(1, [Buffer.from(text)])),
    ...optional(value.boolValue, (flag) => varint(2, flag ? 1n : 0n)),
    ...optional(value.intValue, (number) => varint(3, BigInt.asUintN(64, BigInt(number)))),
    ...optional(value.doubleValue, (number) => {
      const out = Buffer.alloc(9);
      out[0] = (4 << 3) | 1;
      out.writeDoubleLE(Number(number), 1);
      return out;
    }),
    ...optional(value.arrayValue, ({ values }) =>
      bytes(
        5,
        values.map((item) => bytes(1, encodeValue(item))),
      ),
    ),
    ...optional(value.kvlistValue, ({ values }) => bytes(6, attributes(1, values))),
    ...optional(value.bytesValue, (text) => bytes(7, [Buffer.from(text, "base64")])),
  ];
}

function attributes(field: number, list: readonly JsonAttribute[] = []): Buffer[] {
  return list.map(({ key, value }) =>
    bytes(field, [bytes(1, [Buffer.from(key)]), bytes(2, encodeValue(value))]),
  );
}

function optional<T>(value: T | undefined, encode: (value: T) => Buffer): Buffer[] {
  return value === undefined ? [] : [encode(value)];
}

function bytes(field: number, parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of((field << 3) | 2), number(BigInt(content.length)), content]);
}

function varint(field: number, value: bigint): Buffer {
  return Buffer.concat([Buffer.of(field << 3), number(value)]);
}

function number(value: bigint): Buffer {
  const out: number[] = [];
  let rest = value;
  for (; rest > 0x7fn; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.of(...out, Number(rest));
}

function fixed64(field: number, value: bigint): Buffer {
  const out = Buffer.alloc(9);
  out[0] = (field << 3) | 1;
  out.writeBigUInt64LE(value, 1);
  return out;
}

function fixed32(field: number, value: number): Buffer {
  const out = Buffer.alloc(5);
  out[0] = (field << 3) | 5;
  out.writeUInt32LE(value, 1);
  return out;
}
