import { describe, expect, it } from "@jest/globals";
import type { SegmentRef } from "@skald/model";
import { type HeadView, shareTexts } from "@skald/storage";
import { Views } from "./held.js";

const head = (id: string): HeadView => ({
  ...{ kind: "head", id, tenant: "t", minNs: 0n, maxNs: 1n, texts: shareTexts([]), matchers: [] },
  streams: new Uint32Array(0),
  sizeBytes: 8,
  blocks: [
    {
      ...{ number: 0, memory: new SharedArrayBuffer(8), rowCount: 1, runCount: 1, pairCount: 0 },
      ...{ baseNs: 0n, metaNames: [] },
    },
  ],
});

const segment: SegmentRef = {
  ...{ kind: "segment", id: "s", tenant: "t", minNs: 0n, maxNs: 1n, sizeBytes: 1 },
  location: { kind: "file", path: "s" },
};

function viewsOf() {
  let nowMs = 0;
  const views = new Views({ elapsedMs: () => nowMs });
  return { views, pass: (ms: number) => (nowMs += ms) };
}

describe("Views", () => {
  it("name heads in plain data, and find them until they are released", () => {
    const { views } = viewsOf();
    const a = head("a");
    const { view = "", refs } = views.open([a], []);
    const ref = { kind: "head", id: "a", tenant: "t", minNs: 0n, maxNs: 1n, view, sizeBytes: 8 };
    expect(refs).toEqual([ref]);
    expect(views.find(refs[0]!)).toBe(a);
    views.release(view);
    views.release(view);
    expect(() => views.find(refs[0]!)).toThrow(`the view ${view} of head a is gone`);
  });

  it("are not found by the names of an earlier process, which had a head of the same id", () => {
    const [earlier] = viewsOf().views.open([head("a")], []).refs;
    const { views } = viewsOf();
    const [later] = views.open([head("a")], []).refs;
    expect(() => views.find(earlier!)).toThrow("of head a is gone");
    views.release(earlier!.view);
    expect(views.find(later!).id).toBe("a");
  });

  it("keep the files of segments until they are released", () => {
    const { views, pass } = viewsOf();
    const { view = "", refs } = views.open([], [segment]);
    expect([refs, views.holds("s"), views.holds("other")]).toEqual([[], true, false]);
    const { view: another = "" } = views.open([head("a")], [segment]);
    views.release(view);
    expect(views.holds("s")).toBe(true);
    views.release(another);
    expect(views.holds("s")).toBe(false);
    views.open([], [segment]);
    pass(11 * 60_000);
    views.sweep();
    expect(views.holds("s")).toBe(false);
  });

  it("hold nothing when nothing was selected", () => {
    const { views } = viewsOf();
    expect(views.open([], [])).toEqual({ refs: [] });
    expect(views.size).toBe(0);
  });

  it("are forgotten when nobody scans them any more", () => {
    const { views, pass } = viewsOf();
    const [used] = views.open([head("a")], []).refs;
    views.open([head("b")], []);
    pass(9 * 60_000);
    views.find(used!);
    pass(9 * 60_000);
    views.sweep();
    expect(views.size).toBe(1);
    expect(views.find(used!).id).toBe("a");
    pass(11 * 60_000);
    views.sweep();
    expect(views.size).toBe(0);
  });
});
