import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { noteProgram, versionOf } from "../programs.js";

/** A Redis that can be started as a process of its own. */
export interface RedisProgram {
  /** With its version, as "redis-server 7.0.15". */
  readonly name: string;
  /** The program, and the arguments that come before those of redis-server. */
  readonly command: readonly [program: string, ...args: string[]];
}

const script = new URL("../../../../scripts/cluster/redis.mjs", import.meta.url);

/** The stand-in as a process. It takes the arguments `--port`, `--bind 127.0.0.1`, `--requirepass`, `--save ""` and `--appendonly no`. */
export const redisStandIn: RedisProgram = {
  name: "stand-in of testkit",
  command: [process.execPath, fileURLToPath(script)],
};

/** The program that SKALD_TEST_REDIS names, else redis-server or valkey-server; undefined where none is installed. */
export function findRealRedis(): RedisProgram | undefined {
  const { SKALD_TEST_REDIS: asked = "" } = process.env;
  for (const program of asked === "" ? ["redis-server", "valkey-server"] : [asked]) {
    const version = versionOf(program);
    if (version !== undefined)
      return { name: `${basename(program)} ${version}`, command: [program] };
  }
  if (asked === "") return undefined;
  throw new Error(`SKALD_TEST_REDIS: ${asked} cannot be run; name a redis-server or unset it`);
}

/** The Redis of tests and of `npm run cluster`: a real one where there is one, else the stand-in. */
export function findRedis(): RedisProgram {
  const redis = findRealRedis() ?? redisStandIn;
  noteProgram("redis", redis.name);
  return redis;
}
