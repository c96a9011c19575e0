import { field, grpcClientBlock } from "@skald/runtime/config";

const indexGatewayClient = field.section("How the index gateways are called.", {
  grpc_client_config: grpcClientBlock("tsdb.shipper.index-gateway-client.grpc"),
  server_address: field.text(
    "",
    "the index gateways, host and port, or a name with dns+ or dnssrv+; empty: whoever queries lists the store",
    "tsdb.shipper.index-gateway-client.server-address",
  ),
});

/** `storage_config`: where data is stored. */
export const storageConfig = field.section("Where data is stored.", {
  aws: s3Block(""),
  filesystem: field.section("A directory.", {
    directory: field.text("", "the directory", "local.chunk-directory"),
  }),
  object_prefix: field.text("", "folder of all keys in the bucket", "store.object-prefix"),
  segment_cache: field.section("What queries fetched from a bucket, kept on the local disk.", {
    directory: field.text(
      "",
      "its directory; default path_prefix/segment-cache",
      "store.segment-cache.directory",
    ),
    max_size: field.size(
      "10GB",
      "bytes that it takes at most; a twentieth of the disk is left free whatever it says",
      "store.segment-cache.max-size",
    ),
  }),
  object_store: objectStoreBlock("object-store."),
  tsdb_shipper: field.section("The index in the older layout.", {
    index_gateway_client: indexGatewayClient,
  }),
});

const period = field.section("What holds from a day on.", {
  from: field.text("", "first day, YYYY-MM-DD"),
  store: field.text("", "index; tsdb"),
  object_store: field.text("", "filesystem or s3; others are refused"),
  schema: field.text("", "v13"),
  index: field.section("Tables of the index.", {
    prefix: field.text("", "start of their names"),
    period: field.duration("0s", "time range of a table; 24h"),
    path_prefix: field.text("index/", "start of their keys"),
  }),
});

/** `schema_config`: which store holds the data of which time. Data has one form, and is in the store of the last period. */
export const schemaConfig = field.section("Which store holds the data of which time.", {
  configs: field.sections(
    period,
    "periods, sorted by their first day; the last one says in which object_store data is; may be left out",
  ),
});

export type SchemaPeriod = field.Values<typeof period>;

/** An S3 bucket in the older form. */
export function s3Block(prefix: string) {
  const flag = (name: string): string => `${prefix}s3.${name}`;
  const url = "s3://key:secret@host-or-region/bucket; a host has a dot or a port";
  const keys = {
    s3: field.secret(url, flag("url")),
    s3forcepathstyle: field.toggle(false, "bucket in the path", flag("force-path-style")),
    bucketnames: field.text("", "the bucket; several are refused", flag("buckets")),
    endpoint: field.text("", "host, or URL"),
    region: field.text("", "region; default: what the environment says"),
    access_key_id: field.secret("key id; without it AWS is asked as its tools do"),
    secret_access_key: field.secret("key"),
    session_token: field.secret("session token"),
    insecure: field.toggle(false, "speak HTTP"),
    http_config: httpSection(flag("http.")),
    storage_class: field.text("STANDARD", "storage class of objects"),
    sse: sseBlock(),
    backoff_config: field.section("How a request is tried again.", {
      min_period: field.duration("100ms", "first pause", flag("min-backoff")),
      max_period: field.duration("3s", "longest pause", flag("max-backoff")),
      max_retries: field.integer(5, "tries; 0: for ever", flag("max-retries")),
    }),
    disable_dualstack: field.toggle(false, "IPv4 only"),
  };
  return field.section("An S3 bucket.", keys, flag(""));
}

function httpSection(prefix: string) {
  const keys = {
    timeout: field.duration(
      "0s",
      "time limit of one try of a request; 0: 30s, and more for large bodies",
    ),
    idle_conn_timeout: field.duration("90s", "time after which idle connections end"),
    response_header_timeout: field.duration(
      "0s",
      "time limit to the headers of the answer; 0: that of the request",
    ),
    insecure_skip_verify: field.toggle(false, "accept any certificate"),
    ca_file: field.text("", "authorities that are trusted"),
  };
  return field.section("The connection.", keys, prefix);
}

/** Object stores in the newer form. */
export function objectStoreBlock(prefix: string) {
  const keys = {
    s3: newerS3(),
    filesystem: directoryBlock(),
    storage_prefix: field.text("", "folder of all keys in the bucket"),
  };
  return field.section("Object stores in the newer form.", keys, prefix);
}

/** A directory in the newer form; its flag follows from the section that it is in. */
export function directoryBlock() {
  return field.section("A directory.", { dir: field.text("", "the directory") });
}

function newerS3() {
  return field.section("An S3 bucket.", {
    endpoint: field.text("", "host"),
    region: field.text("", "region"),
    bucket_name: field.text("", "bucket"),
    secret_access_key: field.secret("key"),
    access_key_id: field.secret("key id"),
    session_token: field.secret("session token"),
    insecure: field.toggle(false, "speak HTTP"),
    bucket_lookup_type: field.choice(
      "auto",
      ["auto", "virtual-hosted", "path"],
      "bucket in the host name or in the path; auto: path where there is an endpoint",
    ),
    dualstack_enabled: field.toggle(true, "IPv4 and IPv6"),
    storage_class: field.text("", "storage class of objects"),
    max_retries: field.integer(10, "tries after the first"),
    sse: sseBlock(),
  });
}

/** Encryption by the object store; its flags follow from the section that it is in. */
function sseBlock() {
  return field.section("Encryption by the store.", {
    type: field.choice("", ["", "SSE-KMS", "SSE-S3"], "kind"),
    kms_key_id: field.text("", "key"),
    kms_encryption_context: field.text("", "context"),
  });
}
