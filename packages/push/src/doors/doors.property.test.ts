import { expect, it } from "@jest/globals";
import type { RawPush } from "@skald/kernels";
import { SkaldError } from "@skald/model";
import { mutate, type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { sanitiseLabelName } from "../columns/metadata.js";
import { type DoorBody, type DoorFormat, decodeDoor } from "../decode-door.js";
import { decodeRecords, noMapping } from "../testing/doors.js";
import type { DoorPush, PieceOfBody } from "./door-rows.js";

const maxBytes = 16 * 1024 * 1024;
const seconds = 1_795_168_800;

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const names = fc.constantFrom("a", "b", "c", "m", "a.b", "x y", "t");
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, 0, -1.5e-7, 2 ** 60),
    fc.string({ unit: "grapheme", maxLength: 8 }),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(names, tie("json"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const object = fc.dictionary(names, json, { maxKeys: 5, noNullPrototype: true });

/** What the mapping means, as plainly as possible: the text of each field by its name. */
function fieldsOf(value: { readonly [name: string]: Json }, prefix = ""): [string, string][] {
  return Object.entries(value).flatMap(([key, member]): [string, string][] => {
    const name = prefix + key;
    if (member === null) return [];
    const isMap = typeof member === "object" && !Array.isArray(member);
    const isNamed = ["a", "m"].includes(name);
    if (isMap && !isNamed) return fieldsOf(member as { [name: string]: Json }, `${name}.`);
    const text = typeof member === "string" ? member : JSON.stringify(member);
    return text === "" ? [] : [[name, text]];
  });
}

it("JSON lines become what the mapping says", () => {
  const check = (objects: readonly { readonly [name: string]: Json }[]): void => {
    const lines = objects.map((one) => JSON.stringify(one));
    const mapping = { labels: ["a"], message: ["m"], ignore: ["c"] };
    const { rows, refused } = decodeRecords("json_lines", lines.join("\n"), mapping);
    expect(refused).toEqual({});
    const expected = objects.map((one, i) => {
      const fields = new Map(fieldsOf(one).filter(([name]) => !/^c(\.|$)/.test(name)));
      const line = fields.get("m");
      const rest = [...fields].filter(([name]) => !["a", "m"].includes(name));
      const metadata = rest.map(([name, text]) => [sanitiseLabelName(name) as string, text]);
      const isCut = Object.hasOwn(one, "c");
      return {
        label: fields.get("a") ?? "",
        line: line ?? (isCut ? undefined : lines[i]),
        metadata: line === undefined ? {} : Object.fromEntries(metadata),
      };
    });
    for (const [i, { line, metadata, stream }] of rows.entries()) {
      const want = expected[i]!;
      if (want.line !== undefined) expect(line).toBe(want.line);
      else
        expect(fieldsOf(JSON.parse(line))).toEqual(
          fieldsOf(objects[i]!).filter(([n]) => !/^c(\.|$)/.test(n)),
        );
      expect(metadata).toEqual(want.metadata);
      expect(stream === "{}").toBe(want.label === "");
    }
  };
  fc.assert(fc.property(fc.array(object, { minLength: 1, maxLength: 6 }), check), {
    seed: testSeed(),
    numRuns: testRuns(500),
  });
});

function entryOf(random: Random, i: number): Buffer {
  const value = Buffer.alloc(random(40), random(3) === 0 ? "\n" : "x");
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(value.length));
  const text = Buffer.from(`__REALTIME_TIMESTAMP=${seconds}000000\nMESSAGE=m${i}\n`);
  const binary = Buffer.concat([Buffer.from("B\n"), length, value, Buffer.from("\n")]);
  return Buffer.concat([text, ...(random(2) === 0 ? [binary] : []), Buffer.from("\n")]);
}

/** A good body of each format. */
function bodyOf(format: DoorFormat, random: Random): Buffer {
  const count = 1 + random(8);
  const all = Array.from({ length: count }, (_, i) => i);
  const doc = (i: number) =>
    `{"m":"line \\u00e9 ${i}","t":${seconds}${random(2) === 0 ? ".5" : ""},"a":"${random(3)}","o":{"p":[1,{"q":null}]}}`;
  const bodies: Readonly<Record<DoorFormat, () => string | Buffer>> = {
    json_lines: () => all.map(doc).join(random(2) === 0 ? "\n" : "\r\n\n"),
    text_lines: () => all.map((i) => `text ${i}`).join("\n"),
    bulk: () => all.map((i) => `{"create":{"_index":"i"}}\n${doc(i)}\n`).join(""),
    document: () => doc(0),
    hec: () => all.map((i) => `{"event":${doc(i)},"time":${seconds},"fields":{"a":"b"}}`).join(""),
    datadog: () => `[${all.map((i) => `{"message":${doc(i)},"ddtags":"a:b,c"}`).join(",")}]`,
    journal: () => Buffer.concat(all.map((i) => entryOf(random, i))),
  };
  return Buffer.from(bodies[format]());
}

const formats: readonly DoorFormat[] = [
  "json_lines",
  "text_lines",
  "bulk",
  "document",
  "hec",
  "datadog",
  "journal",
];

function expectSound({ push, recordOfRow, records, refused }: DoorPush): void {
  const ranges = [
    [push.lineStart, push.lineLength, push.rowCount],
    [push.metaNameStart, push.metaNameLength, push.pairCount],
    [push.metaValueStart, push.metaValueLength, push.pairCount],
    [push.streamLabelStart, push.streamLabelLength, push.streamCount],
  ] as const;
  for (const [starts, lengths, count] of ranges) {
    for (let i = 0; i < count; i++) {
      expect(starts[i]! + lengths[i]!).toBeLessThanOrEqual(push.bytes.length);
    }
  }
  expect(push.metaStart[push.rowCount]).toBe(push.pairCount);
  const seen = new Set([...recordOfRow, ...refused.map(({ record }) => record)]);
  expect(seen.size).toBe(push.rowCount + refused.length);
  expect(records).toBe(seen.size);
}

it.each(formats)("damaged bodies of %s are refused or read, and never a fault", (format) => {
  const random = seededRandom(testSeed());
  for (let run = 0; run < testRuns(1500); run++) {
    const body = mutate(bodyOf(format, random), random);
    const mapping = {
      ...noMapping,
      labels: random(2) === 0 ? ["a", "o.p"] : [],
      message: random(2) === 0 ? ["m"] : [],
      time: ["t", "__REALTIME_TIMESTAMP"],
      ignore: random(3) === 0 ? ["o*"] : [],
      extra: random(3) === 0 ? [["x", "y"] as const] : [],
    };
    try {
      expectSound(decodeDoor({ format, encoding: "identity", body, mapping }, maxBytes));
    } catch (error) {
      if (!(error instanceof SkaldError)) throw error;
      expect(["invalid_argument", "too_large"]).toContain(error.code);
    }
  }
});

function rowsOf({ bytes, lineStart, lineLength, rowCount }: RawPush): string[] {
  const text = Buffer.from(bytes);
  return Array.from({ length: rowCount }, (_, row) =>
    text.toString("latin1", lineStart[row], lineStart[row]! + lineLength[row]!),
  );
}

it.each(["json_lines", "text_lines", "journal"] as const)(
  "%s in pieces of any size are the same rows",
  (format) => {
    const random = seededRandom(testSeed());
    const mapping = { ...noMapping, message: ["m", "MESSAGE"] };
    for (let run = 0; run < testRuns(300); run++) {
      const body = bodyOf(format, random);
      const input: DoorBody = { format, encoding: "identity", body, mapping };
      const whole = rowsOf(decodeDoor(input, maxBytes).push);
      const found: string[] = [];
      let from = 0;
      let within: PieceOfBody["within"] = "";
      for (let to = 0; to < body.length; ) {
        to = Math.min(body.length, to + 1 + random(60));
        const piece = { isLast: to === body.length, within };
        const { push, next } = decodeDoor(
          { ...input, body: body.subarray(from, to), piece },
          maxBytes,
        );
        found.push(...rowsOf(push));
        expect(next.skip).toBe(0);
        from += next.read;
        within = next.within;
      }
      expect(found).toEqual(whole);
    }
  },
);
