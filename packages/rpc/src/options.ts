import { servesTls, type TlsOptions } from "@skald/transport/tls";
import type { GrpcConnectionOptions } from "./client.js";
import type { GrpcServerOptions } from "./server.js";

/** The keys of a `grpc_client_config` that mean something: sizes in bytes, durations in ms. */
export interface GrpcClientConfig {
  readonly max_recv_msg_size: number;
  readonly max_send_msg_size: number;
  readonly connect_timeout: number;
  readonly connect_backoff_base_delay: number;
  readonly connect_backoff_max_delay: number;
  readonly initial_stream_window_size: number;
  readonly keepalive_time: number;
  readonly keepalive_timeout: number;
  readonly cluster_validation: { readonly label: string };
  readonly tls_enabled: boolean;
  readonly tls_cert_path: string;
  readonly tls_key_path: string;
  readonly tls_ca_path: string;
  readonly tls_server_name: string;
  readonly tls_insecure_skip_verify: boolean;
  readonly tls_cipher_suites: string;
  readonly tls_min_version: string;
}

/** A smaller window would hold up large answers, and the default of the configuration is smaller. */
const minWindowBytes = 8 * 1024 * 1024;

/** How to call the process at an address, as configured. */
export function connectionOptionsOf(
  address: string,
  config: GrpcClientConfig,
): GrpcConnectionOptions {
  return {
    address,
    maxReceiveBytes: config.max_recv_msg_size,
    maxSendBytes: config.max_send_msg_size,
    connectTimeoutMs: config.connect_timeout,
    minReconnectMs: config.connect_backoff_base_delay,
    maxReconnectMs: config.connect_backoff_max_delay,
    windowBytes: Math.max(config.initial_stream_window_size, minWindowBytes),
    keepaliveMs: config.keepalive_time,
    keepaliveTimeoutMs: config.keepalive_timeout,
    cluster: config.cluster_validation.label,
    ...(config.tls_enabled ? { tls: clientTlsOf(config) } : {}),
  };
}

function clientTlsOf(config: GrpcClientConfig) {
  return {
    cert: { file: config.tls_cert_path },
    key: { file: config.tls_key_path },
    ca: { file: config.tls_ca_path },
    serverName: config.tls_server_name,
    skipVerify: config.tls_insecure_skip_verify,
    minVersion: config.tls_min_version,
    cipherSuites: listOf(config.tls_cipher_suites),
  };
}

/** The keys of `server` that are about calls between services. */
export interface GrpcServerConfig {
  readonly grpc_listen_address: string;
  readonly grpc_listen_port: number;
  readonly grpc_listen_conn_limit: number;
  readonly grpc_reflection_enabled: boolean;
  readonly grpc_server_max_recv_msg_size: number;
  readonly grpc_server_max_send_msg_size: number;
  readonly grpc_server_max_concurrent_streams: number;
  readonly grpc_server_max_connection_idle: number;
  readonly grpc_server_max_connection_age: number;
  readonly grpc_server_max_connection_age_grace: number;
  readonly grpc_server_keepalive_time: number;
  readonly grpc_server_keepalive_timeout: number;
  readonly http_server_read_timeout: number;
  readonly graceful_shutdown_timeout: number;
  readonly cluster_validation: {
    readonly label: string;
    readonly additional_labels: readonly string[];
    readonly grpc: { readonly enabled: boolean; readonly soft_validation: boolean };
  };
}

/** How to serve calls, as configured. */
export function serverOptionsOf(config: GrpcServerConfig, tls: TlsOptions): GrpcServerOptions {
  const { label, additional_labels, grpc } = config.cluster_validation;
  return {
    address: config.grpc_listen_address,
    port: config.grpc_listen_port,
    maxConnections: config.grpc_listen_conn_limit,
    hasReflection: config.grpc_reflection_enabled,
    maxReceiveBytes: config.grpc_server_max_recv_msg_size,
    maxSendBytes: config.grpc_server_max_send_msg_size,
    maxConcurrentStreams: config.grpc_server_max_concurrent_streams,
    maxIdleMs: unlessNever(config.grpc_server_max_connection_idle),
    maxAgeMs: unlessNever(config.grpc_server_max_connection_age),
    maxAgeGraceMs: unlessNever(config.grpc_server_max_connection_age_grace),
    keepaliveMs: config.grpc_server_keepalive_time,
    keepaliveTimeoutMs: config.grpc_server_keepalive_timeout,
    gracefulShutdownMs: config.graceful_shutdown_timeout,
    readTimeoutMs: config.http_server_read_timeout,
    clusters: grpc.enabled && !grpc.soft_validation ? [label, ...additional_labels] : [],
    ...(servesTls(tls) ? { tls } : {}),
  };
}

/** No process lives that long. */
const neverMs = 20 * 86_400_000;

function unlessNever(ms: number): number | undefined {
  return ms < neverMs ? ms : undefined;
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
}
