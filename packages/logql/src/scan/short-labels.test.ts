import { describe, expect, it } from "@jest/globals";
import { labelsFromObject, labelsToObject } from "@skald/model";
import { restLabel, shortenTo } from "./short-labels.js";

const shorten = (labels: Record<string, string>, read: readonly string[] = ["app"]) =>
  labelsToObject(shortenTo(read)(labelsFromObject(labels)));

describe("labels of which some are read", () => {
  it("keep these, and a short hash stands for the others", () => {
    const short = shorten({ app: "web", id: "x".repeat(10_000), pod: "web-0" });
    expect(short).toEqual({ app: "web", [restLabel]: expect.stringMatching(/^\w{1,7}\.\w{1,7}$/) });
  });

  it("stay as they are where all are read, and when they are short already", () => {
    expect(shorten({ app: "web" }, ["app", "pod"])).toEqual({ app: "web" });
    const short = shortenTo(["app"])(labelsFromObject({ app: "web", id: "1" }));
    expect(shortenTo(["app"])(short)).toBe(short);
  });

  it("are told apart by each name and value, and by where values end", () => {
    const sets = [
      {},
      { app: "web" },
      { id: "1" },
      { id: "2" },
      { ix: "1" },
      { id: "1", pod: "a" },
      { id: "1p", od: "a" },
      { id: "a", pod: "1" },
      { app: "web", id: "1" },
      { id: "é" },
      { id: "è" },
      ...Array.from({ length: 100_000 }, (_, i) => ({ id: `${i}`, trace: `${i * 7}` })),
    ];
    const keys = new Set(sets.map((set) => JSON.stringify(shorten(set))));
    expect(keys.size).toBe(sets.length);
  });

  it("have the same hash in every process", () => {
    expect(shorten({ id: "1", pod: "web-0" })[restLabel]).toBe("1ru0xv5.rku5bu");
  });
});
