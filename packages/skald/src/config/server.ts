import type { SyslogSurroundings } from "@skald/distributor/syslog-config";
import { field, tlsServerBlock } from "@skald/runtime/config";
import type { TlsOptions } from "@skald/transport";

/** The longest time that can be written; it means "never". */
const never = "2562047h47m16.854775807s";
const port = { max: 65_535 };

const listeners = field.flagged("server.", {
  http_listen_address: field.text("", "address for HTTP; empty: all"),
  http_listen_port: field.integer(3100, "port for HTTP; 0: any free one", port),
  http_listen_conn_limit: field.integer(
    0,
    "connections at a time; 0: no limit",
    "server.http-conn-limit",
  ),
  grpc_listen_address: field.text("", "address for calls between services; empty: all"),
  grpc_listen_port: field.integer(
    9095,
    "port for calls between services, and for OTLP over gRPC; default 0, any free one, in a process of its own whose http_listen_port is 0",
    port,
  ),
  otlp_grpc_listen_port: field.integer(
    0,
    "port on which only OTLP over gRPC is served, by convention 4317, with the address, the limit of connections and the certificates of HTTP; 0: none",
    port,
  ),
  grpc_listen_conn_limit: field.integer(
    0,
    "connections at a time; 0: no limit",
    "server.grpc-conn-limit",
  ),
  tls_cipher_suites: field.text(
    "",
    "ciphers of TLS by the names of the IANA, with commas; empty: those that Node takes",
  ),
  tls_min_version: field.text(
    "",
    "oldest version of TLS: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13; empty: VersionTLS12",
  ),
});

const certificates = {
  http_tls_config: tlsServerBlock("server.http"),
  grpc_tls_config: tlsServerBlock("server.grpc"),
};

const api = field.flagged("server.", {
  http_path_prefix: field.text(
    "",
    "path before all routes, with or without slashes around it",
    "server.path-prefix",
  ),
  reference_paths_enabled: field.toggle(
    true,
    "serve the API under the names that existing agents and Grafana know, too: /loki, /prometheus, /api/prom",
  ),
  profiles_enabled: field.toggle(false, "serve profiles of the main thread under /debug/pprof"),
});

const times = field.flagged("server.", {
  graceful_shutdown_timeout: field.duration("30s", "time that running requests get at shutdown"),
  http_server_read_timeout: field.duration(
    "30s",
    "time in which a request must have arrived; 0: no limit",
    "server.http-read-timeout",
  ),
  http_server_read_header_timeout: field.duration(
    "0s",
    "the same for its headers; 0: as the request",
    "server.http-read-header-timeout",
  ),
  http_server_write_timeout: field.duration(
    "30s",
    "time in which an answer must be written; must be more than query_timeout",
    "server.http-write-timeout",
  ),
  http_server_idle_timeout: field.duration(
    "2m",
    "time after which idle connections are closed",
    "server.http-idle-timeout",
  ),
});

const grpc = {
  grpc_reflection_enabled: field.toggle(
    false,
    "serve gRPC reflection, by which tools such as grpcurl learn the calls",
    "server.grpc-reflection-enabled",
  ),
  grpc_server_max_recv_msg_size: field.size(
    "4MB",
    "largest call between services",
    "server.grpc-max-recv-msg-size-bytes",
  ),
  grpc_server_max_send_msg_size: field.size(
    "4MB",
    "largest answer between services",
    "server.grpc-max-send-msg-size-bytes",
  ),
  grpc_server_max_concurrent_streams: field.integer(
    100,
    "calls of a connection at a time; 0: no limit",
    "server.grpc-max-concurrent-streams",
  ),
  grpc_server_max_connection_idle: field.duration(
    never,
    "time after which idle connections end",
    "server.grpc.keepalive.max-connection-idle",
  ),
  grpc_server_max_connection_age: field.duration(
    never,
    "age at which connections end",
    "server.grpc.keepalive.max-connection-age",
  ),
  grpc_server_max_connection_age_grace: field.duration(
    never,
    "time that their calls get then",
    "server.grpc.keepalive.max-connection-age-grace",
  ),
  grpc_server_keepalive_time: field.duration(
    "2h",
    "pause between pings",
    "server.grpc.keepalive.time",
  ),
  grpc_server_keepalive_timeout: field.duration(
    "20s",
    "time that an answer to a ping may take",
    "server.grpc.keepalive.timeout",
  ),
};

const logging = {
  log_format: field.choice("logfmt", ["logfmt", "json"], "form of log lines", "log.format"),
  log_level: field.choice(
    "info",
    ["debug", "info", "warn", "error"],
    "lowest level that is logged",
    "log.level",
  ),
};

const clusterValidation = field.section(
  "Refusal of requests that were meant for another cluster.",
  {
    label: field.text("", "name of the cluster"),
    additional_labels: field.list([], "further names"),
    grpc: field.section("Calls between services.", {
      enabled: field.toggle(false, "refuse them"),
      soft_validation: field.toggle(false, "count them only"),
    }),
    http: field.section("Requests over HTTP.", {
      enabled: field.toggle(false, "refuse them", {
        refused: {
          value: true,
          why: "clusters are not told apart; let a proxy in front do so, and remove the key",
        },
      }),
    }),
  },
  "server.cluster-validation.",
);

/** `server`: what the process listens on, and how it logs. */
export const serverConfig = field.section("What the process listens on, and how it logs.", {
  ...listeners,
  ...certificates,
  ...api,
  ...times,
  ...grpc,
  ...logging,
  cluster_validation: clusterValidation,
  worker_threads: field.integer(
    0,
    "threads that decode, compress and scan; 0: one per core",
    "server.worker-threads",
    {
      max: 1024,
    },
  ),
});

type ServerConfig = field.Values<typeof serverConfig>;

/** TLS of the HTTP port. */
export function tlsOptionsOf(server: ServerConfig): TlsOptions {
  return optionsOf(server, server.http_tls_config);
}

/** TLS of the gRPC port. */
export function grpcTlsOptionsOf(server: ServerConfig): TlsOptions {
  return optionsOf(server, server.grpc_tls_config);
}

/** What the syslog listeners take from other keys. */
export function syslogSurroundingsOf(config: {
  readonly auth_enabled: boolean;
  readonly no_auth_tenant: string;
  readonly server: ServerConfig;
}): SyslogSurroundings {
  const { minVersion, cipherSuites } = tlsOptionsOf(config.server);
  return {
    authEnabled: config.auth_enabled,
    noAuthTenant: config.no_auth_tenant,
    ...{ minVersion, cipherSuites },
  };
}

function optionsOf(server: ServerConfig, section: ServerConfig["http_tls_config"]): TlsOptions {
  const { cert, key, client_ca, cert_file, key_file, client_ca_file, client_auth_type } = section;
  const suites = server.tls_cipher_suites.split(",").map((name) => name.trim());
  return {
    cert: { text: cert, file: cert_file },
    key: { text: key, file: key_file },
    clientCa: { text: client_ca, file: client_ca_file },
    clientAuth: client_auth_type,
    minVersion: server.tls_min_version,
    cipherSuites: suites.filter((name) => name !== ""),
  };
}
