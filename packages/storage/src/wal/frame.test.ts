import { describe, expect, it } from "@jest/globals";
import {
  encodeWalFileHeader,
  encodeWalRecordHeader,
  maxWalRecordBytes,
  WalFrames,
} from "./frame.js";

const marker = 0x80000001;

function fileOf(...payloads: readonly string[]): Buffer {
  const parts = payloads.flatMap((text) => {
    const payload = Buffer.from(text);
    return [encodeWalRecordHeader(marker, 2, [payload]), payload];
  });
  return Buffer.concat([encodeWalFileHeader(marker), ...parts]);
}

function payloadsOf(frames: WalFrames): string[] {
  const payloads: string[] = [];
  for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
    payloads.push(frame.payload.toString());
  }
  return payloads;
}

describe("WalFrames", () => {
  it("reads records up to the bound", () => {
    const bytes = fileOf("four", "five5");
    const frames = new WalFrames(bytes, 5);
    expect(payloadsOf(frames)).toEqual(["four", "five5"]);
    expect(frames.end()).toEqual({ kind: "clean", offset: bytes.length });
  });

  it("takes a length over the bound for damage", () => {
    const last = new WalFrames(fileOf("four", "five5"), 4);
    expect(payloadsOf(last)).toEqual(["four"]);
    expect(last.end()).toEqual({ kind: "torn", offset: 36 });
    const bytes = fileOf("four", "five5", "good");
    const inside = new WalFrames(bytes, 4);
    expect(payloadsOf(inside)).toEqual(["four", "good"]);
    expect(inside.gaps).toEqual([{ offset: 36, end: 57 }]);
    expect(inside.end()).toEqual({ kind: "clean", offset: bytes.length });
  });
});

describe("encodeWalRecordHeader", () => {
  it("refuses a payload over the bound", () => {
    const part = Buffer.alloc(maxWalRecordBytes / 64);
    const parts = Array.from({ length: 64 }, () => part);
    expect(() => encodeWalRecordHeader(marker, 2, [...parts, Buffer.alloc(1)])).toThrow(
      "record of 1140850689 bytes is too large for the log, which takes 1140850688",
    );
  });
});
