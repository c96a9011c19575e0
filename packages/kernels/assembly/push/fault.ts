/** Numbers of src/push-fault.ts: what is wrong with a push body, and where. */

export const COLUMNS_FULL = 1;
export const PROTO_TRUNCATED = 10;
export const PROTO_VARINT = 11;
export const PROTO_TAG = 12;
export const PROTO_WIRE_TYPE = 13;
export const PROTO_GROUP = 14;
export const PROTO_NANOS = 15;
export const PROTO_SECONDS = 16;
export const JSON_END = 30;
export const JSON_SYNTAX = 31;
export const JSON_STRING = 32;
export const JSON_ESCAPE = 33;
export const JSON_DEPTH = 34;
export const JSON_BODY = 36;
export const JSON_STREAMS = 37;
export const JSON_STREAM = 38;
export const JSON_LABELS = 39;
export const JSON_VALUES = 40;
export const JSON_ENTRY = 41;
export const JSON_TIMESTAMP_TYPE = 42;
export const JSON_TIMESTAMP = 43;
export const JSON_LINE = 44;
export const JSON_METADATA = 45;
export const JSON_METADATA_VALUE = 46;

/** The fault that ended the scan, 0 while there is none. */
export let fault: i32 = 0;
/** Where it was seen: a pointer. */
export let faultAt: usize = 0;

export function clearFault(): void {
  fault = 0;
  faultAt = 0;
}

/** Notes a fault and returns false, so that a reader can `return fail(..)`. */
export function fail(code: i32, position: usize): bool {
  fault = code;
  faultAt = position;
  return false;
}
