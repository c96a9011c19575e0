import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import type { SampledLines } from "@skald/contracts";
import type { Matcher } from "@skald/model";
import { loadPatterns, refuseNewerPatterns, savePatterns } from "./pattern-file.js";
import { type ErasedRows, type PatternOptions, PatternStore } from "./pattern-store.js";
import { patternJobs } from "./pattern-thread.js";

const folder = mkdtempSync(join(tmpdir(), "skald-patterns-"));
afterAll(() => rmSync(folder, { recursive: true }));

const dayNs = 86_400_000_000_000n;
const baseNs = 20_000n * dayNs;
const baseSeconds = 20_000 * 86_400;
const options: PatternOptions = {
  maxClusters: 300,
  maxEvictionRatio: 0.25,
  maxLineBytes: 3000,
  retainMs: 3_600_000,
  sampleMs: 10_000,
  maxMinersPerTenant: 10,
  maxTenants: 10,
};

/** Lines of one stream, one a second, from a second of the day on. */
function linesOf(app: string, lines: readonly string[], second = 0, level = "info"): SampledLines {
  let end = 0;
  return {
    ...{ tenant: "t", weight: 1, streams: [`{app="${app}"}`], levels: [level] },
    streamOf: new Uint32Array(lines.length),
    levelOf: new Uint32Array(lines.length),
    seconds: Float64Array.from(lines, (_, i) => baseSeconds + second + i),
    ends: Uint32Array.from(lines, (line) => {
      end += Buffer.byteLength(line);
      return end;
    }),
    bytes: Buffer.from(lines.join("")),
  };
}

function ask(store: PatternStore, app = "a", stepSeconds = 10, tenant = "t") {
  const matchers: Matcher[] = [{ name: "app", op: "=", value: app }];
  const range = { fromNs: baseNs, toNs: baseNs + dayNs };
  return store.patterns({ tenant, matchers, ...range, stepSeconds }).patterns;
}

const served = (count: number) =>
  Array.from({ length: count }, (_, i) => `served page ${i} of 9000`);

describe("PatternStore", () => {
  it("counts lines by pattern, level and time", () => {
    const store = new PatternStore(options);
    store.learn(linesOf("a", served(40)), []);
    store.learn(linesOf("a", served(30), 0, "error"), []);
    const samples = [0, 10, 20, 30].map((second) => [baseSeconds + second, 10]);
    const pattern = "served page <_> of <_>";
    expect(ask(store)).toEqual([
      { pattern, level: "info", samples },
      { pattern, level: "error", samples: samples.slice(0, 3) },
    ]);
    expect(ask(store, "a", 20)[0]?.samples).toEqual([
      [baseSeconds, 20],
      [baseSeconds + 20, 20],
    ]);
    // at multiples of any step
    expect(ask(store, "a", 11)[0]?.samples.map(([at, count]) => [at % 11, count])).toEqual([
      [0, 10],
      [0, 20],
      [0, 10],
    ]);
    expect(ask(store, "b")).toEqual([]);
    expect(ask(store, "a", 10, "other")).toEqual([]);
  });

  it("leaves out what is rare, and lines that are too long", () => {
    const store = new PatternStore({ ...options, maxLineBytes: 30 });
    store.learn(linesOf("a", served(29)), []);
    store.learn(linesOf("a", Array(40).fill(`a line ${"x".repeat(30)} that is long`)), []);
    expect(ask(store)).toEqual([]);
  });

  it("counts a line for all that it stands for", () => {
    const store = new PatternStore(options);
    store.learn({ ...linesOf("a", served(100)), weight: 10 }, []);
    const counts = ask(store)[0]?.samples.map(([, count]) => count) ?? [];
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1000);
  });

  it("tells how many lines there are, those of no pattern too", () => {
    const store = new PatternStore(options);
    store.learn(linesOf("a", [...served(40), "another kind of line that came once"]), []);
    const matchers: Matcher[] = [{ name: "app", op: "=", value: "a" }];
    const range = { fromNs: baseNs, toNs: baseNs + dayNs };
    expect(store.patterns({ tenant: "t", matchers, ...range, stepSeconds: 10 }).lines).toBe(41);
  });

  it("forgets samples that are older than it shall keep", () => {
    const store = new PatternStore(options);
    store.learn(linesOf("a", served(40)), []);
    store.learn(linesOf("a", served(40), 4000), []);
    expect(ask(store)[0]?.samples[0]).toEqual([baseSeconds + 4000, 10]);
  });

  it("keeps so many streams, those that learnt last", () => {
    const store = new PatternStore({ ...options, maxMinersPerTenant: 2 });
    for (const app of ["a", "b", "c"]) store.learn(linesOf(app, served(40)), []);
    expect(["a", "b", "c"].map((app) => ask(store, app).length)).toEqual([0, 1, 1]);
  });

  it("is the same after a restart, and goes on", () => {
    const path = join(folder, "patterns.bin");
    const store = new PatternStore(options);
    store.learn(linesOf("a", served(40)), []);
    savePatterns(store, path);
    const again = new PatternStore(options);
    expect(loadPatterns(again, path)).toBe(true);
    expect(ask(again)).toEqual(ask(store));
    again.learn(linesOf("a", served(40), 40), []);
    expect(ask(again)).toHaveLength(1);
    expect(ask(again)[0]?.samples).toHaveLength(8);
  });

  it("forgets the streams of a delete request once, and learns no line of it", () => {
    const store = new PatternStore(options);
    for (const app of ["a", "b"]) store.learn(linesOf(app, served(40)), []);
    const request = {
      ...{ id: "1", matchers: [{ name: "app", op: "=", value: "a" } as Matcher] },
      ...{ fromNs: baseNs, toNs: baseNs + 100n * 1_000_000_000n },
    };
    expect(store.erase("t", [request])).toBe(true);
    expect(["a", "b"].map((app) => ask(store, app).length)).toEqual([0, 1]);
    // Lines that were sampled before the request come late. Those of other streams and times count.
    for (const app of ["a", "b"]) store.learn(linesOf(app, served(40), 40), [], [request]);
    expect(["a", "b"].map((app) => ask(store, app).length)).toEqual([0, 1]);
    store.learn(linesOf("a", served(40), 101), [], [request]);
    expect(store.erase("t", [request])).toBe(false);
    expect(ask(store, "a")[0]?.samples[0]?.[0]).toBe(baseSeconds + 100);
    // The streams of a request are unknown once its text was taken out.
    expect(store.erase("t", [request, { ...request, id: "2", matchers: undefined }])).toBe(true);
    expect(["a", "b"].map((app) => ask(store, app).length)).toEqual([0, 0]);
    expect(store.erase("other", [])).toBe(false);
  });

  it("writes a delete request through to the file, and deletes a file that is a day old", () => {
    const path = join(folder, "erased.bin");
    const setup = { path, options };
    const jobs = patternJobs() as Record<string, (job: object, context: object) => unknown>;
    const lines = linesOf("a", Array(40).fill("the secret of somebody"));
    jobs.learn?.({ setup, lines, fields: [], erased: [] }, {});
    jobs.save?.({ setup }, {});
    expect(readFileSync(path).includes("secret")).toBe(true);
    const erased = [
      { id: "1", matchers: undefined, fromNs: baseNs, toNs: baseNs + dayNs } satisfies ErasedRows,
    ];
    const again = patternJobs() as typeof jobs;
    again.erase?.({ setup, tenant: "t", erased }, {});
    expect(readFileSync(path).includes("secret")).toBe(false);

    jobs.save?.({ setup }, {});
    utimesSync(path, Date.now() / 1000, Date.now() / 1000 - 90_000);
    expect(loadPatterns(new PatternStore(options), path)).toBe(false);
    expect(existsSync(path)).toBe(false);
  });

  it("leaves a file of a newer version as it is", () => {
    const path = join(folder, "newer.bin");
    savePatterns(new PatternStore(options), path);
    const bytes = readFileSync(path);
    bytes.writeUInt32LE(2, 4);
    writeFileSync(path, bytes);
    const newer = expect.objectContaining({ code: "newer_version" });
    expect(() => refuseNewerPatterns(path)).toThrow(newer);
    expect(() => loadPatterns(new PatternStore(options), path)).toThrow(newer);
    const save = patternJobs().save as (job: object, context: object) => unknown;
    for (let i = 0; i < 2; i++) expect(() => save({ setup: { path, options } }, {})).toThrow(newer);
    expect(readFileSync(path)).toEqual(bytes);
    writeFileSync(path, bytes.subarray(0, 8));
    refuseNewerPatterns(path);
    refuseNewerPatterns(join(folder, "none"));
  });

  it("begins anew when the file is damaged, cut, of another version or not there", () => {
    const path = join(folder, "damaged.bin");
    const store = new PatternStore(options);
    store.learn(linesOf("a", served(40)), []);
    savePatterns(store, path);
    const bytes = readFileSync(path);
    for (const at of [0, 4, 5, 8, 20, bytes.length - 1]) {
      const damaged = Buffer.from(bytes);
      damaged[at] = damaged[at]! ^ 1;
      writeFileSync(path, damaged);
      expect(loadPatterns(new PatternStore(options), path)).toBe(false);
    }
    writeFileSync(path, bytes.subarray(0, 5));
    expect(loadPatterns(new PatternStore(options), path)).toBe(false);
    expect(loadPatterns(new PatternStore(options), join(folder, "none"))).toBe(false);
  });
});
