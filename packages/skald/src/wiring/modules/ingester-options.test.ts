import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "../../config/load-config.js";
import { ingesterOptionsOf } from "./ingester.js";

const GiB = 2 ** 30;

function optionsOf(memory: number, ...flags: string[]) {
  const loaded = loadConfig(flags, {});
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return ingesterOptionsOf(loaded.config, "me", memory);
}

describe("ingesterOptionsOf", () => {
  it("puts everything below the path prefix", () => {
    const { options } = optionsOf(GiB, "-common.path-prefix=/d");
    expect(options).toMatchObject({ instanceId: "me", dataDir: "/d/ingester" });
    expect(options.config.wal.dir).toBe("/d/wal");
  });

  it.each([
    ["1MB", []],
    ["512MB", []],
    [
      "64GB",
      ["ingester.wal.replay_memory_ceiling: 64GB is more than half the memory; 512MB holds"],
    ],
    ["4GB", []],
  ])("warns of a replay that asks for more than half the memory: %s", (ceiling, warnings) => {
    const found = optionsOf(GiB, `-ingester.wal-replay-memory-ceiling=${ceiling}`);
    expect(found.options.bounds.maxReplayBytes).toBe(GiB / 2);
    expect(found.warnings).toEqual(warnings);
  });
});
