import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runForTest } from "../testing/run-command.js";
import { StubServer } from "../testing/stub.js";

let server: StubServer;
let folder: string;
beforeEach(async () => {
  server = new StubServer();
  await server.open();
  folder = mkdtempSync(join(tmpdir(), "skald-settings-"));
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

/** Runs a command whose connection is all in variables. */
const labels = (env: Readonly<Record<string, string>>) =>
  runForTest(["labels"], {
    env: { SKALD_CONFIG: join(folder, "none"), LOKI_ADDR: server.url, ...env },
  });
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

describe("variables of logcli", () => {
  it.each([
    [{ LOKI_ORG_ID: "t" }, { "x-scope-orgid": "t" }],
    [{ LOKI_USERNAME: "u", LOKI_PASSWORD: "p" }, { authorization: basic("u:p") }],
    [{ LOKI_BEARER_TOKEN: "t" }, { authorization: "Bearer t" }],
    [{ LOKI_BEARER_TOKEN: "t", LOKI_AUTH_HEADER: "X-Auth" }, { "x-auth": "Bearer t" }],
    [{ LOKI_QUERY_TAGS: "a=b" }, { "x-query-tags": "a=b" }],
    [{ LOKI_NO_CACHE: "true" }, { "cache-control": "no-cache" }],
    [{ LOKI_HTTP_COMPRESSION: "true" }, { "accept-encoding": "gzip, deflate" }],
  ])("%j", async (env, wanted) => {
    expect(await labels(env)).toMatchObject({ code: 0, err: "" });
    expect(server.asked[0]?.headers).toMatchObject(wanted);
  });

  it("LOKI_BEARER_TOKEN_FILE", async () => {
    const path = join(folder, "token");
    writeFileSync(path, "t\n");
    expect((await labels({ LOKI_BEARER_TOKEN_FILE: path })).code).toBe(0);
    expect(server.asked[0]?.headers.authorization).toBe("Bearer t");
  });

  it("LOKI_CLIENT_RETRIES, LOKI_CLIENT_MIN_BACKOFF and LOKI_CLIENT_MAX_BACKOFF", async () => {
    let failures = 3;
    server.answer = () => (failures-- > 0 ? 503 : undefined);
    // Without the second one the first pause alone is longer than the test may take.
    const pauses = { LOKI_CLIENT_MIN_BACKOFF: "3600", LOKI_CLIENT_MAX_BACKOFF: "1ms" };
    expect((await labels({ LOKI_CLIENT_RETRIES: "2", ...pauses })).code).toBe(4);
    failures = 2;
    expect((await labels({ LOKI_CLIENT_RETRIES: "2", ...pauses })).code).toBe(0);
    const broken = await labels({ LOKI_CLIENT_MIN_BACKOFF: "x" });
    expect(broken).toMatchObject({ code: 2, err: expect.stringContaining("--min-backoff: x") });
  });

  it("LOKI_HTTP_PROXY_URL, and LOKI_ENV_PROXY", async () => {
    const away = { LOKI_ADDR: "http://logs.invalid" };
    await labels({ ...away, LOKI_HTTP_PROXY_URL: server.url });
    await labels({ ...away, LOKI_ENV_PROXY: "true", HTTP_PROXY: server.url });
    expect(server.asked.map(({ headers }) => headers.host)).toEqual([
      "logs.invalid",
      "logs.invalid",
    ]);
  });
});
