import { corrupt, type KernelError, tooLarge } from "../bytes/kernel-error.js";
import type { RawPushLimits } from "./raw-push.js";

/**
 * What can be wrong with a push body. Both forms of a kernel report one of these numbers and a position, so
 * that they refuse the same body with the same text; assembly/fault.ts repeats the numbers.
 */
export const pushFault = {
  /** Not a fault of the body: the columns were too short, the scan is done again with longer ones. */
  columnsFull: 1,
  tooManyStreams: 2,
  tooManyRows: 3,
  tooManyPairs: 4,
  protoTruncated: 10,
  protoVarint: 11,
  protoTag: 12,
  protoWireType: 13,
  protoGroup: 14,
  protoNanos: 15,
  protoSeconds: 16,
  jsonEnd: 30,
  jsonSyntax: 31,
  jsonString: 32,
  jsonEscape: 33,
  jsonDepth: 34,
  jsonBody: 36,
  jsonStreams: 37,
  jsonStream: 38,
  jsonLabels: 39,
  jsonValues: 40,
  jsonEntry: 41,
  jsonTimestampType: 42,
  jsonTimestamp: 43,
  jsonLine: 44,
  jsonMetadata: 45,
  jsonMetadataValue: 46,
} as const;

/** The error of a fault at a byte position of the decoded body. */
export function pushFaultError(
  fault: number,
  position: number,
  limits: RawPushLimits,
): KernelError {
  switch (fault) {
    case pushFault.tooManyStreams:
      return tooLarge(`push has more than ${limits.maxStreams} streams; send smaller batches`);
    case pushFault.tooManyRows:
      return tooLarge(`push has more than ${limits.maxRows} entries; send smaller batches`);
    case pushFault.tooManyPairs:
      return tooLarge(
        `push has more than ${limits.maxPairs} structured metadata pairs; send smaller batches`,
      );
    default:
      return corrupt(`${corruptTexts.get(fault) ?? "malformed body"} at byte ${position}`);
  }
}

const corruptTexts: ReadonlyMap<number, string> = new Map([
  [pushFault.protoTruncated, "protobuf: unexpected end of message"],
  [pushFault.protoVarint, "protobuf: varint is too long"],
  [pushFault.protoTag, "protobuf: illegal field tag"],
  [pushFault.protoWireType, "protobuf: wrong wire type of a known field"],
  [pushFault.protoGroup, "protobuf: groups are not closed or nested too deeply"],
  [pushFault.protoNanos, "protobuf: timestamp nanos must lie within 0 and 999999999"],
  [pushFault.protoSeconds, "protobuf: timestamp seconds do not fit into 64 bits of nanoseconds"],
  [pushFault.jsonEnd, "json: unexpected end of input"],
  [pushFault.jsonSyntax, "json: unexpected character"],
  [pushFault.jsonString, "json: string is not closed"],
  [pushFault.jsonEscape, "json: illegal escape in a string"],
  [pushFault.jsonDepth, "json: values are nested too deeply"],
  [pushFault.jsonBody, "json: the body must be an object"],
  [pushFault.jsonStreams, "json: streams must be an array"],
  [pushFault.jsonStream, "json: each item of streams must be an object"],
  [pushFault.jsonLabels, "json: stream must be an object of labels"],
  [pushFault.jsonValues, "json: values must be an array"],
  [pushFault.jsonEntry, "json: each item of values must be an array of timestamp and line"],
  [
    pushFault.jsonTimestampType,
    "json: timestamp must be a string of decimal digits, not another type",
  ],
  [pushFault.jsonTimestamp, "json: timestamp must be a 64-bit decimal number of nanoseconds"],
  [pushFault.jsonLine, "json: line must be a string"],
  [pushFault.jsonMetadata, "json: structured metadata must be an object of strings"],
  [pushFault.jsonMetadataValue, "json: structured metadata values must be strings"],
]);

/** Thrown inside the twins to leave a scan; never seen by callers. */
export class PushFaultSignal extends Error {
  readonly fault: number;
  readonly position: number;

  constructor(fault: number, position: number) {
    super("push fault");
    this.fault = fault;
    this.position = position;
  }
}
