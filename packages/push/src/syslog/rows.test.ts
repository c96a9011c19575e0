import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { type SyslogMapping, SyslogRows } from "./rows.js";

const plain: SyslogMapping = {
  labels: { job: "syslog" },
  labelFields: ["app"],
  timeZone: "UTC",
  usesNamedTime: true,
};
const now = Date.UTC(2026, 10, 28, 12, 0, 0, 250);
const peer = Buffer.from("192.0.2.7");

interface PlainRow {
  readonly labels: string;
  /** ISO time with all nine places. */
  readonly time: string;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

function rowsOf(rows: SyslogRows): PlainRow[] {
  const push = rows.take();
  const text = (start: number, length: number) =>
    Buffer.from(push.bytes.subarray(start, start + length)).toString();
  const found: PlainRow[] = [];
  for (let stream = 0; stream < push.streamCount; stream++) {
    const labels = text(push.streamLabelStart[stream]!, push.streamLabelLength[stream]!);
    for (let row = push.streamRowStart[stream]!; row < push.streamRowStart[stream + 1]!; row++) {
      const metadata: Record<string, string> = {};
      for (let pair = push.metaStart[row]!; pair < push.metaStart[row + 1]!; pair++) {
        const name = text(push.metaNameStart[pair]!, push.metaNameLength[pair]!);
        metadata[name] = text(push.metaValueStart[pair]!, push.metaValueLength[pair]!);
      }
      const second = new Date(push.seconds[row]! * 1000).toISOString().slice(0, 19);
      const time = `${second}.${String(push.nanos[row]).padStart(9, "0")}Z`;
      const line = text(push.lineStart[row]!, push.lineLength[row]!);
      found.push({ labels, time, line, metadata });
    }
  }
  return found;
}

function read(text: string | Buffer, mapping: Partial<SyslogMapping> = {}, nowMs = now): PlainRow {
  const rows = new SyslogRows({ ...plain, ...mapping });
  const bytes = Buffer.from(text);
  rows.add(bytes, 0, bytes.length, peer, nowMs);
  const [row] = rowsOf(rows);
  return row as PlainRow;
}

describe("RFC 5424", () => {
  it("becomes labels, metadata and a line", () => {
    const sent =
      '<165>1 2026-11-28T11:59:58.123456+01:00 web-1 evntslog 42 ID47 [exampleSDID@32473 iut="3" eventSource="App"][meta sequenceId="1"] \ufeffAn event \u00fc';
    expect(read(sent)).toEqual({
      labels: '{app="evntslog", job="syslog"}',
      time: "2026-11-28T10:59:58.123456000Z",
      line: "An event \u00fc",
      metadata: {
        host: "web-1",
        facility: "local4",
        severity: "notice",
        detected_level: "info",
        procid: "42",
        msgid: "ID47",
        "exampleSDID@32473_iut": "3",
        "exampleSDID@32473_eventSource": "App",
        meta_sequenceId: "1",
      },
    });
  });

  it("takes the time and the address of the peer where it names none", () => {
    expect(read("<34>1 - - - - - - hello")).toEqual({
      labels: '{job="syslog"}',
      time: "2026-11-28T12:00:00.250000000Z",
      line: "hello",
      metadata: {
        host: "192.0.2.7",
        facility: "auth",
        severity: "crit",
        detected_level: "critical",
      },
    });
  });

  it.each([
    ['[a b="x\\"y\\\\z\\]"] m', { a_b: 'x"y\\z]' }, "m"],
    ['[a b="\\n"] m', { a_b: "\\n" }, "m"],
    ["[a] m", {}, "m"],
    ["- ", {}, ""],
    ["-", {}, ""],
    ["- - m", {}, "- m"],
    ['[a b=""] m', {}, "m"],
    ['[a b="1" b="2"] m', { a_b: "2" }, "m"],
  ])("reads structured data %s", (data, metadata, line) => {
    const row = read(`<13>1 2026-11-28T12:00:00Z h - - - ${data}`);
    const { host, facility, severity, detected_level, ...rest } = row.metadata;
    expect({ rest, line: row.line }).toEqual({ rest: metadata, line });
  });

  it.each([
    ["<13>1 yesterday h a p m - text", "yesterday h a p m - text"],
    ["<13>1 2026-13-01T00:00:00Z h a p m - text", "2026-13-01T00:00:00Z h a p m - text"],
    ["<13>1 2026-02-30T00:00:00Z h a p m - text", "2026-02-30T00:00:00Z h a p m - text"],
    ["<13>1 2026-11-28T12:00:00 h a p m - text", "2026-11-28T12:00:00 h a p m - text"],
    ["<13>1 - h a", "a"],
    ['<13>1 - h a p m [x y="1 text', '[x y="1 text'],
    ['<13>1 - h a p m [x y="1"]text', '[x y="1"]text'],
    [`<13>1 - h a p m [${"x".repeat(129)} y="1"] text`, `[${"x".repeat(129)} y="1"] text`],
    ["no header at all", "no header at all"],
    ["<192>1 - h a p m - text", "<192>1 - h a p m - text"],
    ["<>text", "<>text"],
    ["<13", "<13"],
    ["", ""],
  ])("keeps what it cannot read: %s", (sent, line) => {
    const rows = new SyslogRows(plain);
    rows.add(Buffer.from(sent), 0, Buffer.byteLength(sent), peer, now);
    expect(rows.malformed).toBe(1);
    expect(rowsOf(rows)).toMatchObject([{ line }]);
  });

  it("keeps a message with too many parameters as text", () => {
    const data = `[x ${'y="1" '.repeat(2000).trim()}]`;
    expect(read(`<13>1 - h a p m ${data} text`)).toMatchObject({ line: `${data} text` });
  });
});

describe("RFC 3164", () => {
  it.each([
    ["Oct 11 22:14:15 mymachine su: failed", { host: "mymachine", app: "su" }, "failed"],
    ["Oct 11 22:14:15 h sshd[123]: a: b", { host: "h", app: "sshd", procid: "123" }, "a: b"],
    [
      "Oct 11 22:14:15 h postfix/smtpd[9]: x",
      { host: "h", app: "postfix/smtpd", procid: "9" },
      "x",
    ],
    [
      "Oct 11 22:14:15 su[1]: local form",
      { host: "192.0.2.7", app: "su", procid: "1" },
      "local form",
    ],
    ["Oct 11 22:14:15 10.0.0.99 Use the BFG!", { host: "10.0.0.99" }, "Use the BFG!"],
    ["Oct 11 22:14:15 fe80::1 kernel: x", { host: "fe80::1", app: "kernel" }, "x"],
    ["Oct 11 22:14:15 h", { host: "h" }, ""],
    ["Oct 11 22:14:15", { host: "192.0.2.7" }, ""],
    ["Oct 11 22:14:15 h a:b c", { host: "h" }, "a:b c"],
    ["Oct 11 22:14:15: %ASA-6-302013: Built", { host: "192.0.2.7", app: "%ASA-6-302013" }, "Built"],
    ["Oct 11 22:14:15 h a: x\n\0", { host: "h", app: "a" }, "x"],
  ])("reads %j", (sent, fields, line) => {
    const row = read(`<13>${sent}`, { labelFields: [] });
    const { facility, severity, detected_level, ...rest } = row.metadata;
    expect({ rest, line: row.line }).toEqual({ rest: fields, line });
    expect(row.time).toBe("2026-10-11T22:14:15.000000000Z");
  });

  it.each([
    ["Oct  1 02:03:04 h a: x", "2026-10-01T02:03:04.000000000Z"],
    ["Oct 1 02:03:04 h a: x", "2026-10-01T02:03:04.000000000Z"],
    ["Oct 01 02:03:04.25 h a: x", "2026-10-01T02:03:04.250000000Z"],
    ["Oct 11 2024 22:14:15 h a: x", "2024-10-11T22:14:15.000000000Z"],
    ["2026-11-28T12:00:00.5-03:30 h a: x", "2026-11-28T15:30:00.500000000Z"],
  ])("reads the time of %s", (sent, time) => {
    expect(read(`<13>${sent}`)).toMatchObject({ time, line: "x" });
  });

  it.each([
    ["Dec 31 23:59:59", "2027-01-01T00:00:01Z", "2026-12-31T23:59:59"],
    ["Jan  1 00:00:02", "2026-12-31T23:59:58Z", "2027-01-01T00:00:02"],
    ["Jan  1 00:00:02", "2027-01-01T00:00:03Z", "2027-01-01T00:00:02"],
    ["Feb 29 12:00:00", "2028-03-01T00:00:00Z", "2028-02-29T12:00:00"],
    ["Nov 29 12:00:00", "2026-11-28T12:00:00Z", "2026-11-29T12:00:00"],
  ])("gives %s that arrives at %s its year", (sent, at, time) => {
    expect(read(`<13>${sent} h a: x`, {}, Date.parse(at)).time).toBe(`${time}.000000000Z`);
  });

  it.each([
    ["Asia/Kolkata", "Nov 28 12:00:00", "2026-11-28T06:30:00"],
    ["America/New_York", "Nov 28 12:00:00", "2026-11-28T17:00:00"],
    ["America/New_York", "Jul  1 12:00:00", "2026-07-01T16:00:00"],
    // The clock goes from 01:59:59 to 03:00:00.
    ["Europe/Berlin", "Mar 29 01:59:59", "2026-03-29T00:59:59"],
    ["Europe/Berlin", "Mar 29 03:00:00", "2026-03-29T01:00:00"],
  ])("reads a clock in %s that shows %s", (timeZone, sent, time) => {
    expect(read(`<13>${sent} h a: x`, { timeZone }).time).toBe(`${time}.000000000Z`);
  });
});

describe("rows", () => {
  it("get the chosen fields as labels", () => {
    const labelFields = ["host", "app", "facility", "severity"] as const;
    expect(read("<11>Oct 11 22:14:15 web-1 nginx: x", { labelFields })).toMatchObject({
      labels: '{app="nginx", facility="user", host="web-1", job="syslog", severity="err"}',
      metadata: { detected_level: "error" },
    });
  });

  it("get the time of their arrival if the listener says so", () => {
    const row = read("<11>Oct 11 22:14:15 h a: x", { usesNamedTime: false });
    expect(row.time).toBe("2026-11-28T12:00:00.250000000Z");
  });

  it("of one time are a nanosecond apart, in order, also in different batches", () => {
    const rows = new SyslogRows(plain);
    const add = (second: number) => {
      const text = Buffer.from(`<11>Oct 11 22:14:${second} h a: x`);
      rows.add(text, 0, text.length, peer, now);
    };
    for (const second of [15, 16, 15]) add(second);
    const first = rowsOf(rows);
    add(15);
    const times = [...first, ...rowsOf(rows)].map(({ time }) => time.slice(17));
    expect(times).toEqual(["15.000000000Z", "16.000000000Z", "15.000000001Z", "15.000000002Z"]);
  });

  it("with broken UTF-8 in what becomes a label keep the batch readable", () => {
    const sent = Buffer.from("<11>Oct 11 22:14:15 h a\xff: x\xfe\0", "latin1");
    expect(read(sent)).toMatchObject({ labels: '{app="a\ufffd", job="syslog"}' });
  });
});

const field = fc.string({ unit: fc.constantFrom(..."ab-1"), minLength: 1, maxLength: 5 });
const params = fc.dictionary(
  fc.string({ unit: fc.constantFrom(..."abc"), minLength: 1, maxLength: 4 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 8 }),
  { maxKeys: 4 },
);

it("reads back what RFC 5424 writes", () => {
  const sent = fc.record({
    priority: fc.integer({ min: 0, max: 191 }),
    ms: fc.integer({ min: 0, max: 4e12 }),
    fields: fc.tuple(field, field, field, field),
    params,
    line: fc.string({ unit: "binary", maxLength: 20 }).map((text) => `.${text}.`),
  });
  fc.assert(
    fc.property(sent, ({ priority, ms, fields, params, line }) => {
      const escaped = (text: string) => text.replaceAll(/["\\\]]/g, "\\$&");
      const pairs = Object.entries(params).map(([name, text]) => ` ${name}="${escaped(text)}"`);
      const header = `<${priority}>1 ${new Date(ms).toISOString()} ${fields.join(" ")}`;
      const row = read(`${header} [id${pairs.join("")}] ${line}`, { labelFields: [] });
      const utf8 = (text: string) => Buffer.from(text).toString();
      const [host, app, procid, msgid] = fields.map((text) => (text === "-" ? undefined : text));
      expect(row.line).toBe(utf8(line));
      expect(row.time.slice(0, 23)).toBe(new Date(ms).toISOString().slice(0, 23));
      expect(row.metadata).toMatchObject({
        host: host ?? "192.0.2.7",
        ...(app === undefined ? {} : { app }),
        ...(procid === undefined ? {} : { procid }),
        ...(msgid === undefined ? {} : { msgid }),
        ...Object.fromEntries(Object.entries(params).map(([n, text]) => [`id_${n}`, utf8(text)])),
      });
    }),
    { numRuns: testRuns(300) },
  );
});

it("takes any bytes, and what is left of a message is its end", () => {
  const pieces = fc.constantFrom(
    ...["<13>", "<13>1 ", "- ", "2026-11-28T12:00:00Z ", "Oct 11 22:14:15 ", "h ", "a[1]: ", "["],
    ...['[x y="', '"]', '"', "\\", "]", " ", "\xff", "\n", "\0", "1"],
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 14 }), (parts) => {
      const sent = Buffer.from(`${parts.join("")}.`, "latin1");
      const rows = new SyslogRows(plain);
      // Bytes around a message must not matter.
      const around = Buffer.concat([Buffer.from("<1>"), sent, Buffer.from('="1"] x')]);
      rows.add(around, 3, 3 + sent.length, peer, now);
      const push = rows.take();
      expect(push.rowCount).toBe(1);
      const from = push.lineStart[0]!;
      const line = Buffer.from(push.bytes.subarray(from, from + push.lineLength[0]!));
      expect(line.equals(sent.subarray(sent.length - line.length))).toBe(true);
    }),
    { numRuns: testRuns(500) },
  );
});
