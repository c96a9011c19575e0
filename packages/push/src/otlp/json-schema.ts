/** How a JSON value becomes a protobuf field. */
export type JsonKind =
  | "text"
  | "bool"
  | "int64"
  | "uint32"
  | "severity"
  | "fixed64"
  | "fixed32"
  | "double"
  | "hex"
  | "base64"
  | { readonly message: () => JsonMessage };

export interface JsonField {
  readonly number: number;
  readonly kind: JsonKind;
  readonly isRepeated: boolean;
  /** Its name with the closing quote, in camel case and in snake case. */
  readonly names: readonly Uint8Array[];
}

/** The fields of a message. */
export type JsonMessage = readonly JsonField[];

function message(fields: Record<string, readonly [number, JsonKind, "repeated"?]>): JsonMessage {
  return Object.entries(fields).map(([name, [number, kind, repeated]]) => {
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const names = [...new Set([name, snake])].map((text) => Buffer.from(`${text}"`));
    return { number, kind, isRepeated: repeated !== undefined, names };
  });
}

const anyValue: JsonMessage = message({
  stringValue: [1, "text"],
  boolValue: [2, "bool"],
  intValue: [3, "int64"],
  doubleValue: [4, "double"],
  arrayValue: [5, { message: () => arrayValue }],
  kvlistValue: [6, { message: () => keyValueList }],
  bytesValue: [7, "base64"],
});

const arrayValue = message({ values: [1, { message: () => anyValue }, "repeated"] });

const keyValue = message({ key: [1, "text"], value: [2, { message: () => anyValue }] });

const keyValueList = message({ values: [1, { message: () => keyValue }, "repeated"] });

const resource = message({ attributes: [1, { message: () => keyValue }, "repeated"] });

const scope = message({
  name: [1, "text"],
  version: [2, "text"],
  attributes: [3, { message: () => keyValue }, "repeated"],
  droppedAttributesCount: [4, "uint32"],
});

const logRecord = message({
  timeUnixNano: [1, "fixed64"],
  severityNumber: [2, "severity"],
  severityText: [3, "text"],
  body: [5, { message: () => anyValue }],
  attributes: [6, { message: () => keyValue }, "repeated"],
  droppedAttributesCount: [7, "uint32"],
  flags: [8, "fixed32"],
  traceId: [9, "hex"],
  spanId: [10, "hex"],
  observedTimeUnixNano: [11, "fixed64"],
  eventName: [12, "text"],
});

const scopeLogs = message({
  scope: [1, { message: () => scope }],
  logRecords: [2, { message: () => logRecord }, "repeated"],
});

const resourceLogs = message({
  resource: [1, { message: () => resource }],
  scopeLogs: [2, { message: () => scopeLogs }, "repeated"],
});

/** ExportLogsServiceRequest. Fields that make no difference to what is stored are left out, as unknown ones are. */
export const exportLogsRequest = message({
  resourceLogs: [1, { message: () => resourceLogs }, "repeated"],
});
