import { afterEach, describe, expect, it } from "@jest/globals";
import { closeDoors, serveDoor } from "../testing/door-server.js";
import type { DoorName } from "./doors.js";

afterEach(closeDoors);

type Text = string | Buffer;

/** How a door writes records of one field, the line. */
interface DoorForm {
  /** The part of a body that is one record with a text for its line; the text is as the format has it. */
  readonly record: (text: Text) => Buffer;
  readonly body: (records: readonly Buffer[]) => Buffer;
  readonly query: string;
}

const bytes = (...parts: readonly Text[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
const joined = (records: readonly Buffer[]) => bytes(...records.map((one) => bytes(one, "\n")));

const journalField = (name: string, value: Text) => {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(bytes(value).length));
  return bytes(`${name}\n`, length, value, "\n");
};

const doors: Readonly<Record<DoorName, DoorForm>> = {
  json_lines: {
    record: (text) => bytes('{"m":"', text, '"}'),
    body: joined,
    query: "message_field=m",
  },
  bulk: {
    record: (text) => bytes('{"create":{}}\n{"m":"', text, '"}'),
    body: joined,
    query: "message_field=m",
  },
  document: {
    record: (text) => bytes('{"m":"', text, '"}'),
    body: (records) => bytes(...records),
    query: "message_field=m",
  },
  hec: { record: (text) => bytes('{"event":"', text, '"}'), body: joined, query: "" },
  hec_raw: { record: (text) => bytes(text), body: joined, query: "" },
  datadog: {
    record: (text) => bytes('{"message":"', text, '"}'),
    body: (records) =>
      bytes("[", ...records.flatMap((one, i) => (i === 0 ? [one] : [",", one])), "]"),
    query: "",
  },
  journal: {
    record: (text) => bytes(journalField("MESSAGE", text), "\n"),
    body: (records) => bytes(...records),
    query: "",
  },
};
const all = Object.entries(doors) as [DoorName, DoorForm][];
/** Doors whose bodies have several records. */
const several = all.filter(([name]) => name !== "document");
const ofJson = all.filter(([name]) => name !== "journal" && name !== "hec_raw");

/** What is stored of a record between two good ones, and what the client was told. */
async function send(name: DoorName, { body, query }: DoorForm, parts: readonly Buffer[]) {
  const { post, stored } = await serveDoor(name);
  const answer = await post(body(parts), query);
  return {
    lines: stored().map(({ line }) => line),
    rows: stored(),
    status: answer.status,
    text: typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body),
  };
}

describe("a record of ten megabytes", () => {
  it.each(several)("at %s is refused, and the others are stored", async (name, form) => {
    const { record } = form;
    const long = record("x".repeat(10_000_000));
    const { lines, text } = await send(name, form, [record("a"), long, record("b")]);
    expect(lines).toEqual(["a", "b"]);
    expect(text).toMatch(/max entry size|longer than/);
  });

  it("as a document is refused", async () => {
    const form = doors.document;
    const found = await send("document", form, [form.record("x".repeat(10_000_000))]);
    expect(found).toMatchObject({ status: 400, lines: [] });
  });
});

describe("invalid UTF-8", () => {
  it.each(all)("at %s is stored with what can be read of it", async (name, form) => {
    const { lines } = await send(name, form, [
      form.record(Buffer.from("caf\xe9 \xff x", "latin1")),
    ]);
    expect(lines).toEqual(["caf\uFFFD \uFFFD x"]);
  });
});

describe("a NUL", () => {
  it.each(ofJson)(
    "at %s is stored where it is escaped, and refused where it is not",
    async (name, form) => {
      expect((await send(name, form, [form.record("a\\u0000b")])).lines).toEqual(["a\0b"]);
      const bad = await send(name, form, [form.record("a\0b")]);
      expect(bad.lines).toEqual([]);
      expect(bad.text).toMatch(/invalid character in a string/);
    },
  );

  it.each(["hec_raw", "journal"] as const)("at %s is stored", async (name) => {
    const form = doors[name];
    expect((await send(name, form, [form.record("a\0b")])).lines).toEqual(["a\0b"]);
  });
});

describe("half a body", () => {
  it.each(all)("at %s stores no half of a record", async (name, form) => {
    const { post, stored } = await serveDoor(name);
    const whole = form.body(
      name === "document" ? [form.record("end")] : [form.record("a"), form.record("end")],
    );
    const answer = await post(whole.subarray(0, whole.lastIndexOf("nd")), form.query);
    // Of Datadog's array nothing is stored: its agent sends all of it again. A text line has no end but that of the body.
    const wanted: Partial<Record<DoorName, string[]>> = {
      ...{ document: [], datadog: [], hec_raw: ["a", "e"] },
    };
    expect(stored().map(({ line }) => line)).toEqual(wanted[name] ?? ["a"]);
    const isTold = JSON.stringify(answer.body).match(/invalid JSON|ends within|document/);
    expect(isTold !== null).toBe(name !== "hec_raw");
  });
});

/** A JSON object with one member beside the line. */
const withMember = (name: DoorName, member: string): Buffer => {
  if (name === "bulk") return bytes(`{"create":{}}\n{"m":"x",${member}}`);
  if (name === "hec") return bytes(`{"event":"x","fields":{${member}}}`);
  return bytes(`{"${name === "datadog" ? "message" : "m"}":"x",${member}}`);
};

describe("a record of JSON", () => {
  it.each(ofJson)("at %s with a number beyond 2^53 keeps its digits", async (name, form) => {
    const member = '"n":12345678901234567890,"f":1e400';
    const { rows } = await send(name, form, [withMember(name, member)]);
    expect(rows[0]).toMatchObject({
      ...{ line: "x", metadata: { n: "12345678901234567890", f: "1e400" } },
    });
  });

  it.each(ofJson)("at %s that is nested a thousand deep is refused", async (name, form) => {
    const deep = withMember(name, `"d":${'{"a":'.repeat(1000)}1${"}".repeat(1000)}`);
    const isAlone = name === "document";
    const parts = isAlone ? [deep] : [form.record("a"), deep, form.record("b")];
    const { lines, text } = await send(name, form, parts);
    // Where such an object ends is not looked for: the collector keeps what came before it, the intake nothing.
    const wanted: Partial<Record<DoorName, string[]>> = { document: [], datadog: [], hec: ["a"] };
    expect(lines).toEqual(wanted[name] ?? ["a", "b"]);
    expect(text).toMatch(/256 levels/);
  });

  it.each(ofJson)(
    "at %s with 10,000 fields is refused by the limit of metadata",
    async (name, form) => {
      const many = withMember(
        name,
        Array.from({ length: 10_000 }, (_, i) => `"f${i}":${i}`).join(),
      );
      const isAlone = name === "document";
      const parts = isAlone ? [many] : [form.record("a"), many, form.record("b")];
      const { lines, text } = await send(name, form, parts);
      expect(lines).toEqual(isAlone ? [] : ["a", "b"]);
      expect(text).toMatch(/structured metadata/);
    },
  );
});

describe("an entry of a journal", () => {
  it("with 10,000 fields is refused by the limit of metadata", async () => {
    const form = doors.journal;
    const fields = Array.from({ length: 10_000 }, (_, i) => `F${i}=${i}\n`).join("");
    const many = bytes(`MESSAGE=x\n${fields}\n`);
    const { lines, text } = await send("journal", form, [form.record("a"), many, form.record("b")]);
    expect(lines).toEqual(["a", "b"]);
    expect(text).toMatch(/structured metadata/);
  });
});

describe("a million records", () => {
  it.each([
    ["json_lines", "{}\n", /^""$/],
    ["bulk", '{"index":{}}\n{}\n', /more than 131072 actions/],
    ["hec", '{"event":1}', /Success/],
    ["hec_raw", "x\n", /Success/],
    ["datadog", '{"message":1},', /^{}$/],
    ["journal", "MESSAGE=x\n\n", /^""$/],
  ] as const)("at %s have a bound, or are stored", async (name, one, wanted) => {
    const { post, ingester } = await serveDoor(name, {
      ...{ ingestion_rate_mb: 1000, ingestion_burst_size_mb: 1000 },
    });
    let rows = 0;
    ingester.push = async ({ batch }) => {
      rows += batch.rowCount;
      return { refusals: [] };
    };
    const records = one.repeat(1_000_000);
    const answer = await post(name === "datadog" ? `[${records.slice(0, -1)}]` : records);
    expect(JSON.stringify(answer.body)).toMatch(wanted);
    expect(rows).toBe(name === "bulk" ? 0 : 1_000_000);
  });
});
