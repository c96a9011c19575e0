import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { RedisStandIn } from "@skald/testkit";
import { load, run, schema } from "../config/testing/load.js";
import {
  buildIngesterRing,
  buildPatternRing,
  buildServiceRing,
  type RingContext,
  type WatchedRing,
  watchIngesterRing,
  watchPatternRing,
  watchServiceRing,
} from "./rings.js";

let folder: string;
let redis: RedisStandIn;
let context: RingContext;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "skald-rings-"));
  redis = new RedisStandIn();
  await redis.open();
  const kvstore = `{store: redis, redis: {endpoint: "127.0.0.1:${redis.port}", timeout: 100ms}}`;
  const { config } = run(
    load(`${schema}\ncommon: {path_prefix: ${folder}, ring: {kvstore: ${kvstore}}}`),
  );
  context = { config, log: silentLogger(), metrics: new Metrics() };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The members as a process sees them that looks at the ring once. */
async function membersOf({ ring }: WatchedRing): Promise<unknown> {
  await ring.refresh().catch(() => undefined);
  return { unready: ring.unready, ids: ring.view.instances.map(({ id }) => id) };
}

describe("a process that starts while Redis is down uses its rings as the one before it did", () => {
  it.each<[string, (context: RingContext) => WatchedRing]>([
    ["ingesters, as one of them", (own) => buildIngesterRing(own, {})],
    ["ingesters", watchIngesterRing],
    ["pattern ingesters", watchPatternRing],
    [
      "a service, as one of it",
      (own) => buildServiceRing("compactor", own.config.compactor.compactor_ring, own),
    ],
    ["a service", (own) => watchServiceRing("compactor", own.config.compactor.compactor_ring, own)],
  ])("of %s", async (_, make) => {
    const { config } = context;
    const others = [
      buildIngesterRing(context, {}),
      buildPatternRing(context),
      buildServiceRing("compactor", config.compactor.compactor_ring, context),
    ];
    for (const other of others) await other.start();
    const before = make(context);
    await before.start();
    const members = await membersOf(before);
    expect(members).toEqual({ ids: [expect.any(String)] });
    await Promise.all([before, ...others].map((one) => one.stop()));
    await redis.close();
    const after = make(context);
    await after.start();
    expect(await membersOf(after)).toEqual(members);
    await after.stop();
  });
});
