import type { IncomingMessage } from "node:http";
import type { Readable, Transform, TransformOptions } from "node:stream";
import zlib, { createGunzip, createInflate, type ZlibOptions, type ZstdOptions } from "node:zlib";
import { freeBuffer, invalidArgument, SkaldError, tooLarge } from "@skald/model";
import {
  type DoorFormat,
  type FieldMapping,
  maxRecordBytes,
  type NextPiece,
  type PieceOfBody,
  parseDoorEncoding,
} from "@skald/push";
import type { PushDoor } from "../http.js";
import { type PushResponse, RefusedRecords } from "../push-response.js";

export interface PiecesOptions {
  readonly request: IncomingMessage;
  readonly push: Pick<PushDoor, "serve">;
  readonly tenant: string;
  readonly format: DoorFormat;
  readonly mapping: FieldMapping;
  readonly isGone: () => boolean;
}

/** A piece is decoded and stored as soon as it has this size. */
const pieceBytes = 1024 * 1024;
/** A piece that has no end of a record grows to this size. */
const maxPieceBytes = maxRecordBytes + 64 * 1024;
const badRequest = 400;

/**
 * Stores a body of independent records piece by piece as it arrives, so that it may have any length. Each piece is a push of its
 * own: after one that cannot be stored the pieces before it stay, and the sender may send all again, because rows count once.
 */
export async function servePieces(options: PiecesOptions): Promise<PushResponse> {
  const { request, push, tenant, format, mapping, isGone } = options;
  const pieces = new BodyPieces(request);
  const refused = new RefusedRecords();
  let worst: PushResponse = { status: 204 };
  while (!pieces.isDone) {
    const answer = await push.serve(tenant, {
      isGone,
      read: async (_, book) => {
        const piece = await pieces.read(book);
        // What was read before the client left may have been waiting here.
        if (isGone()) throw clientLeft();
        return { format, mapping, contentEncoding: undefined, ...piece };
      },
    });
    const { report } = answer;
    if (report !== undefined) refused.add(report);
    if (answer.status > worst.status) worst = answer;
    if (report === undefined || answer.status > badRequest) break;
    pieces.advance(report.next);
  }
  const { text } = refused;
  return worst.report === undefined || text === "" ? worst : { ...worst, text };
}

/** A body of this many chunks must have this many bytes in each on average: handling a chunk costs more than its bytes. */
const freeChunks = 1024;
const minAverageBytes = 16;

/** The bytes of a body that belong to no piece yet. */
class BodyPieces {
  readonly #request: IncomingMessage;
  readonly #inflater: Inflater | undefined;
  readonly #chunks: AsyncIterator<Buffer>;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  #length = 0;
  #target = pieceBytes;
  #within: PieceOfBody["within"] = "";
  #skip = 0;
  #chunkCount = 0;
  #totalBytes = 0;
  #isEnded = false;
  isDone = false;

  constructor(request: IncomingMessage) {
    this.#request = request;
    this.#inflater = inflaterOf(request.headers["content-encoding"]);
    const { complete, destroyed } = request;
    if (destroyed && !complete) throw clientLeft();
    const stream: Readable = this.#inflater === undefined ? request : pipe(request, this.#inflater);
    this.#chunks = stream.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  }

  /** Reads on until there is enough for a piece, or all. */
  async read(book: (bytes: number) => void): Promise<{ body: Uint8Array; piece: PieceOfBody }> {
    if (this.#length > 0) book(this.#length);
    while (!this.#isEnded && this.#length < this.#target) {
      const { done, value } = await this.#nextChunk();
      if (done === true) this.#isEnded = true;
      else {
        book(value.length);
        this.#add(value);
      }
    }
    const body = this.#buffer.subarray(0, this.#length);
    return { body, piece: { isLast: this.#isEnded, within: this.#within } };
  }

  /** Goes on behind what was read of the last piece. */
  advance({ read, skip, within }: NextPiece): void {
    this.isDone = this.#isEnded;
    this.#buffer.copyWithin(0, read, this.#length);
    this.#length -= read;
    this.#skip = skip;
    this.#within = within;
    this.#target = read > 0 ? pieceBytes : Math.min(2 * this.#target, maxPieceBytes);
  }

  async #nextChunk(): Promise<IteratorResult<Buffer>> {
    try {
      return await this.#chunks.next();
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (typeof code !== "string" || !code.startsWith("Z")) throw clientLeft();
      const why = code === "Z_BUF_ERROR" ? "unexpected EOF" : (error as Error).message;
      throw invalidArgument(`${this.#request.headers["content-encoding"]}: ${why}`);
    }
  }

  #add(chunk: Buffer): void {
    this.#chunkCount++;
    this.#totalBytes += chunk.length;
    if (this.#chunkCount > freeChunks && this.#totalBytes < this.#chunkCount * minAverageBytes) {
      throw invalidArgument(
        `the request body arrives in too many pieces: after the first ${freeChunks} they must have ${minAverageBytes} bytes on average`,
      );
    }
    const packedBytes = this.#inflater?.bytesWritten ?? this.#totalBytes;
    const maxBytes = Math.max(freeBytes, maxRatio * packedBytes);
    if (this.#totalBytes > maxBytes) {
      throw tooLarge(`request body too large: it inflates to more than ${maxBytes} bytes`);
    }
    const skipped = Math.min(this.#skip, chunk.length);
    this.#skip -= skipped;
    const needed = this.#length + chunk.length - skipped;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#length += chunk.copy(this.#buffer, this.#length, skipped);
    freeBuffer(chunk);
  }
}

/** Undoes an encoding; `bytesWritten` counts what it was given. */
type Inflater = Transform & { readonly bytesWritten: number };

/** The bounds of what a body may inflate to, as for pushes. */
const freeBytes = 32 * 1024 * 1024;
const maxRatio = 32;

/**
 * What waits to be unpacked. A connection that is not read does not tell that the client has left, so a small body that inflates to
 * much is read at once.
 */
const aheadBytes = 1024 * 1024;
const ahead: TransformOptions & ZlibOptions & ZstdOptions = { writableHighWaterMark: aheadBytes };

function inflaterOf(header: string | undefined): Inflater | undefined {
  const encoding = parseDoorEncoding(header);
  if (encoding === "identity") return undefined;
  if (encoding === "gzip") return createGunzip(ahead);
  if (encoding === "zlib") return createInflate(ahead);
  // Node 20 lacks it, and a named import would keep the program from starting there.
  if (zlib.createZstdDecompress === undefined)
    throw invalidArgument("zstd bodies need a server on Node 22 or newer, send gzip");
  return zlib.createZstdDecompress(ahead);
}

function pipe(request: IncomingMessage, inflater: Transform): Readable {
  const onGone = () => inflater.destroy(clientLeft());
  request.once("error", onGone);
  request.once("close", () => {
    if (!request.complete) onGone();
  });
  return request.pipe(inflater);
}

function clientLeft(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}
