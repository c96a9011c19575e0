import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildInfo } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { loadConfig } from "../config/load-config.js";
import type { Endpoint } from "../process/process.js";
import { buildProcess } from "../process/process.js";

/** A whole process within this one, with a data folder of its own. */
export interface TestProcess {
  readonly url: string;
  readonly port: number;
  /** Where it takes OTLP over gRPC: the port that also serves a cluster, and the one for nothing else. */
  readonly grpcPort: number;
  readonly otlpPort: number;
  readonly folder: string;
  readonly api: readonly Endpoint[];
  /** What it logged, and that at level error. */
  readonly lines: readonly string[];
  readonly errors: readonly string[];
  /** Why it was asked to end. */
  readonly ends: readonly string[];
  /** Ends it and deletes its folder. */
  stop(): Promise<void>;
}

/** Starts a process on a free port; resolves when it is ready. */
export async function startProcess(flags: readonly string[] = []): Promise<TestProcess> {
  const folder = mkdtempSync(join(tmpdir(), "skald-api-"));
  const given = [
    "-server.http-listen-port=0",
    "-server.http-listen-address=127.0.0.1",
    `-common.path-prefix=${folder}`,
    "-server.worker-threads=1",
    ...flags,
  ];
  const loaded = loadConfig(given, {});
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  let [port, grpcPort, otlpPort] = [0, 0, 0];
  const lines: string[] = [];
  const errors: string[] = [];
  const ends: string[] = [];
  const write = (line: string) => {
    const entry = JSON.parse(line);
    port = entry.port ?? port;
    grpcPort = entry.grpcPort ?? grpcPort;
    otlpPort = entry.otlpPort ?? otlpPort;
    lines.push(line);
    if (entry.level === "error") errors.push(line);
  };
  const process = buildProcess({
    config: loaded.config,
    log: createLogger({ target: { write } }),
    build: buildInfo(),
    endProcess: (reason) => void ends.push(reason),
  });
  await process.start();
  const stop = async () => {
    await process.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const { api } = process;
  const url = `http://127.0.0.1:${port}`;
  return { url, port, grpcPort, otlpPort, folder, api, lines, errors, ends, stop };
}
