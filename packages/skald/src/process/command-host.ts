import { availableParallelism } from "node:os";
import type { ProgramHost } from "@skald/cli";
import { buildInfo, type Logger, WorkerPool } from "@skald/runtime";
import { silentLogger } from "@skald/runtime/log";
import { loadBucket, loadConfig } from "../config/load-config.js";
import { threadScripts } from "../thread-scripts.js";

/** What the commands ask of the server's configuration and services. */
export const commandHost: ProgramHost = {
  bucketOf: loadBucket,
  checkConfig: async (flags) => {
    const loaded = loadConfig(flags);
    if (!("exit" in loaded)) return { error: undefined, warnings: loaded.warnings };
    return { error: loaded.exit.text, warnings: [] };
  },
  openThreads: async (wanted) => {
    const size = wanted > 0 ? wanted : availableParallelism();
    const pool = new WorkerPool({ url: threadScripts.jobs, size, maxQueued: size });
    return {
      size,
      run: (name, job) => pool.run(name, job, { lane: "background" }),
      close: () => pool.close(),
    };
  },
  startServer: async (flags) => {
    const loaded = loadConfig(flags);
    if ("exit" in loaded) throw new Error(loaded.exit.text);
    const { buildProcess } = await import("./process.js");
    let port: unknown;
    const log: Logger = {
      ...silentLogger(),
      info: (message, fields) => {
        if (message === "listening") port = fields?.port;
      },
    };
    const build = buildInfo();
    const running = buildProcess({ config: loaded.config, log, build, endProcess: () => {} });
    await running.start();
    return { url: `http://127.0.0.1:${port}`, stop: () => running.stop() };
  },
};
