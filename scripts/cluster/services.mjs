// The processes of the cluster: what runs, how it starts, and when it is ready.
import { fork, spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Link } from "./links.mjs";

/** The number of services of each target. */
const usualCounts = {
  ingester: 3,
  distributor: 2,
  "index-gateway": 1,
  querier: 2,
  "query-scheduler": 1,
  "query-frontend": 1,
  compactor: 1,
  ruler: 1,
  "pattern-ingester": 1,
};
const bucket = "skald";
const preload = new URL("preload.mjs", import.meta.url).href;
const readyPauseMs = 100;
/** A process that does not end in this time is killed. */
const maxStopMs = 30_000;
/** The number of characters of the log that are shown when a process does not start. */
const maxLogShown = 2000;

/**
 * Plans the services of a cluster in a folder without starting them, and the connections between them that can be cut.
 * `freePort` gives each service its ports. `plan` has the differences from the usual cluster:
 *
 * - `counts` { ingester: 6 }: the number of services of a target
 * - `spares` ["ingester-4"]: services that do not start with the others
 * - `zones` 3: ingesters are spread over this many zones, and copies are placed by zone
 * - `links` ["redis", "querier-1>ingester-1"]: connections that can be cut, of all services or of one
 * - `clocks` { "ingester-3": 60000 }: how many ms a clock is ahead
 * - `flags` ["-distributor.ingestion-rate-limit-mb=1000"]: flags of every service
 * - `syslog` "shop": distributors listen for syslog messages of this tenant
 * - `builds` { "ingester-2": "/other/checkout" }: services that run from another build
 */
export async function planServices({ directory, root, node, freePort, plan = {} }) {
  const { zones = 0, spares = [], clocks = {}, builds = {}, flags = [] } = plan;
  const [redisPort, s3Port] = [await freePort(), await freePort()];
  const links = new Map();
  const link = async (name, port) => {
    const made = new Link(await freePort(), port);
    links.set(name, made);
    await made.open();
    return made.port;
  };
  const wayTo = async (name, port) => (plan.links?.includes(name) ? await link(name, port) : port);
  const services = [
    await redisService(redisPort),
    {
      name: "s3",
      note: "the server of the tests: objects are in memory",
      port: s3Port,
      script: join(root, "scripts/cluster/s3.mjs"),
      args: [s3Port, bucket],
    },
  ];
  const env = {
    REDIS: `127.0.0.1:${await wayTo("redis", redisPort)}`,
    S3: `http://127.0.0.1:${await wayTo("s3", s3Port)}`,
  };
  const targets = [];
  for (const [name, target] of namesOf({ ...usualCounts, ...plan.counts }, spares)) {
    const listens = plan.syslog !== undefined && target === "distributor";
    const syslogPort = listens ? await freePort() : undefined;
    targets.push({ name, target, syslogPort, port: await freePort(), grpcPort: await freePort() });
  }
  const addressesOf = (wanted) =>
    targets
      .filter(({ target }) => target === wanted)
      .map(({ grpcPort }) => `127.0.0.1:${grpcPort}`)
      .join(",");
  env.INDEX_GATEWAY = addressesOf("index-gateway");
  env.SCHEDULER = addressesOf("query-scheduler");
  for (const [i, one] of targets.entries()) {
    const { name, target } = one;
    const via = [];
    for (const way of plan.links ?? []) {
      const [from, to] = way.split(">");
      if (from !== name || to === undefined) continue;
      const { grpcPort } = targets.find((other) => other.name === to);
      via.push(`${grpcPort}=${await link(way, grpcPort)}`);
    }
    const wrong = {
      ...(via.length === 0 ? {} : { SKALD_VIA: via.join(",") }),
      ...(clocks[name] === undefined ? {} : { SKALD_CLOCK_MS: String(clocks[name]) }),
    };
    const { syslogPort } = one;
    const listener = { address: `127.0.0.1:${syslogPort}`, tenant: plan.syslog };
    const listeners = syslogPort === undefined ? {} : { SYSLOG: JSON.stringify([listener]) };
    const zone = zones > 0 && target === "ingester" ? `zone-${(i % zones) + 1}` : "";
    services.push({
      ...one,
      env: { ...env, ...wrong, ...listeners },
      execArgv: Object.keys(wrong).length === 0 ? [] : ["--import", preload],
      isSpare: spares.includes(name),
      script: join(builds[name] ?? root, "packages/skald/bundle/main.js"),
      args: [
        ...flagsOf(one, join(root, "scripts/cluster/skald.yaml"), directory),
        ...flags,
        ...(zones > 0 ? ["-distributor.zone-awareness-enabled=true"] : []),
        ...(zone === "" ? [] : [`-ingester.availability-zone=${zone}`]),
      ],
    });
  }
  const made = services.map(
    (one) => new ClusterService({ ...one, node, directory: join(directory, one.name) }),
  );
  return { services: made, links };
}

/** An installed Redis, or the stand-in of the tests. */
async function redisService(port) {
  // The module that it imports is built by now.
  const program = "../../packages/testkit/dist/redis/redis-program.js";
  const { findRedis, redisStandIn } = await import(program);
  const redis = findRedis();
  const note =
    redis === redisStandIn ? "the stand-in of the tests: none was found installed" : redis.name;
  const [command, ...first] = redis.command;
  const args = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  return { name: "redis", note, port, command, args: [...first, ...args] };
}

/** The names of the services with their targets. */
function namesOf(counts, spares) {
  const names = Object.entries(counts).flatMap(([target, count]) =>
    Array.from({ length: count }, (_, i) => [count === 1 ? target : `${target}-${i + 1}`, target]),
  );
  return [...names, ...spares.map((name) => [name, name.replace(/-\d+$/, "")])];
}

function flagsOf({ name, target, port, grpcPort }, config, directory) {
  return [
    `-config.file=${config}`,
    "-config.expand-env=true",
    `-target=${target}`,
    `-server.http-listen-port=${port}`,
    `-server.grpc-listen-port=${grpcPort}`,
    `-common.path-prefix=${join(directory, name)}`,
    `-common.storage.ring.instance-id=${name}`,
  ];
}

/** A process that can be ended and started again with the same ports and folder. */
class ClusterService {
  #options;
  #child;
  #ended;
  #isReady = false;

  constructor(options) {
    this.#options = options;
  }

  get name() {
    return this.#options.name;
  }

  /** A note on a process that is not a service of Skald. */
  get note() {
    return this.#options.note;
  }

  /** The target; undefined when the process is not a service of Skald. */
  get target() {
    return this.#options.target;
  }

  get port() {
    return this.#options.port;
  }

  /** Undefined when it does not listen for syslog. */
  get syslogPort() {
    return this.#options.syslogPort;
  }

  get pid() {
    return this.#child?.pid;
  }

  /** Whether it starts only by name. */
  get isSpare() {
    return this.#options.isSpare === true;
  }

  get runs() {
    return this.#child !== undefined;
  }

  /** Whether it takes requests since its last start. */
  get isReady() {
    return this.#isReady;
  }

  /** Starts the process; resolves when it takes requests. */
  async start() {
    const { command, script, args, env, node, directory, name, execArgv = [] } = this.#options;
    mkdirSync(directory, { recursive: true });
    const log = createWriteStream(join(directory, "log.txt"), { flags: "a" });
    await new Promise((resolve) => log.once("open", resolve));
    const words = args.map(String);
    const stdio = ["ignore", log, log];
    const child =
      script === undefined
        ? // A signal to all of a terminal must not end it before those that need it.
          spawn(command, words, { stdio, cwd: directory, detached: true })
        : fork(script, words, {
            ...{ execPath: node, execArgv, cwd: directory, env: { ...process.env, ...env } },
            stdio: [...stdio, "ipc"],
            detached: true,
          });
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once("error", (error) => {
        console.error(`${name}: ${error.message}`);
        resolve();
      });
      child.once("exit", resolve);
    }).then(() => {
      log.end();
      if (this.#child !== child) return;
      this.#child = undefined;
      this.#isReady = false;
    });
    await this.#ready(child);
    this.#isReady = true;
  }

  /** Ends the process, by default with SIGTERM; resolves when it is gone. */
  async stop(signal = "SIGTERM") {
    const child = this.#child;
    if (child === undefined) return;
    child.kill(signal);
    if (signal === "SIGSTOP" || signal === "SIGCONT") return;
    const late = setTimeout(() => child.kill("SIGKILL"), maxStopMs);
    await this.#ended;
    clearTimeout(late);
  }

  async #ready(child) {
    const { name, target, port, directory } = this.#options;
    const url = target === undefined ? undefined : `http://127.0.0.1:${port}/ready`;
    for (;;) {
      if (this.#child !== child) {
        const log = readFileSync(join(directory, "log.txt"), "utf8").slice(-maxLogShown);
        throw new Error(`${name} ended at its start: ${log}`);
      }
      if (url === undefined ? await connects(port) : await answers(url)) return;
      await new Promise((resolve) => setTimeout(resolve, readyPauseMs));
    }
  }
}

async function answers(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

function connects(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
