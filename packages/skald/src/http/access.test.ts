import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { otlpExportPath } from "@skald/distributor";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { hashPassword, hashToken } from "@skald/transport/access";
import { WebSocket } from "ws";
import { startProcess, type TestProcess } from "../testing/start-process.js";
import { openAccess } from "./access.js";

const folder = mkdtempSync(join(tmpdir(), "skald-users-"));
const file = join(folder, "users.yaml");
const tokenOf = (right: string) => `Bearer token of ${right}`.replaceAll(" of ", "-of-");
let served: TestProcess;

let writeUsers: (more: readonly object[]) => void;

beforeAll(async () => {
  const each = ["read", "write", "rules", "delete", "operate"].map((right) => ({
    ...{ name: `${right}er`, rights: [right], tenants: ["t1", "t2"] },
    tokens: [hashToken(`token-of-${right}`)],
  }));
  const person = {
    ...{ name: "person", rights: ["read", "write"], tenants: ["t1"] },
    password: await hashPassword("secret"),
  };
  const auditor = { name: "auditor", rights: ["read"], tenants: ["*"], tokens: [hashToken("all")] };
  writeUsers = (more) =>
    writeFileSync(file, JSON.stringify({ users: [...each, person, auditor, ...more] }));
  writeUsers([{ ...auditor, name: "leaver", tokens: [hashToken("leaves")] }]);
  served = await startProcess(["-auth.enabled", `-auth.users-file=${file}`]);
});
afterAll(async () => {
  await served.stop();
  rmSync(folder, { recursive: true });
});

const requests = {
  read: "GET /loki/api/v1/labels",
  write: "POST /loki/api/v1/push",
  rules: "GET /loki/api/v1/rules",
  delete: "GET /loki/api/v1/delete",
  operate: "GET /config",
} as const;

async function ask(request: string, authorization = "", tenant = "t1"): Promise<Response> {
  const [method = "", path = ""] = request.split(" ");
  const headers = {
    ...(authorization === "" ? {} : { authorization }),
    ...(tenant === "" ? {} : { "x-scope-orgid": tenant }),
    "content-type": "application/json",
  };
  const body = method === "POST" ? { body: pushOf("x") } : {};
  return fetch(`${served.url}${path}`, { method, headers, ...body });
}

function pushOf(line: string): string {
  const values = [[`${Date.now()}000000`, line]];
  return JSON.stringify({ streams: [{ stream: { app: "a" }, values }] });
}

describe("a process with a users file", () => {
  it.each(Object.entries(requests))(
    "lets users %s, by their right and no other",
    async (right, request) => {
      for (const other of Object.keys(requests)) {
        const { status } = await ask(request, tokenOf(other));
        expect([other, status === 403]).toEqual([other, other !== right]);
        expect(status).not.toBe(401);
      }
    },
  );

  it.each(Object.values(requests))("asks who sends %s", async (request) => {
    for (const authorization of ["", "Bearer nothing", "Basic eDp5"]) {
      const answer = await ask(request, authorization);
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
        ...[401, 'Basic realm="skald", charset="UTF-8", Bearer realm="skald"'],
      ]);
      expect(await answer.text()).toMatch(/^(this needs a user|unknown user, password or token)/);
    }
  });

  it("keeps users to their tenants", async () => {
    const answer = await ask(requests.read, tokenOf("read"), "t3");
    expect([answer.status, await answer.text()]).toEqual([
      ...[403, "user reader may not name tenant t3\n"],
    ]);
    expect((await ask(requests.read, tokenOf("read"), "")).status).toBe(401);
  });

  it("takes basic authentication, and the only tenant of a user", async () => {
    const person = `Basic ${Buffer.from("person:secret").toString("base64")}`;
    expect((await ask(requests.write, person, "")).status).toBe(204);
    const found = await ask(
      'GET /loki/api/v1/query?query=sum(count_over_time({app="a"}[1h]))',
      person,
      "",
    );
    expect(found.status).toBe(200);
    expect((await ask('GET /loki/api/v1/series?match[]={app="a"}', tokenOf("read"))).status).toBe(
      200,
    );
  });

  it("answers probes, and gives metrics to those who may read every tenant", async () => {
    expect((await ask("GET /ready", "", "")).status).toBe(200);
    expect((await ask("GET /metrics", tokenOf("read"), "")).status).toBe(403);
    const metrics = await ask("GET /metrics", "Bearer all", "");
    expect(metrics.status).toBe(200);
    const text = await metrics.text();
    for (const reason of ["no_credentials", "bad_credentials", "right", "tenant"])
      expect(text).toMatch(new RegExp(`loki_auth_refused_total\\{reason="${reason}"\\} [1-9]`));
    expect(text).toContain('loki_auth_refused_total{reason="busy"} 0');
  });

  it.each([
    ["", 401],
    [tokenOf("write"), 403],
    [tokenOf("read"), 101],
  ])("opens a tail for %s with %d", async (authorization, status) => {
    const url = `${served.url.replace("http", "ws")}/loki/api/v1/tail?query={app="a"}`;
    const socket = new WebSocket(url, {
      headers: { ...(authorization === "" ? {} : { authorization }), "x-scope-orgid": "t1" },
    });
    const found = await new Promise((resolve, reject) => {
      socket.once("open", () => resolve(101));
      socket.once("unexpected-response", (_, { statusCode }) => resolve(statusCode));
      socket.once("error", reject);
    });
    socket.on("error", () => undefined);
    socket.terminate();
    expect(found).toBe(status);
  });

  it("ends a tail when its user is gone from the file", async () => {
    const url = `${served.url.replace("http", "ws")}/loki/api/v1/tail?query={app="a"}`;
    const socket = new WebSocket(url, {
      headers: { authorization: "Bearer leaves", "x-scope-orgid": "t1" },
    });
    await new Promise((resolve) => socket.once("open", resolve));
    const code = new Promise((resolve) => socket.once("close", resolve));
    writeUsers([]);
    expect(await code).toBe(1008);
    // The file is looked at every ten seconds.
  }, 60_000);

  it.each([
    ["t2", 101],
    ["t3", 403],
  ])("checks tenant %s that a page offers by subprotocol: %d", async (tenant, status) => {
    const url = `${served.url.replace("http", "ws")}/loki/api/v1/tail?query={app="a"}`;
    const protocol = `skald.tenant.${Buffer.from(tenant).toString("base64url")}`;
    const headers = { authorization: tokenOf("read") };
    const socket = new WebSocket(url, [protocol], { headers });
    const got = await new Promise((resolve, reject) => {
      socket.once("open", () => resolve(101));
      socket.once("unexpected-response", (_, response) => resolve(response.statusCode));
      socket.once("error", reject);
    });
    expect(got).toBe(status);
    socket.terminate();
  });

  it.each([
    ["", 16],
    ["Bearer nothing", 16],
    [tokenOf("read"), 7],
    [tokenOf("write"), 0],
  ])("takes OTLP over gRPC from %s with %d", async (authorization, code) => {
    const client = new Client(`127.0.0.1:${served.grpcPort}`, credentials.createInsecure());
    const metadata = new Metadata();
    if (authorization !== "") metadata.set("authorization", authorization);
    metadata.set("x-scope-orgid", "t1");
    const same = (bytes: Buffer) => bytes;
    const found = await new Promise((resolve) =>
      client.makeUnaryRequest(otlpExportPath, same, same, Buffer.alloc(0), metadata, (error) =>
        resolve(error?.code ?? 0),
      ),
    );
    client.close();
    expect(found).toBe(code);
  });

  it("shows no secret of the file in /config", async () => {
    const text = await (await ask(requests.operate, tokenOf("operate"))).text();
    expect(text).toContain("users_file: ");
    expect(text).not.toMatch(/sha256:|\$scrypt/);
  });
});

describe("a users file that cannot be used", () => {
  it("keeps the process from starting", async () => {
    await expect(startProcess([`-auth.users-file=${folder}/none`])).rejects.toThrow(/ENOENT/);
    const wrong = join(folder, "wrong.yaml");
    writeFileSync(wrong, "users: [{name: a}]");
    await expect(startProcess([`-auth.users-file=${wrong}`])).rejects.toThrow(
      /wrong\.yaml: user a: needs a password or tokens; user a: needs rights/,
    );
  });

  it("does not change the users of a process that runs", async () => {
    const path = join(folder, "changed.yaml");
    const user = { name: "a", rights: ["read"], tenants: ["*"], tokens: [hashToken("a")] };
    writeFileSync(path, JSON.stringify({ users: [user] }));
    const metrics = new Metrics();
    const lines: string[] = [];
    const log = createLogger({ target: { write: (line) => void lines.push(line) } });
    const config = { auth: { users_file: path, type: "" }, auth_enabled: true, no_auth_tenant: "" };
    const access = openAccess({ config, log, metrics });
    const failures = async () => {
      await access?.reload();
      return /auth_users_file_failures_total (\d)/.exec((await metrics.read()).text)?.[1];
    };
    expect(await failures()).toBe("0");
    writeFileSync(path, "users: {}");
    expect(await failures()).toBe("1");
    expect(await failures()).toBe("1");
    await access?.authorize({ authorization: "Bearer a" }, "read");
    writeFileSync(path, JSON.stringify({ users: [{ ...user, rights: ["write"] }] }));
    expect(await failures()).toBe("1");
    await expect(access?.authorize({ authorization: "Bearer a" }, "read")).rejects.toThrow(/right/);
    expect(lines.map((line) => JSON.parse(line)).map(({ level, msg }) => [level, msg])).toEqual([
      ["error", "kept the old users, because the users file cannot be used"],
      ["info", "the users file was read again"],
    ]);
  });
});
