import { errorCodeOf, internal } from "@skald/model";
import type { GrpcConnection, GrpcHandler, GrpcStreamHandler, Parts } from "@skald/transport/grpc";
import { decodeMessage, encodeMessage, type MessageCodec } from "@skald/transport/protobuf";
import type { CallOptions } from "../call.js";

/** How a message is sent, and read again. */
export interface Wire<T> {
  encode(value: T): Parts;
  decode(bytes: Uint8Array): T;
}

/** A method of a service, the same on both sides. */
export interface Method<Request, Answer> {
  /** `/skald.v1.Ingester/Push` */
  readonly path: string;
  readonly request: Wire<Request>;
  readonly answer: Wire<Answer>;
}

export function wireOf<T>(codec: MessageCodec<T>): Wire<T> {
  return {
    encode: (value) => [encodeMessage(codec, value)],
    decode: (bytes) => decodeMessage(codec, bytes),
  };
}

/** Bytes that whoever asked for them reads; nobody in between looks inside. */
export const encodedWire: Wire<Uint8Array<ArrayBuffer>> = {
  encode: (bytes) => [bytes],
  decode: ({ buffer, byteOffset, length }) =>
    new Uint8Array(buffer as ArrayBuffer, byteOffset, length),
};

/** Answers calls of a method. A request that is damaged is invalid_argument. */
export function serve<Request, Answer>(
  { request, answer }: Method<Request, Answer>,
  run: (request: Request, options: CallOptions) => Promise<Answer>,
): GrpcHandler {
  return async (bytes, call) => answer.encode(await run(request.decode(bytes), call));
}

/** Calls a method. */
export async function callRemote<Request, Answer>(
  connection: GrpcConnection,
  { path, request, answer }: Method<Request, Answer>,
  value: Request,
  options: CallOptions,
): Promise<Answer> {
  const { signal, deadlineMs } = options;
  const bytes = await connection.call(path, request.encode(value), { signal, deadlineMs });
  return read(connection, answer, bytes);
}

/** Answers calls of a method whose answers are of any number of messages. */
export function serveStream<Request, Answer>(
  { request, answer }: Method<Request, Answer>,
  run: (request: Request, options: CallOptions) => AsyncIterable<Answer>,
): GrpcStreamHandler {
  return async function* (bytes, call) {
    for await (const one of run(request.decode(bytes), call)) yield answer.encode(one);
  };
}

/** Calls a method whose answers are of any number of messages. */
export async function* streamRemote<Request, Answer>(
  connection: GrpcConnection,
  { path, request, answer }: Method<Request, Answer>,
  value: Request,
  { signal, deadlineMs }: CallOptions,
): AsyncGenerator<Answer, void> {
  const messages = connection.stream(path, request.encode(value), { signal, deadlineMs });
  for await (const bytes of messages) yield read(connection, answer, bytes);
}

function read<Answer>(
  { address }: GrpcConnection,
  answer: Wire<Answer>,
  bytes: Uint8Array,
): Answer {
  try {
    return answer.decode(bytes);
  } catch (cause) {
    if (errorCodeOf(cause) !== "invalid_argument") throw cause;
    // It is no fault of whoever called.
    throw internal(`${address} gave an answer that makes no sense`, { cause });
  }
}
