import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import { queryNumber, queryStreams } from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

const lines = Array.from({ length: 1000 }, (_, i) => `level=warn msg=message id=${i}`);

let server: TestServer;

beforeAll(async () => {
  server = await startServer(makeFolder());
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

/** Takes lines from its input and pushes them as JSON, 100 at a time. */
function syslogNgConfig(url: string): string {
  const stream = '{\\"stream\\":{\\"app\\":\\"syslog-ng\\"},\\"values\\":';
  return `@version: 3.38
source lines { stdin(flags(no-parse)); };
destination push {
  http(
    url("${url}/loki/api/v1/push") method("POST") headers("Content-Type: application/json")
    batch-lines(100) batch-timeout(100)
    body-prefix("{\\"streams\\":[") delimiter(",") body-suffix("]}")
    body("${stream}[[\\"\${R_UNIXTIME}000000000\\",\\"$MSG\\",{\\"agent\\":\\"syslog-ng\\"}]]}")
  );
};
log { source(lines); destination(push); flags(flow-control); };
`;
}

needs("syslog-ng")("syslog-ng pushes a thousand lines", async () => {
  const folder = makeFolder();
  const config = join(folder, "syslog-ng.conf");
  writeFileSync(config, syslogNgConfig(server.url));
  const files = ["persist-file", "control", "pidfile"].map(
    (key) => `--${key}=${join(folder, key)}`,
  );
  const agent = spawn("syslog-ng", ["-F", "--no-caps", "-f", config, ...files], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const gone = new Promise((resolve) => agent.once("close", resolve));
  try {
    agent.stdin.write(`${lines.join("\n")}\n`);
    await waitFor(
      async () =>
        (await queryNumber(server.url, 'sum(count_over_time({app="syslog-ng"}[1h]))')) >=
        lines.length,
    );
  } finally {
    agent.kill("SIGTERM");
    await gone;
  }
  const streams = await queryStreams(server.url, '{app="syslog-ng"}');
  expect(streams.map(({ stream }) => stream)).toEqual([
    { app: "syslog-ng", service_name: "syslog-ng", agent: "syslog-ng", detected_level: "warn" },
  ]);
  expect(streams[0]?.values.map(([, line]) => line).sort()).toEqual([...lines].sort());
});
