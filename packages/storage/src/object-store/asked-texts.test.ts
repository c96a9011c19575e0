import { beforeEach, describe, expect, it } from "@jest/globals";
import { AskedTexts } from "./asked-texts.js";
import { MemoryStore } from "./memory-store.js";

const options = { signal: new AbortController().signal };
const key = "index/asked_texts/tenant=t/texts.json";
const weekMs = 7 * 86_400_000;
let nowMs: number;
let store: MemoryStore;
let asked: AskedTexts;

beforeEach(() => {
  nowMs = 1_000_000_000_000;
  const clock = { nowMs: () => nowMs };
  store = new MemoryStore(clock);
  asked = new AskedTexts({ store, clock });
});

/** Asks for a text in each of some minutes. */
function ask(text: string, minutes: number): void {
  for (let i = 0; i < minutes; i++, nowMs += 60_000) asked.note("t", text);
}

const stored = async () => JSON.parse(Buffer.from(await store.get(key, options)).toString());

describe("asked texts", () => {
  it("begin with common words, which stay until they are no longer asked for", async () => {
    const texts = async () => (await asked.mostAsked("t", options)).texts;
    const first = await texts();
    expect(first).toEqual(["error", "ERROR", "timeout", "exception", "failed", "warn", "panic"]);
    ask("mine", 100);
    await asked.flush(options);
    expect((await texts()).slice(0, 2)).toEqual(["mine", "error"]);
    nowMs += 2 * weekMs;
    expect(await texts()).toEqual(["mine", ...first]);
    nowMs += weekMs;
    expect(await texts()).toEqual(["mine"]);
  });

  it("count once a minute, flushed or not, and in all processes", async () => {
    for (let i = 0; i < 10; i++) asked.note("t", "often");
    await asked.flush(options);
    asked.note("t", "often");
    await asked.flush(options);
    expect((await stored()).counts.often).toBe(1);
    nowMs += 60_000;
    asked.note("t", "often");
    await asked.flush(options);
    const other = new AskedTexts({ store, clock: { nowMs: () => nowMs } });
    other.note("t", "often");
    await other.flush(options);
    expect((await stored()).counts.often).toBe(3);
  });

  it("stand beside the fields that queries want from lines", async () => {
    for (let i = 0; i < 4; i++, nowMs += 60_000) asked.noteField("t", "id");
    ask("id=", 4);
    await asked.flush(options);
    expect((await asked.mostAsked("t", options)).fields).toEqual(new Map([["id", 4]]));
    nowMs += 2 * weekMs;
    expect((await asked.mostAsked("t", options)).fields).toEqual(new Map([["id", 1]]));
    expect((await stored()).counts["id="]).toBe(4);
  });

  it("leave out what was asked for a few times only, and what is too short or too long", async () => {
    ask("seldom", 3);
    ask("enough", 4);
    ask("ab", 20);
    ask("x".repeat(65), 20);
    await asked.flush(options);
    const { texts } = await asked.mostAsked("t", options);
    expect(texts).toContain("enough");
    expect(texts).not.toContain("seldom");
    expect(texts.every(({ length }) => length > 2 && length < 65)).toBe(true);
  });

  it("are bounded, in memory and in the store", async () => {
    for (let i = 0; i < 2000; i++) asked.note("t", `text ${i}`);
    for (let i = 0; i < 2000; i++) asked.note(`tenant ${i}`, "text");
    await asked.flush(options);
    expect(Object.keys((await stored()).counts)).toHaveLength(64);
    expect((await asked.mostAsked("t", options)).texts).toContain("error");
    await expect(
      store.get("index/asked_texts/tenant=tenant%201999/texts.json", options),
    ).rejects.toMatchObject({ code: "not_found" });
  });

  it.each([
    ["damaged", "{", 1],
    ["of a later version", '{"version":2,"sinceMs":0,"counts":{"abc":99}}', 2],
    ["without counts", '{"version":1,"sinceMs":0}', 1],
  ])("begin anew where the object is %s", async (_case, text, version) => {
    await store.put(key, Buffer.from(text), options);
    expect((await asked.mostAsked("t", options)).texts).toContain("error");
    ask("mine", 9);
    await asked.flush(options).catch(() => undefined);
    const body = Buffer.from(await store.get(key, options)).toString();
    expect(JSON.parse(body).version).toBe(version);
    // What a later program wrote stays as it is.
    expect(body === text).toBe(version === 2);
  });

  it("of one tenant are not those of another", async () => {
    ask("mine", 9);
    await asked.flush(options);
    expect((await asked.mostAsked("other", options)).texts).not.toContain("mine");
  });
});
