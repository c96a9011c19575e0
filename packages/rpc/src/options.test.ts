import { afterEach, describe, expect, it } from "@jest/globals";
import type { TlsOptions } from "@skald/transport/tls";
import { GrpcConnection } from "./client.js";
import { connectionOptionsOf, type GrpcServerConfig, serverOptionsOf } from "./options.js";
import { GrpcServer } from "./server.js";
import { testMethod } from "./testing/grpc.js";

const never = 2562047 * 3_600_000;
const serverConfig: GrpcServerConfig = {
  grpc_listen_address: "127.0.0.1",
  grpc_listen_port: 0,
  http_server_read_timeout: 30_000,
  grpc_listen_conn_limit: 0,
  grpc_reflection_enabled: false,
  grpc_server_max_recv_msg_size: 4_000_000,
  grpc_server_max_send_msg_size: 4_000_000,
  grpc_server_max_concurrent_streams: 100,
  grpc_server_max_connection_idle: never,
  grpc_server_max_connection_age: never,
  grpc_server_max_connection_age_grace: never,
  grpc_server_keepalive_time: 7_200_000,
  grpc_server_keepalive_timeout: 20_000,
  graceful_shutdown_timeout: 0,
  cluster_validation: {
    label: "",
    additional_labels: [],
    grpc: { enabled: false, soft_validation: false },
  },
};
const clientConfig = {
  max_recv_msg_size: 100_000_000,
  max_send_msg_size: 100_000_000,
  connect_timeout: 5000,
  connect_backoff_base_delay: 1000,
  connect_backoff_max_delay: 5000,
  initial_stream_window_size: 65_535,
  keepalive_time: 20_000,
  keepalive_timeout: 10_000,
  cluster_validation: { label: "" },
  tls_enabled: false,
  tls_cert_path: "",
  tls_key_path: "",
  tls_ca_path: "",
  tls_server_name: "",
  tls_insecure_skip_verify: false,
  tls_cipher_suites: "",
  tls_min_version: "",
};
const noTls: TlsOptions = { cert: {}, key: {}, clientAuth: "", minVersion: "", cipherSuites: [] };
const { signal } = new AbortController();
const [Echo, Wait] = [testMethod("Echo"), testMethod("Wait")];
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function ask(ofServer: Partial<GrpcServerConfig>, ofClient: Partial<typeof clientConfig>) {
  const server = new GrpcServer(serverOptionsOf({ ...serverConfig, ...ofServer }, noTls));
  server.add("Test", { Echo }, { Echo: async (request) => request });
  const address = `127.0.0.1:${await server.start()}`;
  const connection = new GrpcConnection(
    connectionOptionsOf(address, { ...clientConfig, ...ofClient }),
  );
  stops.push(async () => {
    connection.close();
    await server.kill();
  });
  return connection.call(Echo, Buffer.alloc(2000), { signal }).then(
    ({ length }) => length,
    ({ code }) => code,
  );
}

const cluster = (label: string, grpc = { enabled: true, soft_validation: false }) => ({
  cluster_validation: { label, additional_labels: ["other"], grpc },
});
const soft = { enabled: true, soft_validation: true };

describe("calls as configured", () => {
  it.each([
    ["as usual", {}, {}, 2000],
    ["a small limit of the server", { grpc_server_max_recv_msg_size: 1000 }, {}, "too_large"],
    ["small parts", { grpc_server_max_send_msg_size: 100 }, {}, 2000],
    ["a small limit of answers", {}, { max_recv_msg_size: 1000 }, "too_large"],
    ["a small limit of requests", {}, { max_send_msg_size: 1000 }, "too_large"],
    ["another cluster", cluster("a"), { cluster_validation: { label: "b" } }, "unauthenticated"],
    ["the same cluster", cluster("a"), { cluster_validation: { label: "a" } }, 2000],
    ["a further name", cluster("a"), { cluster_validation: { label: "other" } }, 2000],
    ["another cluster that is let in", cluster("a", soft), {}, 2000],
    ["TLS that is not served", {}, { tls_enabled: true }, "unavailable"],
  ])("%s", async (_name, ofServer, ofClient, want) => {
    expect(await ask(ofServer, ofClient)).toBe(want);
  });

  it("connections end when they are old or idle, and are made again", async () => {
    for (const key of ["grpc_server_max_connection_age", "grpc_server_max_connection_idle"]) {
      const config = { ...serverConfig, [key]: 20, grpc_server_max_connection_age_grace: 20 };
      let ended = (): void => undefined;
      const gone = new Promise<void>((resolve) => {
        ended = resolve;
      });
      const server = new GrpcServer(serverOptionsOf(config, noTls));
      server.add(
        "Test",
        { Echo, Wait },
        {
          Echo: async (request) => request,
          Wait: (_, { signal: given }) => {
            given.addEventListener("abort", ended);
            return new Promise(() => undefined);
          },
        },
      );
      const address = `127.0.0.1:${await server.start()}`;
      const connection = new GrpcConnection(connectionOptionsOf(address, clientConfig));
      stops.push(async () => {
        connection.close();
        await server.kill();
      });
      if (key.endsWith("age")) {
        const asked = connection.call(Wait, new Uint8Array(0), { signal });
        await expect(asked).rejects.toMatchObject({ code: "unavailable" });
        await gone;
      }
      const answer = await connection.call(Echo, Buffer.alloc(3), { signal });
      expect(answer.length).toBe(3);
    }
  });
});
