import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import { createGzip, gzip, gzipSync } from "node:zlib";
import { errorCodeOf, errorStatus, freeBuffer, SkaldError, textForClients } from "@skald/model";
import { challengesOf } from "../access/access.js";
import { type HttpBody, type HttpResponse, jsonResponse, textResponse } from "./route.js";

/** Answers smaller than this are not worth compressing. */
const minCompressBytes = 1400;
/** Up to this size (0.3 ms) an answer is compressed here: a hop to a thread costs more. */
const maxCompressHere = 32 * 1024;
const gzipOptions = { level: 1 };
const compressElsewhere = promisify(gzip);

/**
 * Writes an answer, compressed where the client takes that. A body in pieces is written piece by piece, no faster than
 * the client takes them, with other work in between. Does nothing when the client has left.
 */
export async function sendAnswer(
  options: { readonly compressResponses: boolean },
  response: ServerResponse,
  answer: HttpResponse,
): Promise<void> {
  if (response.destroyed) return;
  const body = await startBody(answer.body);
  if (response.destroyed) {
    if (isPieces(body)) await body.return();
    return;
  }
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  response.statusCode = answer.status;
  // A body that has an encoding was compressed when it was made.
  const isCompressed = response.hasHeader("content-encoding");
  if (options.compressResponses && !isCompressed && isWorthCompressing(body)) {
    response.setHeader("vary", "Accept-Encoding");
    if (acceptsEncoding(response.req.headers["accept-encoding"], "gzip")) {
      response.setHeader("content-encoding", "gzip");
      if (isPieces(body)) await writePieces(response, body, gzipped);
      else endResponse(response, await compress(body));
      return;
    }
  }
  if (isPieces(body)) await writePieces(response, body, (pieces) => pieces);
  else endResponse(response, body);
}

interface PieceReader extends AsyncIterable<Uint8Array> {
  next(): Promise<IteratorResult<Uint8Array, void>>;
  /** Ends the making of pieces, whether one was read or not. */
  return(): Promise<unknown>;
}

function isPieces(body: Uint8Array | PieceReader | undefined): body is PieceReader {
  return body !== undefined && !(body instanceof Uint8Array);
}

/** A body with a single piece is sent as a whole, with its length. */
async function startBody(
  body: HttpBody | undefined,
): Promise<Uint8Array | PieceReader | undefined> {
  if (typeof body === "string") return Buffer.from(body);
  if (body === undefined || body instanceof Uint8Array) return body;
  const pieces = readPieces(body);
  const first = await pieces.next();
  if (first.done === true) return new Uint8Array(0);
  const second = await pieces.next();
  if (second.done === true) return first.value;
  return putBack([first.value, second.value], pieces);
}

/** After this many bytes others get a turn of the event loop, so that making pieces holds nobody up for long. */
const turnBytes = 16 * 1024;

async function* readPieces(
  body: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  let bytes = 0;
  for await (const piece of body) {
    yield piece;
    bytes += piece.length;
    if (bytes < turnBytes) continue;
    bytes = 0;
    await nextTurn();
  }
}

function putBack(taken: Uint8Array[], rest: PieceReader): PieceReader {
  const reader: PieceReader = {
    next: () => {
      const value = taken.shift();
      return value === undefined ? rest.next() : Promise.resolve({ value });
    },
    return: () => rest.return(),
    [Symbol.asyncIterator]: () => reader as AsyncIterator<Uint8Array, void>,
  };
  return reader;
}

function compress(body: Uint8Array): Uint8Array | Promise<Uint8Array> {
  return body.length <= maxCompressHere
    ? gzipSync(body, gzipOptions)
    : compressElsewhere(body, gzipOptions);
}

function isWorthCompressing(
  body: Uint8Array | PieceReader | undefined,
): body is Uint8Array | PieceReader {
  return isPieces(body) || (body !== undefined && body.length >= minCompressBytes);
}

/** Writes pieces as fast as the client takes them; one that leaves midway is no failure. */
async function writePieces(
  response: ServerResponse,
  pieces: PieceReader,
  encode: (pieces: PieceReader) => PieceReader,
): Promise<void> {
  startResponse(response);
  if (response.req.method === "HEAD") {
    await pieces.return();
    endAfterRequest(response);
    return;
  }
  let hasLeft = false;
  let goOn = (): void => undefined;
  response.on("drain", () => goOn());
  response.once("close", () => {
    hasLeft = true;
    goOn();
  });
  let bytes = 0;
  written.set(response, bytes);
  try {
    for await (const piece of encode(pieces)) {
      if (hasLeft) return;
      bytes += piece.length;
      written.set(response, bytes);
      if (response.write(piece)) continue;
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
    }
  } catch (error) {
    if (hasLeft) return;
    // An answer that breaks off must not look whole.
    response.destroy();
    throw error;
  }
  if (!hasLeft) endAfterRequest(response);
}

async function* gzipped(pieces: PieceReader): AsyncGenerator<Uint8Array, void> {
  const gzip = createGzip(gzipOptions);
  // Its failure is one of reading.
  pipeline(pieces, gzip).catch(() => undefined);
  yield* gzip;
}

const written = new WeakMap<ServerResponse, number>();

/** Bytes of an answer in pieces so far; undefined for one that is sent as a whole. */
export function writtenBytes(response: ServerResponse): number | undefined {
  return written.get(response);
}

/**
 * Errors as plain text, those of authentication with a line feed at the end; as JSON to clients whose `Accept` takes nothing else.
 * Some say when to retry.
 */
export function errorAnswer(error: unknown, accept?: string): HttpResponse {
  const text = textForClients(error);
  const status = error instanceof SkaldError ? error.status : errorStatus[errorCodeOf(error)];
  const end = error instanceof SkaldError && error.code === "unauthenticated" ? "\n" : "";
  const answer = acceptsOnlyJson(accept)
    ? jsonResponse(status, { status: "error", error: text, ...factsOf(error) })
    : textResponse(status, text + end);
  if (!(error instanceof SkaldError)) return answer;
  const challenges = challengesOf(error);
  if (challenges !== undefined)
    return { ...answer, headers: { ...answer.headers, "www-authenticate": challenges } };
  if (error.retryAfterSeconds === undefined) return answer;
  const seconds = String(Math.ceil(error.retryAfterSeconds));
  return { ...answer, headers: { ...answer.headers, "retry-after": seconds } };
}

function acceptsOnlyJson(accept = ""): boolean {
  return /^\s*application\/json\s*(?:;[^,]*)?$/i.test(accept);
}

/** What an error knows beside its text: its place in a query, a hint, and the key of the limit that was reached. */
function factsOf(error: unknown): object {
  const detail = error instanceof SkaldError ? error.detail : undefined;
  const { position, hint, limit } = (detail ?? {}) as Readonly<Record<string, unknown>>;
  // Those that are undefined are left out of the JSON.
  return { position, hint, limit };
}

/** Whether an Accept-Encoding header takes an encoding: by name or by `*`, and not with a weight of zero. */
export function acceptsEncoding(
  header: string | string[] | undefined,
  encoding: "gzip" | "br",
): boolean {
  const weights = new Map<string, number>();
  for (const part of String(header ?? "").split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const weight = parameters.find((text) => text.startsWith("q="))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight));
  }
  return (weights.get(encoding) ?? weights.get("*") ?? 0) > 0;
}

/** A client may continue to send a request that is already answered for this time. */
const lingerMs = 1000;
/** If what it sends is not read: see `leaveUnread`. */
const unreadLingerMs = 200;
const noContent = 204;
const unread = new WeakSet<Readable>();

/** Lets the rest of a refused body stay in the socket when the request is answered: to read it would cost more than its bytes. */
export function leaveUnread(request: Readable, socket: Readable): void {
  unread.add(request);
  // Not at once: the request asks for more as soon as what was just read is parsed.
  setImmediate(() => socket.pause());
}

/**
 * Ends an answer whose status and headers are set. A client that is still sending gets the whole answer and
 * `connection: close` at once; its data is dropped for a second, or not read for a fifth of one, then the connection is cut.
 * Cutting it at once would reset it, and many clients would see the reset instead of the answer.
 */
export function endResponse(response: ServerResponse, body?: Uint8Array): void {
  if (response.statusCode !== noContent) response.setHeader("content-length", body?.length ?? 0);
  const { req: request } = response;
  if (isReceived(request) || request.destroyed) {
    response.end(request.method === "HEAD" ? undefined : body);
    return;
  }
  startResponse(response);
  if (body !== undefined && request.method !== "HEAD") response.write(body);
  endAfterRequest(response);
}

/** Sets the header `connection` of an answer, before its body is written. */
function startResponse(response: ServerResponse): void {
  const { req: request } = response;
  if (!isReceived(request) && !request.destroyed) response.setHeader("connection", "close");
}

/** Ends an answer whose body is written, as `endResponse` does. */
function endAfterRequest(response: ServerResponse): void {
  const { req: request } = response;
  if (isReceived(request) || request.destroyed) {
    response.end();
    return;
  }
  response.flushHeaders();
  // Node reads the rest when the answer has ended.
  if (unread.has(request)) response.once("finish", () => request.destroy());
  drop(request, () => response.end());
}

/** Whether the whole request has arrived. */
function isReceived(request: IncomingMessage): boolean {
  if (request.complete) return true;
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  return encoding === undefined && Number(length ?? 0) === 0;
}

function drop(request: IncomingMessage, done: () => void): void {
  const finish = (): void => {
    clearTimeout(timer);
    done();
  };
  const timer = setTimeout(finish, unread.has(request) ? unreadLingerMs : lingerMs);
  request.once("end", finish);
  request.once("close", finish);
  if (!unread.has(request)) request.on("data", freeBuffer);
}
