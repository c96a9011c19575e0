import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { goldenDamaged, goldenForward, goldenPath, goldenRecords } from "../testing/golden.js";
import { bodies, openWal, plainRecord, push, replay, walDirectory } from "../testing/wal.js";
import { walRecordHeaderBytes } from "./frame.js";
import { replayWal } from "./replay.js";

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

  it("leaves out what a flipped byte damages, sets it aside, and goes on behind it", async () => {
    const { dir, path, offsets, bytes } = await threeRecords();
    const [, second = 0, third = 0] = offsets;
    for (const at of [second, second + 5, second + 9, second + 13, second + 40, third - 1]) {
      const broken = Buffer.from(bytes);
      broken[at]! ^= 1;
      await writeFile(path, broken);
      const { records, damages } = await replay(dir);
      expect(bodies(records)).toEqual(["one", "three"]);
      expect(damages).toEqual([
        { kind: "corrupt", path, offset: second, lostBytes: third - second },
      ]);
      expect(await readFile(`${path}.${second}.corrupt`)).toEqual(broken.subarray(second, third));
      const again = await replay(dir);
      expect(again.damages).toEqual([]);
      expect(bodies(again.records)).toEqual(["one", "three"]);
      expect(again.result.records).toBe(2);
    }
  });

  it("goes on behind a damaged file header", async () => {
    const { dir, path, offsets, bytes } = await threeRecords();
    for (const [at, want, end] of [
      [0, ["one", "two", "three"], offsets[0]],
      [8, ["one", "two", "three"], offsets[0]],
      [12, ["one", "two", "three"], offsets[0]],
      [offsets[0], ["two", "three"], offsets[1]],
    ] as const) {
      const broken = Buffer.from(bytes);
      broken[0]! ^= at === 8 ? 0 : 1;
      broken[at as number]! ^= 2;
      await writeFile(path, broken);
      const { records, damages } = await replay(dir);
      expect(bodies(records)).toEqual(want);
      expect(damages).toEqual([{ kind: "corrupt", path, offset: 0, lostBytes: end }]);
      const again = await replay(dir);
      expect([bodies(again.records), again.damages]).toEqual([want, []]);
    }
  });

  it("tells of a torn end behind damage, and of each damage of many", async () => {
    const { dir, path, offsets, bytes } = await threeRecords();
    const broken = Buffer.from(bytes);
    for (const at of [offsets[0], offsets[2]]) broken[(at as number) + 20]! ^= 1;
    await writeFile(path, broken);
    const { records, damages } = await replay(dir);
    expect(bodies(records)).toEqual(["two"]);
    expect(damages.map(({ kind, offset }) => [kind, offset])).toEqual([
      ["corrupt", offsets[0]],
      ["torn", offsets[2]],
    ]);
    const again = await replay(dir);
    expect([bodies(again.records), again.damages]).toEqual([["two"], []]);
  });

  it("tells of names behind damage before the records that may need them", async () => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    const names = (number: number) =>
      ({ kind: "streams", tenant: "t", numbers: [number], texts: [`{n="${number}"}`] }) as const;
    const positions: number[] = [];
    for (const records of [[names(1)], [push("one")], [names(2)], [push("two")], [names(1)]]) {
      const { position, written } = wal.append(records, () => undefined);
      positions.push(position.offset);
      await written;
    }
    await wal.close();
    const path = join(dir, "00000001.wal");
    const broken = await readFile(path);
    broken[(positions[0] as number) + 20]! ^= 1;
    await writeFile(path, broken);
    const events: string[] = [];
    await replayWal({
      dir,
      onRecord: (record) => void events.push(record.kind),
      onNamesAhead: ({ numbers }, file) => void events.push(`ahead ${numbers} of ${file}`),
      onDamage: ({ kind }) => void events.push(kind),
    });
    expect(events).toEqual([
      ...["ahead 2 of 1", "ahead 1 of 1"],
      ...["push_body", "streams", "push_body", "streams", "corrupt"],
    ]);
  });

  it("leaves a file of a newer version as it is", async () => {
    const { dir, path, bytes } = await threeRecords();
    bytes.writeUInt32LE(2, 8);
    await writeFile(path, bytes);
    const newer = { code: "newer_version", message: expect.stringContaining(path) };
    await expect(replay(dir)).rejects.toMatchObject(newer);
    await expect(openWal(dir)).rejects.toMatchObject(newer);
    expect(await readdir(dir)).toEqual(["00000001.wal"]);
    expect(await readFile(path)).toEqual(bytes);
  });

  it("goes on with the next file after a corrupt one", async () => {
    const { dir, path } = await threeRecords();
    const { wal } = await openWal(dir);
    await wal.append([push("next")], () => undefined).written;
    await wal.close();
    const bytes = Buffer.alloc(1000, 7);
    await writeFile(path, bytes);
    const { records, damages, result } = await replay(dir);
    expect(bodies(records)).toEqual(["next"]);
    expect(damages).toMatchObject([{ kind: "corrupt", offset: 0, lostBytes: bytes.length }]);
    expect(result).toMatchObject({ files: 2, records: 1 });
    expect((await readdir(dir)).sort()).toEqual([
      "00000001.wal",
      "00000001.wal.0.corrupt",
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
  it.each([
    ["wal-v1.bin", goldenRecords()],
    ["wal-v1-forward.bin", goldenForward()],
  ])("%s is read", async (file, wanted) => {
    const dir = await walDirectory();
    await copyFile(goldenPath(file), join(dir, "00000001.wal"));
    const { records, damages } = await replay(dir);
    expect(damages).toEqual([]);
    expect(records.map(plainRecord)).toEqual(wanted.map(plainRecord));
  });

  it("that was repaired by version 1 is read without its damaged record", async () => {
    const dir = await walDirectory();
    await copyFile(goldenPath("wal-v1-repaired.bin"), join(dir, "00000001.wal"));
    const { records, damages } = await replay(dir);
    expect(damages).toEqual([]);
    const whole = goldenRecords().filter((_, i) => i !== goldenDamaged);
    expect(records.map(plainRecord)).toEqual(whole.map(plainRecord));
  });

  it.each([
    ["wal-v1.bin", goldenRecords()],
    ["wal-v1-forward.bin", goldenForward()],
  ])("%s is what is written now, but for the marker", async (file, records) => {
    const dir = await walDirectory();
    const { wal } = await openWal(dir);
    await wal.append(records, () => undefined).written;
    await wal.close();
    const golden = await readFile(goldenPath(file));
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
