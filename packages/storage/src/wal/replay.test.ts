import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { goldenPath, goldenRecords } from "../testing/golden.js";
import { bodies, openWal, plainRecord, push, replay, walDirectory } from "../testing/wal.js";
import { walRecordHeaderBytes } from "./frame.js";

describe("replayWal", () => {
  async function threeRecords() {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    const offsets: number[] = [];
    for (const text of ["one", "two", "three"]) {
      const { position, written } = wal.append([push(text)], () => undefined);
      offsets.push(position.offset);
      await written;
    }
    await wal.close();
    const path = join(dir, "00000001.wal");
    return { dir, path, offsets, bytes: await readFile(path) };
  }

  it("keeps the whole records of a file cut at any byte", async () => {
    const { dir, path, offsets, bytes } = await threeRecords();
    const ends = [...offsets.slice(1), bytes.length];
    for (let length = 0; length <= bytes.length; length++) {
      await writeFile(path, bytes.subarray(0, length));
      const { records, damages } = await replay(dir);
      const whole = ends.filter((end) => end <= length).length;
      expect(bodies(records)).toEqual(["one", "two", "three"].slice(0, whole));
      const clean = length === 0 || length === 16 || ends.includes(length);
      expect(damages.map((damage) => damage.kind)).toEqual(clean ? [] : ["torn"]);
      expect((await replay(dir)).damages).toEqual([]);
    }
  });

  it("stops at a flipped byte and sets the rest aside", async () => {
    const { dir, path, offsets, bytes } = await threeRecords();
    const [, second = 0, third = 0] = offsets;
    for (const at of [second, second + 5, second + 9, second + 13, second + 40, third - 1]) {
      const broken = Buffer.from(bytes);
      broken[at]! ^= 1;
      await writeFile(path, broken);
      const { records, damages } = await replay(dir);
      expect(bodies(records)).toEqual(["one"]);
      expect(damages).toEqual([
        { kind: "corrupt", path, offset: second, lostBytes: bytes.length - second },
      ]);
      expect(await readFile(`${path}.corrupt`)).toEqual(broken.subarray(second));
      expect((await replay(dir)).damages).toEqual([]);
    }
  });

  it("goes on with the next file after a corrupt one", async () => {
    const { dir, path, bytes } = await threeRecords();
    const { wal } = await openWal(dir);
    await wal.append([push("next")], () => undefined).written;
    await wal.close();
    const broken = Buffer.from(bytes);
    broken[2] = 0;
    await writeFile(path, broken);
    const { records, damages, result } = await replay(dir);
    expect(bodies(records)).toEqual(["next"]);
    expect(damages).toMatchObject([{ kind: "corrupt", offset: 0, lostBytes: bytes.length }]);
    expect(result).toMatchObject({ files: 2, records: 1 });
    expect((await readdir(dir)).sort()).toEqual([
      "00000001.wal",
      "00000001.wal.corrupt",
      "00000002.wal",
    ]);
  });

  it("takes zeros behind the last record as torn", async () => {
    const { dir, path, bytes } = await threeRecords();
    await writeFile(path, Buffer.concat([bytes, Buffer.alloc(4096)]));
    const { records, damages } = await replay(dir);
    expect(bodies(records)).toEqual(["one", "two", "three"]);
    expect(damages).toMatchObject([{ kind: "torn", offset: bytes.length, lostBytes: 4096 }]);
    expect(await readFile(path)).toEqual(bytes);
  });
});

describe("the golden file", () => {
  it("of version 1 is read", async () => {
    const dir = await walDirectory();
    await copyFile(goldenPath("wal-v1.bin"), join(dir, "00000001.wal"));
    const { records, damages } = await replay(dir);
    expect(damages).toEqual([]);
    expect(records.map(plainRecord)).toEqual(goldenRecords().map(plainRecord));
  });

  it("is what is written now, but for the marker", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    await wal.append(goldenRecords(), () => undefined).written;
    await wal.close();
    const golden = await readFile(goldenPath("wal-v1.bin"));
    expect(withoutMarker(await readFile(join(dir, "00000001.wal")))).toBe(withoutMarker(golden));
  });
});

/** The file in hex, with its marker blanked before each record. */
function withoutMarker(bytes: Buffer): string {
  const file = Buffer.from(bytes);
  file.fill(0, 12, 16);
  for (let at = 16; at < file.length; at += walRecordHeaderBytes + file.readUInt32LE(at + 8)) {
    file.fill(0, at, at + 4);
  }
  return file.toString("hex");
}
