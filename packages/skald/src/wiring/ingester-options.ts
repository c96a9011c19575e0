import { join } from "node:path";
import { defaultBounds, type IngesterOptions } from "@skald/ingester";
import { ingesterConfig } from "@skald/ingester/config";
import { formatSize } from "@skald/model";
import type { Config } from "../config/root.js";
import { memoryBytes } from "../memory.js";

/** A replay may take this part of the memory; the rest is for the seals that make room, and for the program. */
const replayShare = 1 / 2;

const usualCeiling = ingesterConfig.shape.wal.shape.replay_memory_ceiling.parse(undefined);

/** The ingester's settings out of the configuration, and what of it does not hold on this machine. */
export function ingesterOptionsOf(
  config: Config,
  instanceId: string,
  memory = memoryBytes(),
): { options: IngesterOptions; warnings: string[] } {
  const maxReplayBytes = memory * replayShare;
  const options = {
    instanceId,
    dataDir: join(config.common.path_prefix || ".", "ingester"),
    config: config.ingester,
    bounds: { ...defaultBounds, maxReplayBytes },
  };
  const asked = config.ingester.wal.replay_memory_ceiling;
  if (asked <= maxReplayBytes || asked === usualCeiling) return { options, warnings: [] };
  const warning = `ingester.wal.replay_memory_ceiling: ${formatSize(asked)} is more than half the memory; ${formatSize(maxReplayBytes)} holds`;
  return { options, warnings: [warning] };
}
