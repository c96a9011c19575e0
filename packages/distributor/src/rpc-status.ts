import { ProtoWriter } from "@skald/transport/protobuf";

/** The parts of a `google.rpc.Status` that OTLP uses. */
export interface RpcStatus {
  /** Absent over HTTP, whose status says it. */
  readonly code?: number;
  readonly message: string;
  /** Seconds after which a retry may succeed: a `google.rpc.RetryInfo`. */
  readonly retryAfterSeconds?: number | undefined;
}

const lengthDelimited = 2;
const varint = 0;
const retryInfoType = "type.googleapis.com/google.rpc.RetryInfo";

/** The protobuf form of a `google.rpc.Status`, which OTLP answers errors with. */
export function encodeRpcStatus({ code, message, retryAfterSeconds }: RpcStatus): Uint8Array {
  const writer = new ProtoWriter();
  if (code !== undefined) {
    writer.tag(1, varint);
    writer.varint(code);
  }
  writer.tag(2, lengthDelimited);
  writer.text(message);
  if (retryAfterSeconds !== undefined) {
    writer.tag(3, lengthDelimited);
    writer.nested(retryAfterSeconds, writeRetryInfo);
  }
  return writer.finish();
}

/** A `google.protobuf.Any` with the pause, which is a `google.protobuf.Duration`. */
function writeRetryInfo(any: ProtoWriter, seconds: number): void {
  any.tag(1, lengthDelimited);
  any.text(retryInfoType);
  any.tag(2, lengthDelimited);
  any.nested(seconds, (info) => {
    info.tag(1, lengthDelimited);
    info.nested(seconds, (duration) => {
      duration.tag(1, varint);
      duration.varint(Math.ceil(seconds));
    });
  });
}
