import { afterEach, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@skald/testkit";
import type { TlsOptions } from "@skald/transport/tls";
import {
  callTestGrpc,
  connectTestGrpc,
  echo,
  failureOf,
  forkPeer,
  startTestGrpc,
  stopTestGrpc,
  testMethod,
} from "./testing/grpc.js";

const MiB = 1024 * 1024;
const { signal } = new AbortController();

afterEach(stopTestGrpc);

describe("clusters", () => {
  it("a call for another cluster is refused", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { clusters: ["a", "b"] });
    expect(
      String(await callTestGrpc(connectTestGrpc(address, { cluster: "b" }), "Echo", "x")),
    ).toBe("x");
    for (const cluster of ["", "c"]) {
      const error = await failureOf(callTestGrpc(connectTestGrpc(address, { cluster }), "Echo"));
      expect(error.code).toBe("unauthenticated");
    }
  });
});

describe("health", () => {
  it("of the process and of each service", async () => {
    const { server, address } = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(address);
    const health = { ...testMethod("", false), path: "/grpc.health.v1.Health/Check" };
    const ask = async (service: string) => {
      const name = Buffer.from(service);
      const request = Buffer.concat([Buffer.from([0x0a, name.length]), name]);
      return [...(await connection.call(health, request, { signal }))];
    };
    const [serving, notServing] = [
      [0x08, 1],
      [0x08, 2],
    ];
    expect(await ask("")).toEqual(serving);
    expect(await ask("skald.v1.Test")).toEqual(serving);
    expect((await failureOf(ask("skald.v1.Other"))).code).toBe("not_found");
    server.setHealth("NOT_SERVING");
    server.setHealth("NOT_SERVING", "skald.v1.Test");
    expect(await ask("")).toEqual(notServing);
    expect(await ask("skald.v1.Test")).toEqual(notServing);
  });
});

describe("connections", () => {
  const authority = new TestAuthority("authority");
  const own = authority.issue("server");
  const known = authority.issue("client");
  const stranger = new TestAuthority("stranger").issue("client");
  const pem = ({ cert, key }: { cert: string; key: string }) => ({
    cert: { text: cert },
    key: { text: key },
  });
  const tls: TlsOptions = {
    ...pem(own),
    clientCa: { text: authority.cert },
    clientAuth: "RequireAndVerifyClientCert",
    minVersion: "VersionTLS13",
    cipherSuites: [],
  };
  const ca = { text: authority.cert };

  it.each([
    ["a certificate that is known", { ...pem(known), ca }, "x"],
    ["a certificate of a stranger", { ...pem(stranger), ca }, "unavailable"],
    ["no certificate", { ca }, "unavailable"],
    ["no trust in the server", pem(known), "unavailable"],
    ["no questions asked", { ...pem(known), skipVerify: true }, "x"],
    ["the name of the certificate", { ...pem(known), ca, serverName: "localhost" }, "x"],
    ["another name", { ...pem(known), ca, serverName: "other" }, "unavailable"],
    ["no TLS", undefined, "unavailable"],
  ])("with mutual TLS and %s", async (_name, client, want) => {
    const { address } = await startTestGrpc({ Echo: echo }, { tls });
    const connection = connectTestGrpc(address, { tls: client });
    const found = await callTestGrpc(connection, "Echo", "x").then(String, ({ code }) => code);
    expect(found).toBe(want);
  });

  it("over their limit are refused", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxConnections: 1 });
    expect(String(await callTestGrpc(connectTestGrpc(address), "Echo", "x"))).toBe("x");
    const error = await failureOf(callTestGrpc(connectTestGrpc(address), "Echo"));
    expect(error.code).toBe("unavailable");
  });

  it("take more calls than they may run at a time, one after the other", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxConcurrentStreams: 2 });
    const connection = connectTestGrpc(address);
    const asked = Array.from({ length: 20 }, (_, i) => callTestGrpc(connection, "Echo", String(i)));
    expect((await Promise.all(asked)).map(String)).toEqual(
      Array.from({ length: 20 }, (_, i) => `${i}`),
    );
  });
});

it("a caller that does not read its answer holds up only itself", async () => {
  const { address } = await startTestGrpc({
    Give: async () => Buffer.alloc(48 * MiB),
    Echo: echo,
  });
  const child = forkPeer("stall", address);
  await new Promise((resolve) => child.once("message", resolve));
  const connection = connectTestGrpc(address);
  for (let i = 0; i < 20; i++)
    expect(String(await callTestGrpc(connection, "Echo", "x"))).toBe("x");
  const whole = await callTestGrpc(connection, "Give");
  expect(whole.length).toBe(48 * MiB);
  child.kill("SIGKILL");
});
