import type { TlsOptions } from "@skald/transport";
import type { Config } from "./root.js";

/** TLS of the port for HTTP, as the configuration has it. */
export function tlsOptionsOf({ server }: Pick<Config, "server">): TlsOptions {
  const { cert, key, client_ca, cert_file, key_file, client_ca_file, client_auth_type } =
    server.http_tls_config;
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
