import { expect, it } from "@jest/globals";
import type { CatalogRequest } from "@skald/contracts";
import { listedSince } from "./listed-since.js";

const { signal } = new AbortController();
const request: CatalogRequest = { tenant: "t", fromNs: 0n, toNs: 1n };

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
  const catalog = listedSince({ list }, () => sinceLeftMs);
  await catalog.list({ ...request, ...asked }, { signal });
  expect(seen).toEqual([{ ...request, ...want }]);
});
