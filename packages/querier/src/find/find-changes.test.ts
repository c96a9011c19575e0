import { describe, expect, it } from "@jest/globals";
import type { HeldChangesRequest, HeldRows, RowFilter } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { ReplicatedIngester } from "../replicas/replicated-ingester.js";
import { findChanges } from "./find-changes.js";

const { signal } = new AbortController();
const hour = 3_600_000_000_000n;
const span = { fromNs: 10n * hour, toNs: 11n * hour };
const row = { fromNs: span.fromNs + 5n, toNs: span.fromNs + 6n };

/** An ingester that is written to by `writes`. */
function makeIngester(lookedFromNs?: bigint) {
  let writes = 0;
  const changes = async ({ spans }: HeldChangesRequest) => ({
    spans: spans.map(({ since, ...asked }) => ({
      token: String(writes),
      changed: since === String(writes) ? [] : since === undefined ? [asked] : [row],
    })),
    ...(lookedFromNs === undefined ? {} : { lookedFromNs }),
  });
  const write = () => {
    writes++;
  };
  return { ingester: { changes } as Partial<HeldRows> as HeldRows, write };
}

const segment: SegmentRef = {
  ...{ kind: "segment", id: "s", tenant: "t", ...{ minNs: 0n, maxNs: 1n }, sizeBytes: 1 },
  location: { kind: "file", path: "s" },
};
const filter: RowFilter = {
  ...{ id: "d", ...span, nowNs: 0n },
  log: { kind: "log", matchers: [], stages: [] },
};

describe("findChanges", () => {
  /** What is told of changed rows after `event`. */
  async function after(event: (world: World) => unknown, lookedFromNs?: bigint) {
    const { ingester, write } = makeIngester(lookedFromNs);
    const world: World = { write, segments: [], filters: [], requests: [] };
    const deps = {
      ingester,
      catalog: { list: async () => world.segments },
      deletes: { active: async () => world.filters },
      deletesOf: () => world.requests.join(),
    };
    const tenants = ["t", "u"];
    const [first] = await findChanges({ tenants, spans: [span] }, deps, signal);
    expect(first!.changed).toEqual([span]);
    event(world);
    const since = first!.token;
    const [second] = await findChanges({ tenants, spans: [{ ...span, since }] }, deps, signal);
    return second!.changed;
  }

  it.each<[string, (world: World) => unknown, bigint | undefined, unknown]>([
    ["nothing", () => {}, undefined, []],
    ["a push", ({ write }) => write(), undefined, [row]],
    ["a delete request", (world) => world.filters.push(filter), undefined, [span]],
    [
      "a delete request that was carried out",
      (world) => world.requests.push("d"),
      undefined,
      [span],
    ],
    ["a segment of rows that were known", (world) => world.segments.push(segment), 0n, []],
    [
      "a segment of rows that were not",
      (world) => world.segments.push(segment),
      11n * hour,
      [span],
    ],
    ["nothing there", () => {}, 11n * hour, []],
  ])("after %s", async (_, event, lookedFromNs, want) => {
    expect(await after(event, lookedFromNs)).toEqual(want);
  });

  it.each(["", "{}", "[]", "null", '{"t":{}}'])(
    "takes any token for nothing: %s",
    async (since) => {
      const { ingester } = makeIngester();
      const deps = { ingester, catalog: { list: async () => [] } };
      const request = { tenants: ["t"], spans: [{ ...span, since }] };
      expect((await findChanges(request, deps, signal))[0]!.changed).toEqual([span]);
    },
  );
});

interface World {
  readonly write: () => void;
  readonly segments: SegmentRef[];
  readonly filters: RowFilter[];
  readonly requests: string[];
}

it("a ring tells the changes of all, and knows nothing when others answer", async () => {
  const [a, b, c] = [makeIngester(), makeIngester(), makeIngester()];
  let members = { a, b } as Record<string, typeof a>;
  const ring = new ReplicatedIngester({
    replicasOf: () => ({
      instances: Object.keys(members).map((id) => ({ id, zone: "" })),
      ...{ maxMissing: 0, byZone: false },
    }),
    connect: ({ id }) => members[id]!.ingester,
    queryWithinMs: 0,
  });
  const ask = async (since?: string) => {
    const spans = [since === undefined ? span : { ...span, since }];
    return (await ring.changes({ tenant: "t", spans }, { signal })).spans[0]!;
  };
  const { token } = await ask();
  expect(await ask(token)).toEqual({ token, changed: [] });
  b.write();
  expect((await ask(token)).changed).toEqual([row]);
  members = { a, c };
  expect((await ask(token)).changed).toEqual([span]);
  members = { a, b, c };
  expect((await ask(token)).changed).toEqual([span]);
  expect((await ask("?")).changed).toEqual([span]);
});
