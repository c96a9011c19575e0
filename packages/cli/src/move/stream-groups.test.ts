import { expect, it } from "@jest/globals";
import type { Client } from "../client/client.js";
import { Failure } from "../shell/command.js";
import { StreamGroups } from "./stream-groups.js";

const range = { fromNs: 0n, toNs: 60_000_000_000n };

/** A server with one stream for each value of `pod`, and how many lines that has. */
function serverOf(counts: Readonly<Record<string, number>>, maxSeries = 500) {
  const asked: string[] = [];
  const answers: Record<string, (params: { readonly query?: string }) => unknown> = {
    "/loki/api/v1/series": () => ({ data: Object.keys(counts).map((pod) => ({ job: "j", pod })) }),
    "/loki/api/v1/query": ({ query = "" }) => {
      asked.push(query);
      const all = Object.entries(counts);
      if (all.length > maxSeries) throw new Failure("refused", "too many series");
      const result = all.map(([pod, count]) => ({ metric: { pod }, value: [0, `${count}`] }));
      return { data: { resultType: "vector", result } };
    },
  };
  const json = async (path: string, params: object) => answers[path]?.(params);
  return { client: { json } as unknown as Pick<Client, "json">, asked };
}

it("makes groups of streams that have a page of lines each", async () => {
  const { client, asked } = serverOf({ "a.1": 30, b: 90, c: 40, d: 250 });
  const groups = await StreamGroups.open(client, '{job="j"} |= "x" | json', range);
  expect(await groups?.of(range, 100)).toEqual([
    '{job="j", pod="d"} |= "x" | json',
    '{job="j", pod="b"} |= "x" | json',
    '{job="j", pod=~"c|a\\\\.1"} |= "x" | json',
  ]);
  expect(asked).toEqual(['sum by (pod) (count_over_time({job="j"} |= "x" | json [60000ms]))']);
});

it("asks for a page by itself, and for what the server does not count", async () => {
  const few = await StreamGroups.open(serverOf({ a: 50, b: 49 }).client, '{job="j"}', range);
  expect(await few?.of(range, 100)).toBeUndefined();
  const many = await StreamGroups.open(serverOf({ a: 50, b: 60 }, 1).client, '{job="j"}', range);
  expect(await many?.of(range, 100)).toBeUndefined();
});

it.each([
  ["labels that change", '{job="j"} | label_format pod="x"'],
  ["a metric query", "sum(count_over_time({job=`j`}[1m]))"],
  ["a mistake", "{job="],
])("makes none of %s", async (_, query) => {
  expect(await StreamGroups.open(serverOf({ a: 1, b: 2 }).client, query, range)).toBeUndefined();
});

it("makes none by a label that a stream lacks, which a field of its lines may have", async () => {
  const { client } = serverOf({ a: 60, b: 60, "": 60 });
  expect(await StreamGroups.open(client, '{job="j"} | json', range)).toBeUndefined();
});

it("makes none where all streams have the same labels", async () => {
  expect(await StreamGroups.open(serverOf({ a: 1 }).client, '{job="j"}', range)).toBeUndefined();
});
