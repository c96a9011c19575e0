import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { freeBuffer, invalidArgument, quote, SkaldError, tooLarge } from "@skald/model";
import { leaveUnread } from "./answer.js";
import { markRequest, pathOf, routeName } from "./observe.js";

/**
 * Reads a request body of at most `maxBytes`. A larger declared length is refused before a byte is read. Rejects with
 * `cancelled` if the client leaves. A refused body stays unread: answer through `endResponse`, which drops it. See `readAll`.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  book?: (chunkBytes: number) => void,
  take?: (length: number) => Uint8Array,
): Promise<Uint8Array> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes) throw bodyTooLarge(maxBytes);
  if (request.destroyed && !request.complete) throw clientLeft();
  const body = await readAll(request, {
    ...{ maxBytes, book, take, declared },
    ...(request.httpVersionMajor === 1 ? { source: request.socket } : {}),
    isWhole: () => request.complete,
  });
  markRequest(request, routeName(pathOf(request)));
  return body;
}

export interface ReadOptions {
  readonly maxBytes: number;
  /** Time in which all must have arrived; 0: no limit. */
  readonly timeoutMs?: number;
  /** Called with the size of each chunk before the chunk is kept; refuses the body by throwing. */
  readonly book?: ((chunkBytes: number) => void) | undefined;
  /** Allocates the memory of a body of several chunks. */
  readonly take?: ((length: number) => Uint8Array) | undefined;
  /** What the stream is parsed from, which a pause of the stream does not stop. */
  readonly source?: Readable | undefined;
  /** Bytes that the sender announced; 0: none. */
  readonly declared?: number | undefined;
  /** Whether a stream that was closed had given everything. */
  readonly isWhole: () => boolean;
}

/**
 * Reads a stream to its end, whose chunks must be nobody else's: their memory is given back. It is refused as too_large when it
 * passes `maxBytes`, as unavailable when more than 1 MiB of it arrives at less than 64 KiB/s for ten seconds or it takes longer
 * than `timeoutMs`, and as invalid_argument when it arrives byte by byte, and the rest is not read then.
 */
export function readAll(stream: Readable, options: ReadOptions): Promise<Uint8Array> {
  const { maxBytes, timeoutMs = 0, book = () => undefined, isWhole } = options;
  const { take = Buffer.allocUnsafe, declared = 0, source = stream } = options;
  return new Promise((resolve, reject) => {
    const chunks = new Chunks(take, declared);
    let count = 0;
    let pace: NodeJS.Timeout | undefined;
    const onLate = () => refuse(new SkaldError("unavailable", tooLate(timeoutMs)));
    const late = timeoutMs > 0 ? setTimeout(onLate, timeoutMs) : undefined;
    const stopTimers = (): void => {
      clearInterval(pace);
      clearTimeout(late);
    };
    let isRefused = false;
    const refuse = (error: unknown): void => {
      isRefused = true;
      stopTimers();
      stream.off("data", onData);
      stream.pause();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      // A chunk that was copied is empty.
      const { length } = chunk;
      if (chunks.sizeBytes + length > maxBytes) {
        refuse(bodyTooLarge(maxBytes));
        return;
      }
      count++;
      if (count > freeChunks && chunks.sizeBytes + length < count * minAverageBytes) {
        if (source !== stream) leaveUnread(stream, source);
        refuse(invalidArgument(tooManyChunks));
        return;
      }
      try {
        book(length);
        chunks.add(chunk);
      } catch (error) {
        refuse(error);
        return;
      }
      if (chunks.sizeBytes > freeBytes && reading.isOver(length)) {
        stream.pause();
        reading.goOn(() => isRefused || stream.resume());
      }
      if (chunks.sizeBytes > smallBytes) {
        pace ??= watchPace(chunks, () => refuse(new SkaldError("unavailable", tooSlow)));
      }
    };
    stream.on("data", onData);
    stream.once("end", () => {
      stopTimers();
      resolve(chunks.concat());
    });
    // An error of a half-read stream always means that the rest does not come.
    stream.once("error", () => reject(clientLeft()));
    stream.once("close", () => {
      stopTimers();
      if (!isWhole()) reject(clientLeft());
    });
  });
}

/** A body up to this size waits for no turn. */
const freeBytes = 64 * 1024;
/**
 * Bodies take this much together between two turns of the event loop, and a chunk each. The event loop accepts one connection in a turn: with a
 * MiB, who connects while forty clients begin to send waits 0.2 to 0.3 s.
 */
const maxTurnBytes = 128 * 1024;

/** What all bodies took in this turn of the event loop; a hundred fast senders shall not keep others waiting. */
class Reading {
  #bytes = 0;
  readonly #waiting: (() => void)[] = [];

  /** Counts a chunk; whether its body waits for the next turn. */
  isOver(bytes: number): boolean {
    if (this.#bytes === 0) setImmediate(() => this.#end());
    this.#bytes += bytes;
    return this.#bytes > maxTurnBytes;
  }

  /** Calls this in the next turn. */
  goOn(resume: () => void): void {
    this.#waiting.push(resume);
  }

  #end(): void {
    this.#bytes = 0;
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

const reading = new Reading();

/** A body of this many chunks must have this many bytes in each on average: handling a chunk costs more than its bytes. */
const freeChunks = 64;
const minAverageBytes = 16;
const tooManyChunks = `the request body arrives in too many pieces: after the first ${freeChunks} they must have ${minAverageBytes} bytes on average`;

/** What is kept of a larger body is worth so much that it must keep arriving. */
const smallBytes = 1024 * 1024;
const minBytesPerSecond = 64 * 1024;
const pacePeriodMs = 5000;
/** One slow period may be the fault of this process, which was busy. */
const maxSlowPeriods = 2;
const tooSlow = `the request body arrives too slowly: after the first ${smallBytes} bytes at least ${minBytesPerSecond} bytes a second are needed`;

function tooLate(timeoutMs: number): string {
  return `the request did not arrive within ${timeoutMs} ms (server.http_server_read_timeout)`;
}

function watchPace(chunks: Chunks, onSlow: () => void): NodeJS.Timeout {
  let before = chunks.sizeBytes;
  let slow = 0;
  return setInterval(() => {
    const bytes = chunks.sizeBytes - before;
    before = chunks.sizeBytes;
    slow = bytes < (minBytesPerSecond * pacePeriodMs) / 1000 ? slow + 1 : 0;
    if (slow === maxSlowPeriods) onSlow();
  }, pacePeriodMs).unref();
}

/** What arrives of a body without memory of its own is copied to buffers, each as large as all before it, within these bounds. */
const minSlabBytes = 4 * 1024;
/** The system takes back so large a buffer as soon as it is free; smaller ones would be left in the allocator by the hundred. */
const maxSlabBytes = 1024 * 1024;

const longerThanDeclared = "the request body is longer than its header content-length says";

/** A body has memory of its own once so large a part of what was announced has arrived; an announcement alone reserves nothing. */
const arrivedPart = 1 / 8;

/** What arrived before a body had its own memory moves there with the next chunks, for each this many bytes: 12 MB at once take 25 ms. */
const movedPerChunk = 256 * 1024;

/**
 * The chunks of a body in few buffers, even if the client sends tiny ones. All but the first are copied as they arrive: they would live long
 * enough to be freed only when the whole heap is collected.
 */
class Chunks {
  readonly #take: (length: number) => Uint8Array;
  readonly #declared: number;
  /** What has no place in the own memory yet, in order: the first chunk, then slabs. */
  readonly #parts: Buffer[] = [];
  sizeBytes = 0;
  /** The last part, and how much of it is in use. */
  #slab: Buffer = Buffer.alloc(0);
  #usedBytes = 0;
  #own: Uint8Array | undefined;
  /** Where the first of the parts goes, and where the last one ends. */
  #movedBytes = 0;
  #keptBytes = 0;

  constructor(take: (length: number) => Uint8Array, declared: number) {
    this.#take = take;
    this.#declared = declared;
  }

  add(chunk: Buffer): void {
    const at = this.sizeBytes;
    this.sizeBytes += chunk.length;
    if (this.#own !== undefined) {
      if (this.sizeBytes > this.#own.length) throw invalidArgument(longerThanDeclared);
      this.#own.set(chunk, at);
      freeBuffer(chunk);
      this.#move(this.#own, movedPerChunk);
      return;
    }
    this.#keep(chunk);
    const declared = this.#declared;
    if (this.sizeBytes < declared && this.sizeBytes >= declared * arrivedPart)
      this.#own = this.#take(declared);
  }

  concat(): Uint8Array {
    const [only] = this.#parts;
    if (this.#own === undefined && only?.length === this.sizeBytes) return only;
    const own = this.#own ?? this.#take(this.sizeBytes);
    this.#move(own, this.sizeBytes);
    return own.subarray(0, this.sizeBytes);
  }

  #keep(chunk: Buffer): void {
    this.#keptBytes = this.sizeBytes;
    if (this.#parts.length === 0) {
      this.#parts.push(chunk);
      return;
    }
    for (let from = 0; from < chunk.length; ) {
      if (this.#usedBytes === this.#slab.length) this.#addSlab();
      const copied = chunk.copy(this.#slab, this.#usedBytes, from);
      this.#usedBytes += copied;
      from += copied;
    }
    freeBuffer(chunk);
  }

  #addSlab(): void {
    const bytes = Math.max(this.sizeBytes, this.#declared * arrivedPart, minSlabBytes);
    this.#slab = Buffer.allocUnsafeSlow(Math.ceil(Math.min(bytes, maxSlabBytes)));
    this.#usedBytes = 0;
    this.#parts.push(this.#slab);
  }

  /** Moves parts to the own memory, about this many bytes of them. */
  #move(own: Uint8Array, maxBytes: number): void {
    const endBytes = this.#movedBytes + maxBytes;
    let count = 0;
    for (; count < this.#parts.length && this.#movedBytes < endBytes; count++) {
      const part = this.#parts[count] as Buffer;
      const bytes = part.subarray(0, this.#keptBytes - this.#movedBytes);
      own.set(bytes, this.#movedBytes);
      this.#movedBytes += bytes.length;
      freeBuffer(part);
    }
    if (count > 0) this.#parts.splice(0, count);
  }
}

function clientLeft(): SkaldError {
  return new SkaldError("cancelled", "the request was cancelled by the client");
}

function bodyTooLarge(maxBytes: number): SkaldError {
  return tooLarge(`request body too large: limit is ${maxBytes} bytes`);
}

/** The most fields of a request: more than a client needs, few enough to be read in some milliseconds. */
const maxFields = 16_384;
/** The largest form: reading one takes this thread about 10 ms. */
export const maxFormBytes = 1024 * 1024;
/** The longest field as sent: the longest query has 384 KiB if every byte is escaped. */
const maxFieldBytes = 512 * 1024;
const ampersand = 0x26;
const plus = 0x2b;
const equals = 0x3d;
const blank = 0x20;
const percent = 0x25;
/** By character of an escape; 256: none. */
const hexDigits = Uint16Array.from({ length: 256 }, (_, byte) => {
  const digit = "0123456789abcdef".indexOf(String.fromCharCode(byte).toLowerCase());
  return digit < 0 ? 256 : digit;
});

/**
 * Reads the fields of a form body or a query string, whose bytes it overwrites. Throws invalid_argument when there are more than
 * 16384, one is longer than 512 KiB, or one has a percent sign that begins no escape. The parser of URLSearchParams gives the same, in ten times the time where all is escaped.
 */
export function parseForm(form: Buffer): URLSearchParams {
  const { bytes, ends, isAscii } = unescapeForm(form);
  const params = new URLSearchParams();
  const all = isAscii ? bytes.toString("latin1") : "";
  const textOf = (from: number, to: number) =>
    isAscii ? all.slice(from, to) : bytes.toString("utf8", from, to);
  let from = 0;
  for (let i = 0; i < ends.length; i += 2) {
    const nameEnd = ends[i] as number;
    const to = ends[i + 1] as number;
    params.append(textOf(from, nameEnd), textOf(nameEnd, to));
    from = to;
  }
  return params;
}

interface Unescaped {
  /** Names and values, one behind the other. */
  readonly bytes: Buffer;
  /** Where each name and each value ends, by turns. */
  readonly ends: readonly number[];
  readonly isAscii: boolean;
}

/** Works in place: what is read never is shorter than what it stands for. */
function unescapeForm(form: Buffer): Unescaped {
  const ends: number[] = [];
  let used = 0;
  let fields = 0;
  let from = 0;
  let nameEnd = -1;
  let allBits = 0;
  for (let at = 0; at <= form.length; at++) {
    let byte = at < form.length ? (form[at] as number) : ampersand;
    if (byte === ampersand) {
      if (at - from > maxFieldBytes) throw fieldTooLong();
      if (++fields > maxFields) throw tooManyFields();
      if (at > from) ends.push(nameEnd < 0 ? used : nameEnd, used);
      from = at + 1;
      nameEnd = -1;
      continue;
    }
    if (byte === equals && nameEnd < 0) {
      nameEnd = used;
      continue;
    }
    if (byte === plus) byte = blank;
    else if (byte === percent) {
      const high = hexDigits[form[at + 1] ?? 0] as number;
      const low = hexDigits[form[at + 2] ?? 0] as number;
      if ((high | low) > 0xf) throw invalidEscape(form, at, nameEnd >= 0);
      byte = high * 16 + low;
      at += 2;
    }
    allBits |= byte;
    form[used++] = byte;
  }
  return { bytes: form.subarray(0, used), ends, isAscii: allBits < 0x80 };
}

function fieldTooLong(): SkaldError {
  return invalidArgument(`input size too long: limit of a parameter is ${maxFieldBytes} bytes`);
}

function tooManyFields(): SkaldError {
  return invalidArgument(`too many parameters: limit is ${maxFields}`);
}

function invalidEscape(form: Buffer, at: number, isValue: boolean): SkaldError {
  const end = form.indexOf(ampersand, at);
  const text = form.toString("utf8", at, Math.min(at + 3, end < 0 ? form.length : end));
  return invalidArgument(`invalid URL escape ${quote(isValue ? text : text.replace(/=.*/s, ""))}`);
}
