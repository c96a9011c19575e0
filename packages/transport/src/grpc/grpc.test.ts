import { fork } from "node:child_process";
import { afterEach, describe, expect, it } from "@jest/globals";
import { type ErrorCode, type ErrorOptions, errorStatus, SkaldError } from "@skald/model";
import { TestAuthority } from "@skald/testkit";
import type { TlsOptions } from "../http/tls.js";
import type { GrpcConnection } from "./client.js";
import type { GrpcHandler, IncomingCall } from "./server.js";
import { connectTestGrpc, startTestGrpc, stopTestGrpc } from "./testing/grpc.js";

const MiB = 1024 * 1024;
const { signal } = new AbortController();
const echo: GrpcHandler = async (request) => [request];

afterEach(stopTestGrpc);

async function call(connection: GrpcConnection, name: string, text = "", options = {}) {
  const parts = [Buffer.from(text)];
  const answer = await connection.call(`/test.Test/${name}`, parts, { signal, ...options });
  return Buffer.from(answer);
}

async function failureOf(promise: Promise<unknown>): Promise<SkaldError> {
  return promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error) => error,
  );
}

/** A handler that waits until its call ends, and what it saw. */
function waiting() {
  let enter = (_call: IncomingCall): void => undefined;
  const entered = new Promise<IncomingCall>((resolve) => {
    enter = resolve;
  });
  const handler: GrpcHandler = (_, incoming) => {
    enter(incoming);
    return new Promise((_, reject) =>
      incoming.signal.addEventListener("abort", () => reject(incoming.signal.reason)),
    );
  };
  return { handler, entered };
}

function aborted({ signal: given }: IncomingCall): Promise<void> {
  return new Promise((resolve) => {
    if (given.aborted) resolve();
    else given.addEventListener("abort", () => resolve());
  });
}

describe("a call", () => {
  it.each([0, 1, 127, 128, 256 * 1024, 256 * 1024 + 1, 5 * MiB + 17])(
    "carries %i bytes there and back",
    async (size) => {
      const { address } = await startTestGrpc({ Echo: echo });
      const bytes = Buffer.alloc(size, "abcdefg");
      const connection = connectTestGrpc(address);
      const half = Math.floor(size / 3);
      const parts = [bytes.subarray(0, half), new Uint8Array(0), bytes.subarray(half)];
      const answer = await connection.call("/test.Test/Echo", parts, { signal });
      expect(bytes.equals(answer)).toBe(true);
    },
  );

  it("shares its connection with others", async () => {
    const { address } = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(address);
    const texts = Array.from({ length: 300 }, (_, i) => String(i));
    const answers = await Promise.all(texts.map((text) => call(connection, "Echo", text)));
    expect(answers.map(String)).toEqual(texts);
  });

  it("of a method that an older version lacks says so", async () => {
    const { address } = await startTestGrpc({ Echo: echo });
    const error = await failureOf(call(connectTestGrpc(address), "New"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(address);
  });

  it("without anybody at the other end is unavailable", async () => {
    const { server, address } = await startTestGrpc({ Echo: echo });
    await server.stop();
    const error = await failureOf(call(connectTestGrpc(address), "Echo"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(address);
  });

  it("works again when the other end comes back", async () => {
    const first = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(first.address);
    await call(connection, "Echo");
    await first.server.kill();
    const port = Number(first.address.split(":")[1]);
    await startTestGrpc({ Echo: echo }, { port });
    for (;;) {
      const answer = await call(connection, "Echo", "x").catch((error: SkaldError) => error.code);
      if (answer !== "unavailable") {
        expect(String(answer)).toBe("x");
        break;
      }
    }
  });
});

describe("errors", () => {
  const all: [ErrorCode, ErrorOptions?][] = [
    ...(Object.keys(errorStatus) as ErrorCode[]).map((code): [ErrorCode] => [code]),
    ["rate_limited", { retryAfterSeconds: 1.5 }],
    ["invalid_argument", { status: 422, detail: { line: 1, text: "ü", list: [1, null] } }],
  ];
  it.each(all)("come back as they were thrown: %s %j", async (code, options = {}) => {
    const thrown = new SkaldError(code, `no, "thing" ⚠ ${code}`, options);
    const { address } = await startTestGrpc({ Fail: () => Promise.reject(thrown) });
    const { message, status, detail, retryAfterSeconds, ...rest } = await failureOf(
      call(connectTestGrpc(address), "Fail"),
    );
    expect({ message, status, detail, retryAfterSeconds, code: rest.code }).toEqual({
      message: thrown.message,
      status: thrown.status,
      detail: thrown.detail,
      retryAfterSeconds: thrown.retryAfterSeconds,
      code,
    });
  });

  it("that are very long are cut", async () => {
    const thrown = new SkaldError("unprocessable", "é".repeat(100_000), {
      detail: "x".repeat(100_000),
    });
    const { address } = await startTestGrpc({ Fail: () => Promise.reject(thrown) });
    const error = await failureOf(call(connectTestGrpc(address), "Fail"));
    expect(error.code).toBe("unprocessable");
    expect(error.message).toMatch(/^é{1000,}…$/);
  });

  it("of ours are told to whoever runs the server, not to the caller", async () => {
    const told: unknown[] = [];
    const fault = new TypeError("/secret/path");
    const { address } = await startTestGrpc(
      { Fail: () => Promise.reject(fault) },
      { onError: (error, path) => told.push([error, path]) },
    );
    const error = await failureOf(call(connectTestGrpc(address), "Fail"));
    expect([error.code, error.message]).toEqual(["internal", "internal server error"]);
    expect(told).toEqual([[fault, "/test.Test/Fail"]]);
  });

  it("and all else that ends is told to whoever counts, by methods that there are", async () => {
    const told: unknown[] = [];
    const thrown = new SkaldError("rate_limited", "slower");
    const { address } = await startTestGrpc(
      { Fail: () => Promise.reject(thrown), Echo: async (request) => [request] },
      { onEnd: ({ path, error }) => told.push([path, error]) },
    );
    const connection = connectTestGrpc(address);
    await call(connection, "Echo");
    await failureOf(call(connection, "Fail"));
    await failureOf(call(connection, "Other"));
    await call(connection, "Echo");
    expect(told).toEqual([
      ["/test.Test/Echo", undefined],
      ["/test.Test/Fail", thrown],
      ["/test.Test/Echo", undefined],
    ]);
  });
});

describe("a call ends", () => {
  it("on both sides when it is cancelled", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler });
    const abort = new AbortController();
    const asked = failureOf(call(connectTestGrpc(address), "Wait", "", { signal: abort.signal }));
    const incoming = await entered;
    const reason = new SkaldError("cancelled", "enough");
    abort.abort(reason);
    expect(await asked).toBe(reason);
    await aborted(incoming);
  });

  it("on both sides at its deadline", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler, Echo: echo });
    const connection = connectTestGrpc(address);
    await call(connection, "Echo");
    const deadlineMs = Date.now() + 500;
    const error = await failureOf(call(connection, "Wait", "", { deadlineMs }));
    expect(error.code).toBe("deadline_exceeded");
    const incoming = await entered;
    expect(Math.abs(incoming.deadlineMs! - deadlineMs)).toBeLessThan(1000);
    await aborted(incoming);
  });

  it("on the server when the caller's process is gone", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler });
    const child = forkPeer("call", address);
    const incoming = await entered;
    child.kill("SIGKILL");
    await aborted(incoming);
  });

  it("as unavailable when the server's process is killed in the middle", async () => {
    const child = forkPeer("serve");
    const port = await new Promise((resolve) => child.once("message", resolve));
    const connection = connectTestGrpc(`127.0.0.1:${port}`);
    const asked = failureOf(call(connection, "Wait"));
    await new Promise((resolve) => child.once("message", resolve));
    child.kill("SIGKILL");
    const error = await asked;
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(`127.0.0.1:${port}`);
  });

  it("as unavailable when the server's process does not answer pings any more", async () => {
    const child = forkPeer("serve");
    const port = await new Promise((resolve) => child.once("message", resolve));
    const pings = { keepaliveMs: 50, keepaliveTimeoutMs: 500 };
    const connection = connectTestGrpc(`127.0.0.1:${port}`, pings);
    const asked = failureOf(call(connection, "Wait"));
    await new Promise((resolve) => child.once("message", resolve));
    child.kill("SIGSTOP");
    const error = await asked;
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain("pings are not answered");
    // A new connection gets no answer either, and does not wait for ever.
    const late = connectTestGrpc(`127.0.0.1:${port}`, { connectTimeoutMs: 100 });
    const refused = await failureOf(call(late, "Wait"));
    expect([refused.code, refused.message]).toEqual([
      "unavailable",
      `127.0.0.1:${port}: no connection within 100 ms`,
    ]);
    child.kill("SIGKILL");
  });

  it("on the server when the caller's process does not answer pings any more", async () => {
    const { handler, entered } = waiting();
    const pings = { keepaliveMs: 50, keepaliveTimeoutMs: 500 };
    const { address } = await startTestGrpc({ Wait: handler }, pings);
    const child = forkPeer("call", address);
    const incoming = await entered;
    child.kill("SIGSTOP");
    await aborted(incoming);
    child.kill("SIGKILL");
  });

  it("before a stop does, which takes no more", async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let enter = (): void => undefined;
    const entered = new Promise<void>((resolve) => {
      enter = resolve;
    });
    const { server, address } = await startTestGrpc({
      Wait: async () => {
        enter();
        await gate;
        return [Buffer.from("done")];
      },
    });
    const running = call(connectTestGrpc(address), "Wait");
    await entered;
    const stopped = server.stop();
    const late = await failureOf(call(connectTestGrpc(address), "Wait"));
    expect(late.code).toBe("unavailable");
    release();
    expect(String(await running)).toBe("done");
    await stopped;
  });
});

function forkPeer(...args: string[]) {
  return fork(new URL("./testing/peer.js", import.meta.url), args, { execArgv: [] });
}

describe("a message over its limit is refused", () => {
  const large = Buffer.alloc(2000);
  it.each([
    ["by the server", { maxReceiveBytes: 1000 }, {}, "grpc_server_max_recv_msg_size"],
    ["before it is sent", {}, { maxSendBytes: 1000 }, "max_send_msg_size"],
    ["when it is an answer", {}, { maxReceiveBytes: 1000 }, "max_recv_msg_size"],
  ])("%s", async (_name, ofServer, ofClient, key) => {
    const { address } = await startTestGrpc({ Echo: echo }, ofServer);
    const connection = connectTestGrpc(address, ofClient);
    const error = await failureOf(connection.call("/test.Test/Echo", [large], { signal }));
    expect(error.code).toBe("too_large");
    expect(error.message).toContain(`raise ${key}`);
    expect(error.message).toContain("2000 bytes");
    expect(String(await call(connection, "Echo", "x"))).toBe("x");
  });

  it("by the server while much of it is still to come", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxReceiveBytes: MiB });
    const connection = connectTestGrpc(address);
    const huge = Buffer.alloc(32 * MiB);
    const error = await failureOf(connection.call("/test.Test/Echo", [huge], { signal }));
    expect(error.code).toBe("too_large");
    expect(String(await call(connection, "Echo", "x"))).toBe("x");
  });

  it("and an answer in small pieces arrives", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxSendBytes: 1000 });
    const bytes = Buffer.alloc(100_001, "xyz");
    const answer = await connectTestGrpc(address).call("/test.Test/Echo", [bytes], { signal });
    expect(bytes.equals(answer)).toBe(true);
  });
});

describe("versions", () => {
  it.each([
    ["a caller", { protocolVersion: 0 }, {}, /^the caller speaks protocol 0/],
    ["a server", {}, { protocolVersion: 0 }, /^127\.0\.0\.1:\d+ speaks protocol 0/],
  ])("%s that is too old is told so", async (_name, ofClient, ofServer, text) => {
    const { address } = await startTestGrpc({ Echo: echo }, ofServer);
    const error = await failureOf(call(connectTestGrpc(address, ofClient), "Echo"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toMatch(text);
  });

  it.each([
    ["caller", { protocolVersion: 7 }, {}],
    ["server", {}, { protocolVersion: 7 }],
  ])("a newer %s is answered", async (_name, ofClient, ofServer) => {
    const { address } = await startTestGrpc({ Echo: echo }, ofServer);
    expect(String(await call(connectTestGrpc(address, ofClient), "Echo", "x"))).toBe("x");
  });

  it("a call for another cluster is refused", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { clusters: ["a", "b"] });
    expect(String(await call(connectTestGrpc(address, { cluster: "b" }), "Echo", "x"))).toBe("x");
    for (const cluster of ["", "c"]) {
      const error = await failureOf(call(connectTestGrpc(address, { cluster }), "Echo"));
      expect(error.code).toBe("unauthenticated");
    }
  });
});

it("a caller that does not read its answer holds up only itself", async () => {
  const { address } = await startTestGrpc({
    Give: async () => [Buffer.alloc(48 * MiB)],
    Echo: echo,
  });
  const child = forkPeer("stall", address);
  await new Promise((resolve) => child.once("message", resolve));
  const connection = connectTestGrpc(address);
  for (let i = 0; i < 20; i++) expect(String(await call(connection, "Echo", "x"))).toBe("x");
  const whole = await call(connection, "Give");
  expect(whole.length).toBe(48 * MiB);
  child.kill("SIGKILL");
});

describe("health", () => {
  it("of the process and of each service", async () => {
    const { server, address } = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(address);
    const ask = (service: string) => connection.checkHealth(service, { signal });
    expect(await ask("")).toBe("serving");
    expect(await ask("test.Test")).toBe("serving");
    expect((await failureOf(ask("test.Other"))).code).toBe("not_found");
    server.setHealth("not_serving");
    server.setHealth("not_serving", "test.Test");
    expect(await ask("")).toBe("not_serving");
    expect(await ask("test.Test")).toBe("not_serving");
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
    const found = await call(connection, "Echo", "x").then(String, ({ code }) => code);
    expect(found).toBe(want);
  });

  it("over their limit are refused", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxConnections: 1 });
    expect(String(await call(connectTestGrpc(address), "Echo", "x"))).toBe("x");
    const error = await failureOf(call(connectTestGrpc(address), "Echo"));
    expect(error.code).toBe("unavailable");
  });

  it("take more calls than they may run at a time, one after the other", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxConcurrentStreams: 2 });
    const connection = connectTestGrpc(address);
    const asked = Array.from({ length: 20 }, (_, i) => call(connection, "Echo", String(i)));
    expect((await Promise.all(asked)).map(String)).toEqual(
      Array.from({ length: 20 }, (_, i) => `${i}`),
    );
  });
});
