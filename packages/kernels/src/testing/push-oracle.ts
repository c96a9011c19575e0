import protobuf from "protobufjs";
import type { RawPush, RawPushLimits } from "../shared/raw-push.js";

/** A push as plain objects, for comparison; texts are latin1 so that no byte is lost. */
export interface PlainPush {
  readonly labels: string;
  readonly rows: readonly {
    readonly seconds: number;
    readonly nanos: number;
    readonly line: string;
    readonly pairs: readonly (readonly [string, string])[];
  }[];
}

export const wideLimits: RawPushLimits = {
  maxDecodedBytes: 64 << 20,
  maxStreams: 1 << 20,
  maxRows: 1 << 22,
  maxPairs: 1 << 22,
};

/** The columns as plain objects. */
export function toPlain(push: RawPush): PlainPush[] {
  const bytes = Buffer.from(push.bytes.buffer, push.bytes.byteOffset, push.bytes.byteLength);
  const text = (start: Uint32Array, length: Uint32Array, i: number) =>
    bytes.toString("latin1", start[i]!, start[i]! + length[i]!);
  return Array.from({ length: push.streamCount }, (_, stream) => ({
    labels: text(push.streamLabelStart, push.streamLabelLength, stream),
    rows: range(push.streamRowStart[stream]!, push.streamRowStart[stream + 1]!).map((row) => ({
      seconds: push.seconds[row]!,
      nanos: push.nanos[row]!,
      line: text(push.lineStart, push.lineLength, row),
      pairs: range(push.metaStart[row]!, push.metaStart[row + 1]!).map(
        (pair) =>
          [
            text(push.metaNameStart, push.metaNameLength, pair),
            text(push.metaValueStart, push.metaValueLength, pair),
          ] as const,
      ),
    })),
  }));
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

export function latin1(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** A row at a time of nanoseconds since the epoch, not negative. */
export function plainRow(
  nanoseconds: bigint,
  line: string,
  pairs: readonly (readonly [string, string])[] = [],
): PlainPush["rows"][number] {
  return {
    seconds: Number(nanoseconds / 1_000_000_000n),
    nanos: Number(nanoseconds % 1_000_000_000n),
    line: latin1(line),
    pairs,
  };
}

/** The push request as protobufjs knows it. */
export const pushRequestType = protobuf
  .parse(`
    syntax = "proto3";
    message PushRequest { repeated Stream streams = 1; string format = 2; }
    message Stream { string labels = 1; repeated Entry entries = 2; uint64 hash = 3; }
    message Timestamp { int64 seconds = 1; int32 nanos = 2; }
    message Entry { Timestamp timestamp = 1; bytes line = 2; repeated Pair structuredMetadata = 3; repeated Pair parsed = 4; }
    message Pair { string name = 1; string value = 2; }`)
  .root.lookupType("PushRequest");
