import type { Labels } from "@skald/model";
import { ProtoWriter } from "@skald/transport/protobuf";

/** One sample of a series. */
export interface TimedSample {
  readonly labels: Labels;
  /** Undefined: the series has ended. */
  readonly value: number | undefined;
  /** ms since the epoch */
  readonly timeMs: number;
}

const wire = { varint: 0, fixed64: 1, bytes: 2 };
/** The bits of the one NaN that says that a series has ended. */
const staleBits = 0x7ff0_0000_0000_0002n;

/** A `WriteRequest` of Prometheus remote write 1.0: a series for each sample, in their order. */
export function encodeWriteRequest(samples: readonly TimedSample[]): Uint8Array {
  const writer = new ProtoWriter(samples.length * 128);
  for (const sample of samples) {
    writer.tag(1, wire.bytes);
    writer.nested(sample, writeSeries);
  }
  return writer.finish();
}

function writeSeries(writer: ProtoWriter, sample: TimedSample): void {
  const { names, values } = sample.labels;
  for (let i = 0; i < names.length; i++) {
    writer.tag(1, wire.bytes);
    writer.nested([names[i] as string, values[i] as string] as const, writeLabel);
  }
  writer.tag(2, wire.bytes);
  writer.nested(sample, writeSample);
}

function writeLabel(writer: ProtoWriter, [name, value]: readonly [string, string]): void {
  writer.tag(1, wire.bytes);
  writer.text(name);
  writer.tag(2, wire.bytes);
  writer.text(value);
}

function writeSample(writer: ProtoWriter, { value, timeMs }: TimedSample): void {
  writer.tag(1, wire.fixed64);
  if (value === undefined) writer.int64(staleBits);
  else writer.double(value);
  writer.tag(2, wire.varint);
  writer.varint(timeMs);
}
