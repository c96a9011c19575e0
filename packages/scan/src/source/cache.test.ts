import { afterAll, describe, expect, it } from "@jest/globals";
import { type SegmentRef, unavailable } from "@skald/model";
import { openSegmentFile } from "@skald/storage";
import { makeDirectory, makeHead, makeSegment, row } from "../testing/sources.js";
import { type ImagedRef, SourceCache } from "./cache.js";
import type { Source } from "./source.js";

const directory = makeDirectory();
afterAll(directory.remove);
const refs = ["a", "b", "c"].map((id) =>
  makeSegment(directory.path, [row(id, 1, "line")], { id }),
) as [SegmentRef, SegmentRef, SegmentRef];
const [a, b, c] = refs;

/** A cache, and what it opened (+) and closed (-). */
function cacheOf(maxOpenSegments: number, maxIndexBytes = 1e9) {
  const events: string[] = [];
  const cache = new SourceCache({
    maxOpenSegments,
    maxIndexBytes,
    openFile: (ref) => {
      const opened = openSegmentFile(ref);
      events.push(`+${ref.id}`);
      return {
        segment: opened.segment,
        close: () => {
          events.push(`-${ref.id}`);
          opened.close();
        },
      };
    },
  });
  return { cache, events };
}

describe("SourceCache", () => {
  it("opens a file once and closes the least used one", () => {
    const { cache, events } = cacheOf(2);
    for (const ref of [a, b, a, c, a, b]) cache.use((open) => open(ref));
    expect(events).toEqual(["+a", "+b", "+c", "-b", "+b", "-c"]);
    cache.close();
    expect(events.slice(-2)).toEqual(["-a", "-b"]);
    expect(cache.size).toBe(0);
  });

  it("keeps open what is in use, however little it may hold", () => {
    const { cache, events } = cacheOf(1);
    const texts = cache.use((open) => refs.map(open).map((source) => source.streams.text(0)));
    expect(texts).toEqual(['{app="a"}', '{app="b"}', '{app="c"}']);
    expect(events).toEqual(["+a", "+b", "+c", "-a", "-b"]);
    expect(cache.size).toBe(1);
  });

  it("names each source before it is closed", () => {
    const closed: string[] = [];
    const onClose = ({ id, streams }: Source) => closed.push(`${id} ${streams.text(0)}`);
    const cache = new SourceCache({
      maxOpenSegments: 9,
      maxSegments: 1,
      maxIndexBytes: 1e9,
      onClose,
    });
    for (const ref of [a, b]) cache.use((open) => open(ref));
    expect(closed).toEqual(['a {app="a"}']);
    cache.close();
    expect(closed).toEqual(['a {app="a"}', 'b {app="b"}']);
  });

  it("closes what is not there any more", () => {
    const { cache, events } = cacheOf(9);
    cache.use((open) => [a, b].map(open));
    for (const { location } of [a, c]) if (location.kind === "file") cache.forget(location.path);
    expect(events).toEqual(["+a", "+b", "-a"]);
    expect(cache.size).toBe(1);
  });

  it("closes what is not in use when too many files are open", () => {
    let limit = 2;
    const isOpen = new Set<string>();
    const cache = new SourceCache({
      maxOpenSegments: 9,
      maxIndexBytes: 1e9,
      openFile: (ref) => {
        if (isOpen.size >= limit) throw unavailable(`file ${ref.id} cannot be opened`);
        isOpen.add(ref.id);
        const { segment, close } = openSegmentFile(ref);
        return {
          segment,
          close: () => {
            isOpen.delete(ref.id);
            close();
          },
        };
      },
    });
    cache.use((open) => [a, b].map(open));
    const texts = cache.use((open) => [c, a].map(open).map((source) => source.streams.text(0)));
    expect(texts).toEqual(['{app="c"}', '{app="a"}']);
    limit = 1;
    expect(() => cache.use((open) => [a, b].map(open))).toThrow("file b cannot be opened");
    cache.close();
  });

  it("tells copies of one segment apart", () => {
    const { cache, events } = cacheOf(9);
    const copy = { ...b, id: a.id };
    const texts = cache.use((open) => [a, copy].map((ref) => open(ref).streams.text(0)));
    expect(texts).toEqual(['{app="a"}', '{app="b"}']);
    expect(events).toEqual(["+a", "+a"]);
  });

  it("bounds the memory of indexes", () => {
    const { cache } = cacheOf(100, 40_000);
    for (const ref of refs) cache.use((open) => open(ref));
    expect(cache.size).toBe(2);
  });

  it("closes files also when the work fails", () => {
    const { cache, events } = cacheOf(0);
    const work = () =>
      cache.use((open) => {
        open(a);
        throw new Error("cancelled");
      });
    expect(work).toThrow("cancelled");
    expect(events).toEqual(["+a", "-a"]);
  });

  it("opens heads, and refuses files that are gone", () => {
    const { cache } = cacheOf(2);
    const head = makeHead([row("h", 1, "x")], { id: "h" });
    expect(cache.use((open) => open(head).streams.text(0))).toBe('{app="h"}');
    expect(cache.size).toBe(0);
    const gone = { ...a, id: "gone", location: { kind: "file", path: "/no/such/file" } } as const;
    expect(() => cache.use((open) => open(gone))).toThrow("file /no/such/file is gone");
  });
});

it("keeps more segments than files open, and reads them all the same", () => {
  const cache = new SourceCache({ maxOpenSegments: 1, maxIndexBytes: 1e9 });
  for (const ref of [a, b, c, a, b, c]) {
    expect(cache.use((open) => open(ref).block(0).lines().offsets)).toHaveLength(2);
    expect(cache.files).toBe(1);
  }
  expect(cache.size).toBe(3);
  cache.close();
});

it("keeps what it has decoded when that comes back to it, and drops its own for another's", () => {
  const opened: string[] = [];
  const cacheOfOne = () =>
    new SourceCache({
      maxOpenSegments: 9,
      maxIndexBytes: 1e9,
      openFile: (ref, image) => {
        opened.push(image === undefined ? "decoded" : "given");
        return openSegmentFile(ref, image);
      },
    });
  const [cache, other] = [cacheOfOne(), cacheOfOne()];
  for (const one of [cache, other]) one.use((open) => open(a));
  const [decoded] = cache.takeDecoded();
  // As it comes from another thread: the same memory, another object.
  const given: ImagedRef = { ...a, image: structuredClone(decoded!.image) };
  cache.use((open) => open(given));
  expect(opened).toEqual(["decoded", "decoded"]);
  other.use((open) => open(given));
  expect(opened).toEqual(["decoded", "decoded", "given"]);
  for (const one of [cache, other]) one.close();
});
