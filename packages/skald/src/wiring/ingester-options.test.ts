import { describe, expect, it } from "@jest/globals";
import { defaultIngesterOptions } from "@skald/ingester";
import { loadConfig } from "../config/load-config.js";
import { ingesterLimitsOf, ingesterOptionsOf } from "./ingester-options.js";
import { pushLimitsOf, queryLimitsOf } from "./limits.js";

function configOf(...flags: string[]) {
  const loaded = loadConfig(flags, {});
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return loaded.config;
}

describe("ingesterOptionsOf", () => {
  it("puts everything below the path prefix", () => {
    const options = ingesterOptionsOf(configOf("-common.path-prefix=/d"), "me");
    expect(options).toMatchObject({
      instanceId: "me",
      dataDir: "/d/ingester",
      wal: { dir: "/d/wal", enabled: true },
      flushOnShutdown: true,
    });
  });

  it("takes what is set, and the ingester's own defaults for the rest", () => {
    const options = ingesterOptionsOf(
      configOf(
        "-ingester.max-chunk-age=4h",
        "-ingester.chunks-idle-period=10m",
        "-ingester.wal-enabled=false",
        "-ingester.flush-on-shutdown=false",
        "-ingester.concurrent-flushes=7",
        "-ingester.head-target-size=1MB",
      ),
      "me",
    );
    const minuteMs = 60_000;
    expect(options).toMatchObject({
      maxChunkAgeMs: 240 * minuteMs,
      outOfOrderWindowMs: 120 * minuteMs,
      chunkIdlePeriodMs: 10 * minuteMs,
      flushOnShutdown: false,
      headTargetBytes: 1024 * 1024,
      wal: { enabled: false },
      upload: { afterMs: 10 * minuteMs, concurrency: 7 },
      maxHeadBytes: defaultIngesterOptions.maxHeadBytes,
    });
  });

  it("never replays with more memory than the ingester is made for", () => {
    const options = ingesterOptionsOf(configOf("-ingester.wal-replay-memory-ceiling=64GB"), "me");
    expect(options.wal.replayMemoryCeilingBytes).toBe(
      defaultIngesterOptions.wal.replayMemoryCeilingBytes,
    );
    const small = ingesterOptionsOf(configOf("-ingester.wal-replay-memory-ceiling=1MB"), "me");
    expect(small.wal.replayMemoryCeilingBytes).toBe(1024 * 1024);
  });
});

describe("ingesterLimitsOf", () => {
  it.each([
    ["0", "0", 0],
    ["10", "0", 10],
    ["0", "20", 20],
    ["10", "20", 10],
    ["30", "20", 20],
  ])("takes the smaller limit of streams that is set: %s and %s", (local, global, want) => {
    const { limits_config } = configOf(
      `-ingester.max-streams-per-user=${local}`,
      `-ingester.max-global-streams-per-user=${global}`,
    );
    expect(ingesterLimitsOf(limits_config).maxStreams).toBe(want);
  });
});

describe("limits of a tenant", () => {
  it("are the same object for the same limits", () => {
    const { limits_config } = configOf();
    expect(pushLimitsOf(limits_config)).toBe(pushLimitsOf(limits_config));
    expect(queryLimitsOf(limits_config)).toBe(queryLimitsOf(limits_config));
    expect(pushLimitsOf({ ...limits_config })).not.toBe(pushLimitsOf(limits_config));
  });

  it("are in the units of who reads them", () => {
    const { limits_config } = configOf(
      "-store.max-query-length=1h",
      "-validation.max-length-label-value=7",
      "-querier.query-timeout=5s",
    );
    expect(queryLimitsOf(limits_config)).toMatchObject({
      maxLengthNs: 3_600_000_000_000n,
      timeoutMs: 5000,
    });
    expect(pushLimitsOf(limits_config).maxLabelValueLength).toBe(7);
  });
});
