import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { type Framing, SyslogFrames } from "./frames.js";

interface Taken {
  readonly text: string;
  readonly isCut: boolean;
}

function reader(framing: Framing, maxBytes = 1000) {
  const taken: Taken[] = [];
  const frames = new SyslogFrames(framing, maxBytes, (bytes, start, end, isCut) => {
    taken.push({ text: Buffer.from(bytes.subarray(start, end)).toString("latin1"), isCut });
  });
  return { frames, taken };
}

/** What comes of a text that arrives in pieces of the given sizes. */
function cut(framing: Framing, text: string, sizes: readonly number[], maxBytes?: number): Taken[] {
  const { frames, taken } = reader(framing, maxBytes);
  const bytes = Buffer.from(text, "latin1");
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    frames.read(bytes.subarray(at, at + size));
    at += size;
  }
  frames.end();
  return taken;
}

const whole = (...texts: string[]): Taken[] => texts.map((text) => ({ text, isCut: false }));

describe("messages of a connection", () => {
  it.each<[string, Framing, string, Taken[]]>([
    ["lines", "auto", "<1>a\n<2>b\n", whole("<1>a", "<2>b")],
    ["a last line without an end", "auto", "<1>a\n<2>b", whole("<1>a", "<2>b")],
    ["counted messages", "auto", "4 <1>a6 <2>b\nc", whole("<1>a", "<2>b\nc")],
    ["counts and lines in turn", "auto", "4 <1>a<2>b\n4 <3>c", whole("<1>a", "<2>b", "<3>c")],
    ["newlines behind counted messages", "auto", "4 <1>a\n4 <2>b\r\n", whole("<1>a", "<2>b")],
    [
      "lines that begin with a number",
      "auto",
      "12 drummers\n7x\n9",
      whole("12 drummers", "7x", "9"),
    ],
    ["numbers in lines, if lines are set", "newline", "4 <1>a\n", whole("4 <1>a")],
    ["a count for anything, if counts are set", "octet_counting", "3 abc2 de", whole("abc", "de")],
    ["a counted message of several lines", "octet_counting", "5 a\nb\nc", whole("a\nb\nc")],
    ["empty lines", "auto", "\n\r\n\0<1>a\n\n", whole("<1>a")],
    ["a long number", "auto", "1234567890 <1>a\n", whole("1234567890 <1>a")],
  ])("%s", (_, framing, text, want) => {
    for (const sizes of [[1000], [1], [2, 3]]) expect(cut(framing, text, sizes)).toEqual(want);
  });

  it("marks a counted message whose connection ended too early", () => {
    expect(cut("auto", "90 <1>a", [100])).toEqual([{ text: "<1>a", isCut: true }]);
  });

  it.each(["abc", "x 3 abc", "3abc", "0 <1>", "12345678901 a"])(
    "refuses %j where counts are set",
    (text) => {
      expect(() => cut("octet_counting", text, [100])).toThrow("a message has no count");
    },
  );

  it("holds no more of a message than is allowed, however long it is", () => {
    const { frames, taken } = reader("auto", 100);
    const chunk = Buffer.alloc(64 * 1024, "x");
    for (let i = 0; i < 200; i++) frames.read(chunk);
    expect(frames.heldBytes).toBeLessThanOrEqual(100);
    frames.read(Buffer.from("\n99999999 <1>"));
    for (let i = 0; i < 200; i++) frames.read(chunk);
    expect(frames.heldBytes).toBeLessThanOrEqual(100);
    frames.end();
    expect(taken).toEqual([
      { text: "x".repeat(100), isCut: true },
      { text: "<1>".padEnd(100, "x"), isCut: true },
    ]);
    expect(frames.heldBytes).toBe(0);
  });

  it("cuts a message that is too long and lies in one chunk", () => {
    expect(cut("auto", "<1>abcdef\n<2>\n", [100], 5)).toEqual([
      { text: "<1>ab", isCut: true },
      { text: "<2>", isCut: false },
    ]);
  });
});

const text = fc.string({ unit: fc.constantFrom(..."<>1 92a\u00ff\r\0"), maxLength: 12 });
const message = fc.tuple(text, fc.boolean()).map(([rest, isCounted]) => ({
  text: `<${rest.trimEnd()}.`,
  isCounted,
}));

it("gives the same messages whatever the pieces are in which they arrive", () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 6 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
      (messages, sizes) => {
        const sent = messages
          .map(({ text, isCounted }) => (isCounted ? `${text.length} ${text}` : `${text}\n`))
          .join("");
        expect(cut("auto", sent, sizes)).toEqual(whole(...messages.map(({ text }) => text)));
      },
    ),
    { numRuns: testRuns(300) },
  );
});
