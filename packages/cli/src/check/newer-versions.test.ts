import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runForTest } from "../testing/run-command.js";

const golden = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../../storage/testdata/${name}`, import.meta.url)));

const request = { id: "0123abcd", tenant: "t", query: '{a="b"}', boundsMs: [0, 1], createdMs: 5 };
const requestText = JSON.stringify({
  version: 1,
  crc32: crc32(Buffer.from(JSON.stringify(request))),
  body: request,
});

function patterns(): Buffer {
  const body = Buffer.from("[]");
  const head = Buffer.alloc(12);
  for (const [i, word] of [0x504b_5331, 1, crc32(body)].entries()) head.writeUInt32LE(word, 4 * i);
  return Buffer.concat([head, body]);
}

interface Format {
  /** As a path below the folder of a process. */
  readonly name: string;
  readonly bytes: Buffer;
  /** Where the version is: a number of 32 bits, or a digit. */
  readonly at: number;
  readonly isDigit: boolean;
}

/** Every file with a version that `verify` knows: one that a new format adds belongs here. */
const formats: readonly Format[] = [
  { name: "wal/00000001.wal", bytes: golden("wal-v1.bin"), at: 8, isDigit: false },
  {
    name: "ingester/segments/golden/golden.parquet",
    bytes: golden("segment-v1-levels.parquet"),
    at: golden("segment-v1-levels.parquet").lastIndexOf("SKALDIX1") + 7,
    isDigit: true,
  },
  { name: "chunks/day.day", bytes: golden("day-v1.day"), at: 8, isDigit: false },
  { name: "patterns/patterns.bin", bytes: patterns(), at: 4, isDigit: false },
  {
    name: "chunks/index/delete_requests/tenant=t/1-0123abcd.json",
    bytes: Buffer.from(requestText),
    at: requestText.indexOf("1"),
    isDigit: true,
  },
];

function withVersion({ bytes, at, isDigit }: Format, version: number): Buffer {
  const changed = Buffer.from(bytes);
  if (isDigit) changed.write(String(version), at, "latin1");
  else changed.writeUInt32LE(version, at);
  return changed;
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skald-newer-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What `verify` and `inspect` say of a folder with one file, as exit codes and texts. */
async function look({ name }: Format, bytes: Uint8Array) {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
  const run = async (...argv: string[]) => {
    const { code, out, err } = await runForTest(argv);
    return { code, text: out + err };
  };
  const verified = await run("verify", folder);
  const inspected = await run("inspect", path);
  expect(readFileSync(path)).toEqual(Buffer.from(bytes));
  return { path, verified, inspected };
}

describe.each(formats.map((format) => [format.name, format] as const))("%s", (_, format) => {
  it("of a version that is known is good", async () => {
    const { verified, inspected } = await look(format, withVersion(format, 1));
    expect([verified.code, inspected.code]).toEqual([0, 0]);
  });

  it.each([2, 4, 7, 8])("of version %i is newer, and not damaged", async (version) => {
    const { verified, inspected } = await look(format, withVersion(format, version));
    const says = `${format.name} has format version ${version}, this program knows versions up to 1; nothing was changed`;
    expect(verified).toEqual({ code: 2, text: expect.stringMatching(/^newer: /m) });
    expect(verified.text).toContain(says);
    expect(verified.text).not.toMatch(/^damaged/m);
    expect(inspected).toEqual({ code: 2, text: expect.stringContaining(says) });
  });

  it.each([0, 3, 5, 6, 9])("of version %i, which none will have, is damaged", async (version) => {
    const { verified } = await look(format, withVersion(format, version));
    expect(verified).toEqual({ code: 1, text: expect.stringMatching(/^damaged: /m) });
  });

  it("whose version has a flipped bit is damaged", async () => {
    for (let bit = 0; bit < (format.isDigit ? 8 : 32); bit++) {
      const flipped = Buffer.from(format.bytes);
      flipped[format.at + (bit >> 3)]! ^= 1 << (bit & 7);
      expect((await look(format, flipped)).verified).toMatchObject({ code: 1 });
    }
  });

  it("that is cut within its first or last bytes is damaged", async () => {
    const newer = withVersion(format, 2);
    const cut = newer.subarray(0, format.isDigit ? newer.length - 3 : format.at + 3);
    const { verified } = await look(format, cut);
    // The end of the last log may be a record that was being written.
    const isLog = format.name.endsWith(".wal");
    expect(verified.text).toMatch(isLog ? /^note: .* are torn/m : /^damaged: /m);
    expect(verified.text).not.toMatch(/^newer/m);
  });
});
