import { type ChildProcess, fork } from "node:child_process";
import type { SkaldError } from "@skald/model";
import { GrpcConnection, type GrpcConnectionOptions, type OutgoingCall } from "../client.js";
import { encodedWire, type Method } from "../methods.js";
import { GrpcServer, type GrpcServerOptions, type IncomingCall } from "../server.js";

const MiB = 1024 * 1024;
export type GrpcHandler = (request: Uint8Array, call: IncomingCall) => Promise<Uint8Array>;
export type GrpcStreamHandler = (
  request: Uint8Array,
  call: IncomingCall,
) => AsyncIterable<Uint8Array>;

/** A method of the service `skald.v1.Test`, of bytes; what it answers is in parts, as large answers are, or one message. */
export function testMethod(name: string, isStream = true): Method<Uint8Array, Uint8Array> {
  const wire = { request: encodedWire, answer: encodedWire };
  return { path: `/skald.v1.Test/${name}`, isStream, ...wire };
}

const servers: GrpcServer[] = [];
const connections: GrpcConnection[] = [];

/** A server of tests with the service `skald.v1.Test` on a free port of this machine, with limits that no test meets by accident. */
export async function startTestGrpc(
  methods: Readonly<Record<string, GrpcHandler>>,
  options: Partial<GrpcServerOptions> = {},
  streams: Readonly<Record<string, GrpcStreamHandler>> = {},
  unary: readonly string[] = [],
): Promise<{ server: GrpcServer; address: string }> {
  const server = new GrpcServer({
    address: "127.0.0.1",
    port: 0,
    maxConnections: 0,
    maxReceiveBytes: 64 * MiB,
    maxSendBytes: 64 * MiB,
    maxConcurrentStreams: 100,
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
    gracefulShutdownMs: 60_000,
    ...options,
  });
  servers.push(server);
  const handlers = { ...methods, ...streams };
  const names = Object.keys(handlers);
  server.add(
    "Test",
    Object.fromEntries(names.map((name) => [name, testMethod(name, !unary.includes(name))])),
    handlers,
  );
  return { server, address: `127.0.0.1:${await server.start()}` };
}

export function connectTestGrpc(
  address: string,
  options: Partial<GrpcConnectionOptions> = {},
): GrpcConnection {
  const connection = new GrpcConnection({
    address,
    maxReceiveBytes: 64 * MiB,
    maxSendBytes: 64 * MiB,
    connectTimeoutMs: 60_000,
    minReconnectMs: 10,
    maxReconnectMs: 100,
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
    ...options,
  });
  connections.push(connection);
  return connection;
}

/** Ends whatever a test left open. */
export async function stopTestGrpc(): Promise<void> {
  for (const connection of connections.splice(0)) connection.close();
  await Promise.all(servers.splice(0).map((server) => server.kill()));
}

/** A method that answers with what it was asked. */
export const echo: GrpcHandler = async (request) => request;

/** Calls a method of `skald.v1.Test` with a text. */
export async function callTestGrpc(
  connection: GrpcConnection,
  name: string,
  text = "",
  options: Partial<OutgoingCall> = {},
): Promise<Buffer> {
  const { signal } = new AbortController();
  const method = testMethod(name);
  const answer = await connection.call(method, Buffer.from(text), { signal, ...options });
  return Buffer.from(answer);
}

/** What a call failed with. Rejects when it did not. */
export async function failureOf(promise: Promise<unknown>): Promise<SkaldError> {
  return promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error) => error,
  );
}

/** Another process, see `grpc-peer.ts`; a test that starts it kills it. */
export function forkPeer(...args: string[]): ChildProcess {
  return fork(new URL("./grpc-peer.js", import.meta.url), args, { execArgv: [] });
}
