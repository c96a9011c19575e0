import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
} from "../testing/server.js";

interface Recorded {
  readonly streams: readonly object[];
  readonly calls: readonly {
    readonly argv: readonly string[];
    readonly input?: string;
    readonly stdout: string;
  }[];
}

const file = new URL("../../testdata/logcli.json", import.meta.url);
const { streams, calls } = JSON.parse(readFileSync(file, "utf8")) as Recorded;
let server: TestServer;

beforeAll(async () => {
  server = await startServer(makeFolder(), ["-validation.reject-old-samples=false"]);
  const pushed = await fetch(`${server.url}/loki/api/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-scope-orgid": "shop" },
    body: JSON.stringify({ streams }),
  });
  expect(pushed.status).toBe(204);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

it.each(calls.map(({ argv, ...rest }) => ({ line: argv.join(" "), argv, ...rest })))(
  "writes the bytes of logcli: $line",
  async ({ argv, input = "", stdout }) => {
    const env = {
      ...{ TZ: "Europe/Berlin", SKALD_CONFIG: "/nonexistent" },
      ...{ LOKI_ADDR: server.url, LOKI_ORG_ID: "shop" },
    };
    const { stderr, ...found } = await runProgram(binSkald, argv, { input, env });
    expect(found).toEqual({ code: 0, stdout });
  },
);
