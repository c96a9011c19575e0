import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { status } from "@grpc/grpc-js";
import { invalidArgument, SkaldError } from "@skald/model";
import { readAll } from "@skald/transport/connections";

/**
 * A unary call of a client from outside. Its message is read as it arrives and stays compressed, so that the handler books
 * memory before it is used, and inflates and parses where it wants to: the library would do both by itself.
 */
export interface ByteCall {
  /** `/package.Service/Method` */
  readonly path: string;
  /** The metadata of the call is among them, its names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Whether the client has left. */
  isGone(): boolean;
  /** Reads the message, at most `maxBytes` as sent; see `readAll` for `book` and `take`. */
  read(
    maxBytes: number,
    book: (chunkBytes: number) => void,
    take: (length: number) => Uint8Array,
  ): Promise<ByteMessage>;
}

/** A message as it was sent. */
export interface ByteMessage {
  readonly encoding: "identity" | "gzip";
  readonly bytes: Uint8Array;
}

/** The answer to a call: a message, or a status other than OK with its text. */
export interface ByteAnswer {
  readonly code: status;
  readonly message?: Uint8Array;
  readonly text?: string | undefined;
  /** An encoded `google.rpc.Status`. */
  readonly details?: Uint8Array;
  /** The answer over HTTP that means the same, for metrics. */
  readonly httpStatus: number;
}

/** Answers a call; a rejection is a fault of the program. */
export type ByteHandler = (call: ByteCall) => Promise<ByteAnswer>;

/** A flag, and the length of the message. */
const frameBytes = 5;
const contentType = "application/grpc";
const accepted = "identity,gzip";
/** The status and its text are in one block of headers, and clients take 8 KiB of those. */
const maxTextBytes = 3_000;

/** Serves one call: `serve` makes the answer. */
export async function serveByteCall(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  readTimeoutMs: number,
  serve: ByteHandler,
): Promise<ByteAnswer | undefined> {
  // An error of the stream always comes with its end, which the call sees.
  stream.on("error", () => undefined);
  if (headers["content-type"]?.startsWith(contentType) !== true) {
    stream.respond({ ":status": 415 }, { endStream: true });
    return undefined;
  }
  const call = callOf(stream, headers, readTimeoutMs);
  const answer = unknownEncoding(headers) ?? (await serve(call));
  if (!call.isGone()) send(stream, answer);
  return answer;
}

function callOf(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  readTimeoutMs: number,
): ByteCall {
  const isGone = () => stream.destroyed || stream.closed || stream.aborted;
  return {
    path: headers[":path"] as string,
    headers,
    isGone,
    read: async (maxBytes, book, take) => {
      const isWhole = () => stream.readableEnded;
      const limits = { maxBytes: maxBytes + frameBytes, timeoutMs: readTimeoutMs };
      const frame = await readAll(stream, { ...limits, book, take, isWhole });
      // The stream of a client that left ends like any other.
      if (isGone()) throw new SkaldError("cancelled", "the call was cancelled by the client");
      return messageOf(frame, headers["grpc-encoding"]);
    },
  };
}

/** Takes the frame off the message of a unary call. */
function messageOf(frame: Uint8Array, encoding: unknown = "identity"): ByteMessage {
  const { length } = frame;
  if (length < frameBytes) throw invalidArgument(`the call has no message: ${length} bytes came`);
  const view = new DataView(frame.buffer, frame.byteOffset, length);
  const stated = view.getUint32(1);
  const bytes = frame.subarray(frameBytes);
  if (stated !== bytes.length) {
    throw invalidArgument(
      `the message of the call should have ${stated} bytes, and ${bytes.length} came`,
    );
  }
  const flag = view.getUint8(0);
  if (flag === 0) return { encoding: "identity", bytes };
  if (flag === 1 && encoding === "gzip") return { encoding, bytes };
  throw invalidArgument("the message is said to be compressed, and grpc-encoding does not say how");
}

function unknownEncoding({ "grpc-encoding": encoding }: IncomingHttpHeaders) {
  if (encoding === undefined || encoding === "identity" || encoding === "gzip") return undefined;
  const text = `messages in grpc-encoding "${String(encoding).slice(0, 64)}" are not read; use gzip`;
  return { code: status.UNIMPLEMENTED, text, httpStatus: 400 };
}

function send(stream: ServerHttp2Stream, { code, message, text = "", details }: ByteAnswer): void {
  const start = { ":status": 200, "content-type": contentType, "grpc-accept-encoding": accepted };
  const end = {
    "grpc-status": String(code),
    ...(text === "" ? {} : { "grpc-message": escapeText(text) }),
    ...(details === undefined
      ? {}
      : { "grpc-status-details-bin": Buffer.from(details).toString("base64") }),
  };
  if (message === undefined) {
    stream.respond({ ...start, ...end }, { endStream: true });
    dropRest(stream);
    return;
  }
  stream.respond(start, { waitForTrailers: true });
  stream.once("wantTrailers", () => stream.sendTrailers(end));
  const frame = Buffer.alloc(frameBytes + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, frameBytes);
  stream.end(frame, () => dropRest(stream));
}

/** Tells a client that still sends that nobody reads it any more, as RFC 9113 has it in section 8.1. */
function dropRest(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  stream.close(constants.NGHTTP2_NO_ERROR);
  // A stream with bytes that nobody takes would keep its connection open.
  stream.resume();
}

/** Printable ASCII stays; all else and `%` become `%XX`. */
function escapeText(text: string): string {
  const bytes = Buffer.from(text).subarray(0, maxTextBytes);
  return bytes
    .toString("latin1")
    .replace(
      /[^ -$&-~]/g,
      (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
    );
}
