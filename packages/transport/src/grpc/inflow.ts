import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { constants } from "node:http2";
import { type SkaldError, unavailable } from "@skald/model";
import { errorOfTrailers } from "./errors.js";
import { FrameReader } from "./message/frames.js";
import { PieceGatherer, pieceBytes, pieceOverheadBytes } from "./message/pieces.js";
import { checkVersion } from "./protocol.js";

/** Bytes of messages that may wait for who reads them; what comes beyond stays with the other side. */
const maxWaitingBytes = 256 * 1024;

export interface InflowOptions {
  readonly address: string;
  /** Largest message; more is too_large before there is memory for it. */
  readonly maxBytes: number;
}

/** The messages of an answer that has any number of them, taken from the wire no faster than they are read. */
export class Inflow {
  readonly #stream: ClientHttp2Stream;
  readonly #messages: Uint8Array[] = [];
  #waitingBytes = 0;
  #ended: { readonly error?: unknown } | undefined;
  #wake: () => void = () => undefined;

  constructor(stream: ClientHttp2Stream, { address, maxBytes }: InflowOptions) {
    this.#stream = stream;
    const makeGatherer = () => new PieceGatherer(maxBytes, "max_recv_msg_size");
    let gatherer: PieceGatherer | undefined;
    const frames = new FrameReader(pieceBytes + pieceOverheadBytes, (frame) => {
      gatherer ??= makeGatherer();
      const message = gatherer.add(frame);
      if (message === undefined) return;
      gatherer = undefined;
      this.#add(message);
    });
    readAnswer(stream, {
      address,
      isOurs: true,
      onData: (chunk) => frames.add(chunk),
      onEnd: (error) => {
        const isCut = error === undefined && gatherer !== undefined;
        this.end(
          isCut ? unavailable(`${address}: the call ended in the middle of a message`) : error,
        );
      },
    });
  }

  /** Nothing follows what is there; with an error, that follows. Of consequence once. */
  end(error?: unknown): void {
    this.#ended ??= error === undefined ? {} : { error };
    this.#wake();
  }

  /** The messages until the end. Throws what it ended with. */
  async *read(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const message = this.#messages.shift();
      if (message !== undefined) {
        this.#waitingBytes -= message.length;
        yield message;
      } else if (this.#ended !== undefined) {
        if ("error" in this.#ended) throw this.#ended.error;
        return;
      } else {
        this.#stream.resume();
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #add(message: Uint8Array): void {
    // What is in one piece is in memory that the next one is read into.
    this.#messages.push(Uint8Array.from(message));
    this.#waitingBytes += message.length;
    if (this.#waitingBytes >= maxWaitingBytes) this.#stream.pause();
    this.#wake();
  }
}

export interface AnswerReader {
  readonly address: string;
  /** Whether the other side must say that it speaks our protocol. */
  readonly isOurs: boolean;
  /** Takes what came; the call ends with what it throws. */
  readonly onData: (chunk: Buffer) => void;
  /** Told of the end, with what the call failed with if it did; the first time counts. */
  readonly onEnd: (error?: unknown) => void;
}

/** Reads an answer until its end. */
export function readAnswer(stream: ClientHttp2Stream, reader: AnswerReader): void {
  const { address, isOurs, onData, onEnd } = reader;
  let trailers: IncomingHttpHeaders | undefined;
  let failure: Error | undefined;
  const attempt = (step: () => void) => {
    try {
      step();
    } catch (error) {
      onEnd(error);
      stream.close(constants.NGHTTP2_CANCEL);
    }
  };
  stream.on("response", (headers) => {
    if ("grpc-status" in headers) trailers = headers;
    if (isOurs) attempt(() => checkVersion(headers, address));
  });
  stream.on("trailers", (headers) => {
    trailers = headers;
  });
  stream.on("data", (chunk) => attempt(() => onData(chunk)));
  stream.on("error", (error) => {
    failure = error;
  });
  const finish = () => {
    if (trailers !== undefined) onEnd(errorOfTrailers(trailers, address));
    else if (stream.closed) onEnd(lostError(stream, address, failure));
  };
  stream.on("end", () => {
    finish();
    // The other side said all that it had to say, and may still be sent something.
    if (!stream.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
  });
  stream.on("close", finish);
}

/** The failure of a call of which no end was heard. */
export function lostError(
  { rstCode }: ClientHttp2Stream,
  address: string,
  cause?: Error,
): SkaldError {
  const why = cause?.message ?? `the call was cut off (HTTP/2 code ${rstCode})`;
  return unavailable(`${address}: ${why}`, { cause });
}
