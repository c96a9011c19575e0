import { expect, it } from "@jest/globals";
import type { SegmentScanner } from "@skald/contracts";
import { AskedTexts, MemoryStore } from "@skald/storage";
import { notingTexts } from "./querier.js";

const { signal } = new AbortController();
const clock = { nowMs: () => 0 };
const key = "index/asked_texts/tenant=t/texts.json";

const filter = (op: string, ...values: string[]) => ({
  ...{ kind: "line_filter", op },
  alternatives: values.map((value) => ({ kind: "text", value })),
});
const parser = { kind: "json", extractions: [] };
const ip = {
  ...{ kind: "line_filter", op: "|=" },
  alternatives: [{ kind: "ip", value: "10.0.0.0/8" }],
};

it.each([
  [
    "filters before a parser",
    [filter("|=", "first"), filter("!=", "second"), filter("|~", "re"), parser, filter("|=", "no")],
    ["first", "second"],
  ],
  ["alternatives", [filter("|=", "left", "right")], ["left", "right"]],
  ["texts beside addresses", [ip, filter("|=", "text")], ["text"]],
  [
    "the first of many",
    [filter("|=", "1a1", "2a2", "3a3", "4a4", "5a5")],
    ["1a1", "2a2", "3a3", "4a4"],
  ],
])("notes what scans of the store ask for: %s", async (_case, stages, want) => {
  const store = new MemoryStore(clock);
  const asked = new AskedTexts({ store, clock });
  const kinds: string[] = [];
  const scanner = { run: async (kind: string) => void kinds.push(kind) };
  const noting = notingTexts(scanner as unknown as SegmentScanner, asked);
  const run = async (kind: "scan" | "measure", plan: object) => {
    const task = { plan, sources: [{ ref: { tenant: "t" }, sequence: 0 }] } as never;
    await noting.run(kind, task, { signal } as never);
    await asked.flush({ signal });
  };
  await run("measure", { stages });
  await expect(store.get(key, { signal })).rejects.toMatchObject({ code: "not_found" });
  await run("scan", { log: { stages } });
  await run("scan", { stages });
  const { counts } = JSON.parse(Buffer.from(await store.get(key, { signal })).toString());
  expect(Object.keys(counts).filter((text) => counts[text] === 1)).toEqual(want);
  expect(kinds).toEqual(["measure", "scan", "scan"]);
});

it("notes the fields that queries want from lines", async () => {
  const store = new MemoryStore(clock);
  const asked = new AskedTexts({ store, clock });
  const noting = notingTexts({ run: async () => undefined } as unknown as SegmentScanner, asked);
  const run = (plan: object) => {
    const task = { plan, sources: [{ ref: { tenant: "t" }, sequence: 0 }] } as never;
    return noting.run("scan", task, { signal } as never);
  };
  const number = (name: string) => ({ kind: "number", name, op: ">", value: 1 });
  const text = { kind: "string", matcher: { name: "level", op: "=", value: "x" } };
  const either = { kind: "or", left: number("status"), right: text };
  await run({ stages: [{ kind: "label_filter", filter: number("before") }, parser] });
  const filtered = { kind: "label_filter", filter: either };
  const unwrap = { label: "took", filters: [] };
  const grouping = { without: false, labels: ["method"] };
  await run({ stages: [parser, filtered], unwrap, grouping });
  await run({ log: { stages: [parser, filtered] } });
  await run({ stages: [], grouping: { without: false, labels: ["app"] } });
  await asked.flush({ signal });
  const { fields } = JSON.parse(Buffer.from(await store.get(key, { signal })).toString());
  expect(fields).toEqual({ status: 1, level: 1, took: 1, method: 1 });
});
