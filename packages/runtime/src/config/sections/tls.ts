import * as field from "../field.js";

/** TLS of a client, as keys among those of the client. */
export function tlsClientFields(prefix: string) {
  return {
    tls_enabled: field.toggle(false, "speak TLS", `${prefix}.tls-enabled`),
    ...certificateFields(prefix),
    tls_cipher_suites: field.text("", "ciphers", `${prefix}.tls-cipher-suites`),
    tls_min_version: field.text("", "oldest version", `${prefix}.tls-min-version`),
  };
}

/** Certificates of a client, and which ones it trusts. */
export function certificateFields(prefix: string) {
  return {
    tls_cert_path: field.text("", "certificate of the client", `${prefix}.tls-cert-path`),
    tls_key_path: field.text("", "its key", `${prefix}.tls-key-path`),
    tls_ca_path: field.text("", "authorities that are trusted", `${prefix}.tls-ca-path`),
    tls_server_name: field.text(
      "",
      "name expected in the certificate",
      `${prefix}.tls-server-name`,
    ),
    tls_insecure_skip_verify: field.toggle(
      false,
      "accept any certificate",
      `${prefix}.tls-insecure-skip-verify`,
    ),
  };
}

/** TLS of a listener. */
export function tlsServerBlock(prefix: string) {
  return field.section("TLS.", {
    cert: field.text("", "certificate, as PEM text"),
    key: field.secret("its key, as PEM text"),
    client_ca: field.text("", "authorities of clients, as PEM text"),
    cert_file: field.text("", "file with the certificate", `${prefix}-tls-cert-path`),
    key_file: field.text("", "file with its key", `${prefix}-tls-key-path`),
    client_auth_type: field.text(
      "",
      "NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert",
      `${prefix}-tls-client-auth`,
    ),
    client_ca_file: field.text("", "file with authorities of clients", `${prefix}-tls-ca-path`),
  });
}
