import { backoffBlock, field, notBuilt } from "@skald/runtime/config";

/** An S3 bucket in the older form; `unused` where no data is kept in one. */
export function s3Block(prefix: string, unused?: string) {
  const flag = (name: string): string => `${prefix}s3.${name}`;
  return field.section(
    "An S3 bucket.",
    {
      s3: field.secret(
        "s3://key:secret@host-or-region/bucket; a host has a dot or a port",
        flag("url"),
      ),
      s3forcepathstyle: field.toggle(false, "bucket in the path", flag("force-path-style")),
      bucketnames: field.text("", "the bucket; several are refused", flag("buckets")),
      endpoint: field.text("", "host, or URL", flag("endpoint")),
      region: field.text("", "region; default: what the environment says", flag("region")),
      access_key_id: field.text(
        "",
        "key id; without it AWS is asked as its tools do",
        flag("access-key-id"),
      ),
      secret_access_key: field.secret("key", flag("secret-access-key")),
      session_token: field.secret("session token", flag("session-token")),
      insecure: field.toggle(false, "speak HTTP", flag("insecure")),
      chunk_delimiter: field.text(
        "",
        "what takes the place of : in keys",
        flag("chunk-delimiter"),
        {
          unused: "keys have no colons",
        },
      ),
      http_config: httpSection(flag),
      signature_version: field.choice("v4", ["v4"], "signature", flag("signature-version"), {
        unused: "there is no other",
        holds: () => true,
      }),
      storage_class: field.text("STANDARD", "storage class of objects", flag("storage-class")),
      sse: sseBlock(flag("sse")),
      backoff_config: backoffBlock(
        { min: flag("min-backoff"), max: flag("max-backoff"), retries: flag("max-retries") },
        { min: "100ms", max: "3s", retries: 5, used: true },
      ),
      disable_dualstack: field.toggle(false, "IPv4 only", flag("disable-dualstack")),
    },
    {
      ...(unused === undefined ? {} : { unused }),
      ignored: { sse_encryption: "use sse.type instead", dynamodb: "only tsdb is supported" },
    },
  );
}

function httpSection(flag: (name: string) => string) {
  return field.section("The connection.", {
    timeout: field.duration(
      "0s",
      "time limit of one try of a request; 0: 30s, and more for large bodies",
      flag("http.timeout"),
    ),
    idle_conn_timeout: field.duration(
      "90s",
      "time after which idle connections end",
      flag("http.idle-conn-timeout"),
    ),
    response_header_timeout: field.duration(
      "0s",
      "time limit to the headers of the answer; 0: that of the request",
      flag("http.response-header-timeout"),
    ),
    insecure_skip_verify: field.toggle(
      false,
      "accept any certificate",
      flag("http.insecure-skip-verify"),
    ),
    ca_file: field.text("", "authorities that are trusted", flag("http.ca-file")),
  });
}

/** A bucket of Google Cloud Storage in the older form. */
export function gcsBlock(prefix: string) {
  const flag = (name: string): string => `${prefix}gcs.${name}`;
  return field.section(
    "A bucket of Google Cloud Storage.",
    {
      bucket_name: field.text("", "bucket", flag("bucketname")),
      service_account: field.secret("key of the account, as JSON", flag("service-account")),
      chunk_buffer_size: field.size("0B", "buffer of a write", flag("chunk-buffer-size")),
      request_timeout: field.duration("0s", "time limit; 0: none", flag("request-timeout")),
      enable_opencensus: field.toggle(true, "older tracing", flag("enable-opencensus")),
      enable_http2: field.toggle(true, "speak HTTP/2", flag("enable-http2")),
      enable_retries: field.toggle(true, "try again", flag("enable-retries")),
    },
    { unused: notBuilt, ignored: { endpoint: notBuilt } },
  );
}

/** A container of Azure in the older form. */
export function azureBlock(prefix: string) {
  const flag = (name: string): string => `${prefix}azure.${name}`;
  return field.section(
    "A container of Azure Blob Storage.",
    {
      environment: field.text("AzureGlobal", "cloud", flag("environment")),
      account_name: field.text("", "account", flag("account-name")),
      account_key: field.secret("its key", flag("account-key")),
      connection_string: field.secret("or all in one text", flag("connection-string")),
      container_name: field.text("loki", "container", flag("container-name")),
      endpoint_suffix: field.text("", "end of the host name", flag("endpoint-suffix")),
      use_managed_identity: field.toggle(false, "managed identity", flag("use-managed-identity")),
      use_federated_token: field.toggle(false, "federated token", flag("use-federated-token")),
      user_assigned_id: field.text("", "identity", flag("user-assigned-id")),
      use_service_principal: field.toggle(
        false,
        "service principal",
        flag("use-service-principal"),
      ),
      client_id: field.text("", "its client", flag("client-id")),
      client_secret: field.secret("its secret", flag("client-secret")),
      tenant_id: field.text("", "its tenant", flag("tenant-id")),
      chunk_delimiter: field.text(
        "-",
        "what takes the place of : in keys",
        flag("chunk-delimiter"),
      ),
      request_timeout: field.duration("30s", "time limit", flag("request-timeout")),
      download_buffer_size: field.size("512000", "buffer of a read", flag("download-buffer-size")),
      upload_buffer_size: field.size("256000", "buffer of a write", flag("upload-buffer-size")),
      upload_buffer_count: field.integer(1, "buffers", flag("download-buffer-count")),
      max_retries: field.integer(5, "tries after the first", flag("max-retries")),
      min_retry_delay: field.duration("10ms", "first pause", flag("min-retry-delay")),
      max_retry_delay: field.duration("500ms", "longest pause", flag("max-retry-delay")),
    },
    { unused: notBuilt, ignored: { active_directory_endpoint: notBuilt } },
  );
}

/** Keys of a store that is accepted without a look at what it holds. */
export function anyStore(name: string) {
  return field.map(`a bucket of ${name}`, { unused: notBuilt });
}

/** How slow reads are asked for a second time. */
export function hedgingBlock(prefix: string) {
  return field.section(
    "A second request where the first is slow.",
    {
      at: field.duration("0s", "time after which it is sent; 0: never", `${prefix}-requests-at`),
      up_to: field.integer(2, "requests in all", `${prefix}-requests-up-to`),
      max_per_second: field.integer(5, "such requests a second", `${prefix}-max-per-second`),
    },
    { unused: "a read that takes too long is tried again, never twice at a time" },
  );
}

/** Encryption by the object store. */
export function sseBlock(prefix: string) {
  return field.section("Encryption by the store.", {
    type: field.choice("", ["", "SSE-KMS", "SSE-S3"], "kind", `${prefix}.type`),
    kms_key_id: field.text("", "key", `${prefix}.kms-key-id`),
    kms_encryption_context: field.text("", "context", `${prefix}.kms-encryption-context`),
  });
}
