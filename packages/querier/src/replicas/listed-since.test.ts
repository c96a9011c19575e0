import { expect, it } from "@jest/globals";
import type { CatalogRequest, CountRequest } from "@skald/contracts";
import { listedSince } from "./replicated-ingester.js";

const { signal } = new AbortController();
const request: CatalogRequest = { tenant: "t", fromNs: 0n, toNs: 1n };
const share = { tenant: "t", actors: [], cost: 0 };

it.each([
  ["nobody left", Number.POSITIVE_INFINITY, {}, {}],
  ["one left", 700, {}, { maxAgeMs: 700 }],
  ["one left, and a segment was gone", 700, { maxAgeMs: 0 }, { maxAgeMs: 0 }],
  ["one left before what the asker wants", 700, { maxAgeMs: 900 }, { maxAgeMs: 700 }],
])("asks for listings that have what was stored: %s", async (_name, sinceLeftMs, asked, want) => {
  const seen: CatalogRequest[] = [];
  const list = async (one: CatalogRequest) => {
    seen.push(one);
    return [];
  };
  const count = async (one: CatalogRequest) => {
    seen.push(one);
    return { segments: [], counted: [], countedSegments: 0 };
  };
  const catalog = listedSince({ list, count }, () => sinceLeftMs);
  await catalog.list({ ...request, ...asked }, { signal });
  await catalog.count?.({ ...request, ...asked } as CountRequest, { signal, share });
  expect(seen).toEqual([
    { ...request, ...want },
    { ...request, ...want },
  ]);
  expect(listedSince({ list }, () => sinceLeftMs).count).toBeUndefined();
});
