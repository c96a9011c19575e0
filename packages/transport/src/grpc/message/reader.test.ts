import { describe, expect, it } from "@jest/globals";
import { testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { frameHead } from "./frames.js";
import { cutPieces, PieceGatherer, smallFrame } from "./pieces.js";
import { MessageReader } from "./reader.js";

const seed = testSeed();

function readerOf(maxBytes = 1000): MessageReader {
  return new MessageReader(new PieceGatherer(maxBytes, "the_limit"));
}

/** Reads bytes that come in stretches which end at the cuts. */
function readIn(reader: MessageReader, bytes: Buffer, cuts: readonly number[]) {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length];
  let at = 0;
  let message: Uint8Array | undefined;
  for (const end of ends.sort((a, b) => a - b)) {
    message = reader.add(Buffer.from(bytes.subarray(at, end))) ?? message;
    at = end;
  }
  return message === undefined ? undefined : Buffer.from(message);
}

/** Pieces as another encoder writes them: fields in the order of their numbers, zeros left out. */
function foreignPieces(message: Buffer, pieceBytes: number): Buffer {
  const parts: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < message.length; at += pieceBytes) {
    const data = message.subarray(at, at + pieceBytes);
    const isFirst = at === 0 && message.length > 0;
    const fields = Buffer.concat([
      ...(data.length > 0 ? [Uint8Array.of(0x0a, data.length), data] : []),
      ...(isFirst ? [Uint8Array.of(0x10, message.length)] : []),
    ]);
    parts.push(frameHead(fields.length), fields);
  }
  return Buffer.concat(parts);
}

describe("MessageReader", () => {
  const message = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes));
  const cuts = fc.array(fc.nat(400), { maxLength: 8 });
  const size = fc.integer({ min: 1, max: 50 });

  it.each<[string, (bytes: Buffer, pieceBytes: number) => Buffer]>([
    ["in one frame", (bytes) => smallFrame([bytes]) as Buffer],
    ["in pieces", (bytes, max) => Buffer.concat([...cutPieces([bytes], max)].flat())],
    ["as another encoder writes it", foreignPieces],
  ])("reads a message %s, wherever the stretches of it end", (_name, encode) => {
    const property = fc.property(message, cuts, size, (bytes, ends, pieceBytes) => {
      expect(readIn(readerOf(), encode(bytes, pieceBytes), ends)).toEqual(bytes);
    });
    fc.assert(property, { seed, numRuns: testRuns(300) });
  });

  it("refuses what is over the limit, compressed, or more than was announced", () => {
    const ten = Buffer.alloc(10, "x");
    const whole = smallFrame([ten]) as Buffer;
    const pieces = [...cutPieces([ten], 6)].map((piece) => Buffer.concat(piece));
    expect(() => readerOf(9).add(whole)).toThrow("raise the_limit");
    expect(() => readerOf(9).add(pieces[0] as Buffer)).toThrow("raise the_limit");
    expect(() => readerOf().add(Buffer.from([1, 0, 0, 0, 1, 0]))).toThrow("compressed");
    expect(() => readerOf().add(Buffer.concat([whole, whole]))).toThrow("do not make up");
    expect(() => readIn(readerOf(), Buffer.concat([...pieces, pieces[1] as Buffer]), [])).toThrow(
      "do not make up",
    );
  });

  it("has no message before it is whole", () => {
    const bytes = Buffer.concat([...cutPieces([Buffer.alloc(100)], 30)].flat());
    expect(readIn(readerOf(), bytes.subarray(0, -1), [3, 50])).toBeUndefined();
  });
});
