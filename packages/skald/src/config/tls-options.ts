import type { TlsOptions } from "@skald/transport";
import type { Config } from "./root.js";

/** TLS of the port for HTTP, as the configuration has it. */
export function tlsOptionsOf({ server }: Pick<Config, "server">): TlsOptions {
  return optionsOf(server, server.http_tls_config);
}

/** TLS of the port for calls between services. */
export function grpcTlsOptionsOf({ server }: Pick<Config, "server">): TlsOptions {
  return optionsOf(server, server.grpc_tls_config);
}

function optionsOf(
  server: Config["server"],
  section: Config["server"]["http_tls_config"],
): TlsOptions {
  const { cert, key, client_ca, cert_file, key_file, client_ca_file, client_auth_type } = section;
  return {
    cert: { text: cert, file: cert_file },
    key: { text: key, file: key_file },
    clientCa: { text: client_ca, file: client_ca_file },
    clientAuth: client_auth_type,
    minVersion: server.tls_min_version,
    cipherSuites: server.tls_cipher_suites
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
  };
}
