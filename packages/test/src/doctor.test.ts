import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@skald/testkit";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
} from "./testing/server.js";

let server: TestServer;
let proxy: Server;
/** Changes an answer of the process. */
let change: (path: string, body: string) => string = (_path, body) => body;

beforeAll(async () => {
  server = await startServer(makeFolder(), ["-server.worker-threads=1"]);
  proxy = createServer(async ({ url = "", headers }, answer) => {
    const found = await fetch(`${server.url}${url}`, { headers: { accept: headers.accept ?? "" } });
    answer.writeHead(found.status).end(change(url, await found.text()));
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await server.kill("SIGTERM");
  await removeFolders();
});

interface Found {
  readonly kind: string;
  readonly service: string;
  readonly says: string;
}

async function doctor(...argv: string[]) {
  const { code, stdout, stderr } = await runProgram(binSkald, ["doctor", ...argv, "-json"]);
  const { services = [], findings = [] } = JSON.parse(stdout || "{}");
  return { code, stderr, services, findings: findings as Found[] };
}

const proxied = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

/** Puts members of these states in place of the ones of a ring. */
function members(ring: string, states: readonly string[]) {
  return (path: string, body: string) => {
    if (path !== ring) return body;
    const shards = states.map((state, i) => ({
      ...{ id: `${ring}-${i}`, state, address: `192.0.2.${i + 1}:9095` },
      timestamp: "2026-01-02T03:04:05Z",
    }));
    return JSON.stringify({ ...JSON.parse(body), shards });
  };
}

const threeCopies = (path: string, body: string) =>
  path === "/config"
    ? body.replace(
        /^( {2}lifecycler:\n(?: {4}.*\n)*? {4}ring:\n(?: {6}.*\n)*? {6}replication_factor: )1$/m,
        "$13",
      )
    : body;

const metric = (name: string, value: number) => (path: string, body: string) =>
  path === "/metrics"
    ? body
        .replace(new RegExp(`^.*${name}(\\{.*\\})? .*$`, "gm"), "")
        .concat(`\nloki_${name}{bucket="b"} ${value}\n`)
    : body;

describe("skald doctor", () => {
  it("finds nothing wrong with a process that is well, and names its next fault", async () => {
    const { code, services, findings } = await doctor(server.url);
    expect({ code, services }).toEqual({ code: 0, services: [server.url] });
    expect(findings).toMatchObject([
      { kind: "next", says: "one process does everything: without it, pushes and queries stop" },
    ]);
  });

  it.each<[string, typeof change, number, Partial<Found>]>([
    [
      "a member that is lost",
      members("/ring", ["ACTIVE", "UNHEALTHY", "ACTIVE"]),
      1,
      {
        kind: "wrong",
        says: "/ring-1 (192.0.2.2:9095) is UNHEALTHY, its last heartbeat was at 2026-01-02T03:04:05Z",
      },
    ],
    [
      "the loss that would stop pushes",
      (path, body) =>
        members("/ring", ["ACTIVE", "UNHEALTHY", "ACTIVE"])(path, threeCopies(path, body)),
      1,
      {
        kind: "next",
        says: "the next ingester that is lost stops pushes: streams have 3 copies, 1 may be away already",
      },
    ],
    [
      "a lost quorum",
      (path, body) =>
        members("/ring", ["ACTIVE", "UNHEALTHY", "UNHEALTHY"])(path, threeCopies(path, body)),
      1,
      { kind: "wrong", says: "some streams have no quorum: pushes get 503" },
    ],
    [
      "how many may be lost",
      (path, body) =>
        members("/ring", ["ACTIVE", "ACTIVE", "ACTIVE"])(path, threeCopies(path, body)),
      0,
      { kind: "next", says: "pushes and queries survive the loss of 1 of the ingesters, not of 2" },
    ],
    [
      "a member without a second one",
      members("/scheduler/ring", ["ACTIVE"]),
      0,
      {
        kind: "next",
        service: "ring scheduler",
        says: "/scheduler/ring-0 is alone: queries stop while it is away",
      },
    ],
    [
      "a disk that is full",
      metric("ingester_disk_spare_bytes", -1),
      1,
      { kind: "wrong", says: "the disk is full: pushes are refused" },
    ],
    [
      "a disk with little room",
      metric("ingester_disk_spare_bytes", 5 * 1024 * 1024),
      0,
      { kind: "soon", says: "5 MiB of disk are left before pushes are refused" },
    ],
    [
      "a bucket without conditional writes",
      metric("objstore_bucket_unconditional_puts", 1),
      0,
      {
        kind: "soon",
        says: "the bucket has no conditional writes: of two writers of one key the last one wins",
      },
    ],
  ])("names %s", async (_case, spoil, code, wanted) => {
    change = spoil;
    const found = await doctor(proxied(), "-http-port=0");
    change = (_path, body) => body;
    expect(found.findings).toContainEqual(expect.objectContaining(wanted));
    expect(found.code).toBe(code);
  });

  it("compares the rings and the clocks of services", async () => {
    change = (path, body) => {
      if (path === "/ring") return members("/ring", ["ACTIVE", "ACTIVE"])(path, body);
      return path.endsWith("/ring") ? "none" : body;
    };
    const clocks = (path: string, body: string) =>
      path === "/ring"
        ? body.replace(/"now":"[^"]*"/, `"now":"${new Date(Date.now() - 90_000).toISOString()}"`)
        : body;
    const rings = change;
    change = (path, body) => clocks(path, rings(path, body));
    const { code, findings } = await doctor(server.url, proxied(), server.url, "-http-port=0");
    change = (_path, body) => body;
    expect(code).toBe(1);
    const says = findings.map((one) => `${one.service}: ${one.says}`).join("\n");
    expect(says).toMatch(new RegExp(`ring ingester: ${server.url} does not see /ring-0, /ring-1`));
    expect(says).toMatch(
      new RegExp(`${proxied()}: the clock is (89|90)\\.\\d s behind the others`),
    );
  });

  it("tells who does not answer, and what is not ready", async () => {
    const { code, services, findings } = await doctor(server.url, "http://127.0.0.1:9");
    expect({ code, services }).toEqual({ code: 2, services: [server.url] });
    expect(findings[0]).toMatchObject({ kind: "unreachable", service: "http://127.0.0.1:9" });
    for (const argv of [[], ["nonsense"], [server.url, "-http-port=x"]])
      expect(await doctor(...argv)).toMatchObject({ code: 2, services: [] });
  });

  it.each([
    [10.5, "soon", "the certificate expires in 10 days"],
    [-1, "unreachable", "certificate has expired"],
  ])("looks at a certificate that ends in %d days", async (days, kind, says) => {
    const folder = makeFolder();
    const authority = new TestAuthority("authority");
    const own = authority.issue("server", new Date(Date.now() + days * 86_400_000));
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, authority.cert);
    const secure = createSecureServer(own, (request, answer) => {
      proxy.emit("request", request, answer);
    });
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
    const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
    const argv = ["doctor", url, "-http-port=0", "-json"];
    const { stdout } = await runProgram(binSkald, argv, { env: { NODE_EXTRA_CA_CERTS: ca } });
    secure.close();
    secure.closeAllConnections();
    const { findings } = JSON.parse(stdout);
    expect(findings).toContainEqual(expect.objectContaining({ kind, service: url, says }));
  });

  it("prints what it finds with what to do", async () => {
    const { code, stdout } = await runProgram(binSkald, ["doctor", server.url]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^asked http.*\nnext {9}.*: one process does everything.*\n {13}agents must retry.*\n$/,
    );
  });
});
