import { describe, expect, it } from "@jest/globals";
import { makeBatch, type TestStream } from "@skald/testkit";
import { equals, readRows, setUp } from "./ingester.fixture.js";

const second = 1_000_000_000n;
const day = 20_400n * 86_400n * second;

function push(...streams: TestStream[]) {
  return { tenant: "t", batch: makeBatch(streams) };
}

function rows(labels: Record<string, string>, ...lines: [bigint, string][]): TestStream {
  return { labels, rows: lines.map(([ns, line]) => ({ ns: day + ns, line })) };
}

describe("Ingester", () => {
  it("shows what was pushed, and again after a restart", async () => {
    const { dir, ingester } = await setUp();
    await ingester.start();
    const first = rows({ app: "a" }, [1n, "one"], [2n, "two"]);
    expect(await ingester.push(push(first, rows({ app: "b" }, [5n, "other"])))).toEqual({
      refusals: [],
    });
    await ingester.push(push(rows({ app: "a" }, [3n, "three"])));
    const want = [
      `{app="a"} ${day + 1n} one`,
      `{app="a"} ${day + 2n} two`,
      `{app="a"} ${day + 3n} three`,
      `{app="b"} ${day + 5n} other`,
    ];
    expect(await readRows(ingester, "t")).toEqual(want);
    expect(await readRows(ingester, "t", { matchers: [equals("app", "b")] })).toEqual(
      want.slice(3),
    );
    expect(await readRows(ingester, "t", { fromNs: day + 6n })).toEqual([]);
    expect(await readRows(ingester, "other")).toEqual([]);
    await ingester.stop();
    const again = await setUp({ dir });
    await again.ingester.start();
    expect(await readRows(again.ingester, "t")).toEqual(want);
    await again.ingester.stop();
  });

  it("flushes into the store and forgets the log", async () => {
    const { dir, ingester, store } = await setUp();
    await ingester.start();
    await ingester.push(push(rows({ app: "a" }, [1n, "one"], [90_000n * second, "next day"])));
    await ingester.flush();
    expect(store.objects.size).toBe(2);
    const want = [`{app="a"} ${day + 1n} one`, `{app="a"} ${day + 90_000n * second} next day`];
    expect(await readRows(ingester, "t")).toEqual(want);
    await ingester.stop();
    const again = await setUp({ dir, store });
    await again.ingester.start();
    expect(await readRows(again.ingester, "t")).toEqual(want);
    expect(store.puts).toBe(2);
    await again.ingester.stop();
  });
});
