import { describe, expect, it } from "@jest/globals";
import type { HeadRef } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import type { PlannedSource } from "../find/order-sources.js";
import { cutTasks } from "./cut-tasks.js";

const mib = 1024 * 1024;

function segment(
  id: string,
  mibStored: number,
  side: PlannedSource["side"] = "store",
): PlannedSource {
  const ref: SegmentRef = {
    kind: "segment",
    id,
    tenant: "t",
    minNs: 0n,
    maxNs: 0n,
    sizeBytes: mibStored * mib,
    location: { kind: "file", path: id },
  };
  return { ref, side, sequence: 0, older: [] };
}

function head(id: string, blocks: number): PlannedSource {
  const ref: HeadRef = {
    ...{ kind: "head", id, tenant: "t", minNs: 0n, maxNs: 0n },
    view: "v",
    sizeBytes: blocks * mib,
  };
  return { ref, side: "ingester", sequence: 0, older: [] };
}

const told = (sources: readonly PlannedSource[], split = true) =>
  cutTasks(sources, { split, threads: 2 }).map(({ side, sources: parts }) =>
    [
      side,
      ...parts.map(
        ({ source, part }) => `${source.ref.id}${part ? `:${part.index}/${part.count}` : ""}`,
      ),
    ].join(" "),
  );

describe("cutTasks", () => {
  it("puts small sources together and cuts large ones, in their order", () => {
    const sources = [
      segment("a", 0.5),
      segment("b", 0.5),
      segment("c", 7),
      segment("d", 0.1),
      head("e", 20),
    ];
    expect(told(sources)).toEqual([
      "store a b",
      "store c:0/3",
      "store c:1/3",
      "store c:2/3",
      "store d",
      "ingester e:0/2",
      "ingester e:1/2",
    ]);
  });

  it("leaves something for every thread", () => {
    const four = [segment("a", 0.2), segment("b", 0.2), segment("c", 0.2), segment("d", 0.2)];
    expect(told(four)).toEqual(["store a", "store b", "store c", "store d"]);
    const tiny = four.map(({ ref }) => segment(ref.id, 0.002));
    expect(told(tiny)).toEqual(["store a b c d"]);
  });

  it("leaves large ones whole when asked to", () => {
    expect(told([segment("a", 7), segment("b", 7), head("c", 1)], false)).toEqual([
      "store a",
      "store b",
      "ingester c",
    ]);
  });

  it("keeps the sides apart and bounds the sources of a task", () => {
    const many = Array.from({ length: 130 }, (_, i) => segment(`${i}`, 0));
    expect(
      cutTasks(many, { split: true, threads: 2 }).map(({ sources }) => sources.length),
    ).toEqual([64, 64, 2]);
    expect(told([segment("a", 0), segment("b", 0, "ingester"), segment("c", 0)])).toEqual([
      "store a",
      "ingester b",
      "store c",
    ]);
    expect(told([])).toEqual([]);
  });
});
