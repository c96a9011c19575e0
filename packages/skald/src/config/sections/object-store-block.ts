import { field, notBuilt } from "@skald/runtime/config";
import { anyStore, sseBlock } from "./object-stores.js";

/** Object stores in the newer form; one of the children is used. `unused` where no data is kept in them. */
export function objectStoreFields(prefix: string, unused?: string) {
  return {
    s3: s3(`${prefix}.s3`, unused),
    gcs: gcs(`${prefix}.gcs`),
    azure: azure(`${prefix}.azure`),
    swift: anyStore("Swift"),
    filesystem: field.section("A directory.", {
      dir: field.text("", "the directory", `${prefix}.filesystem.dir`),
    }),
    alibaba: field.section(
      "A bucket of Alibaba Cloud.",
      {
        endpoint: field.text("", "host", `${prefix}.oss.endpoint`),
        bucket: field.text("", "bucket", `${prefix}.oss.bucketname`),
        access_key_id: field.text("", "key id", `${prefix}.oss.access-key-id`),
        access_key_secret: field.secret("key", `${prefix}.oss.access-key-secret`),
      },
      { unused: notBuilt },
    ),
    bos: field.section(
      "A bucket of Baidu Cloud.",
      {
        bucket: field.text("", "bucket", `${prefix}.bos.bucket`),
        endpoint: field.text("", "host", `${prefix}.bos.endpoint`),
        access_key: field.text("", "key id", `${prefix}.bos.access-key`),
        secret_key: field.secret("key", `${prefix}.bos.secret-key`),
      },
      { unused: notBuilt },
    ),
    cos: anyStore("IBM Cloud"),
    storage_prefix: field.text(
      "",
      "folder of all keys in the bucket",
      `${prefix}.storage-prefix`,
      unused === undefined ? {} : { unused },
    ),
  };
}

/** Object stores in the newer form, as a section. */
export function objectStoreBlock(prefix: string) {
  return field.section("Object stores in the newer form.", objectStoreFields(prefix), {
    ignored: { named_stores: notBuilt },
  });
}

const httpKeys = (): field.Field<Record<string, unknown>> =>
  field.map("settings of the connection");

const tuned = { unused: "it is chosen for every upload" };

function s3(prefix: string, unused?: string) {
  const flag = (name: string): string => `${prefix}.${name}`;
  return field.section(
    "An S3 bucket.",
    {
      endpoint: field.text("", "host", flag("endpoint")),
      region: field.text("", "region", flag("region")),
      bucket_name: field.text("", "bucket", flag("bucket-name")),
      secret_access_key: field.secret("key", flag("secret-access-key")),
      access_key_id: field.text("", "key id", flag("access-key-id")),
      session_token: field.secret("session token", flag("session-token")),
      insecure: field.toggle(false, "speak HTTP", flag("insecure")),
      list_objects_version: field.text("", "v1 or v2", flag("list-objects-version"), {
        unused: "listings are of version 2",
      }),
      bucket_lookup_type: field.choice(
        "auto",
        ["auto", "virtual-hosted", "path"],
        "bucket in the host name or in the path; auto: path where there is an endpoint",
        flag("bucket-lookup-type"),
      ),
      dualstack_enabled: field.toggle(true, "IPv4 and IPv6", flag("dualstack-enabled")),
      storage_class: field.text("", "storage class of objects", flag("storage-class")),
      native_aws_auth_enabled: field.toggle(
        false,
        "take the key as AWS tools do",
        flag("native-aws-auth-enabled"),
        { unused: "it is taken so whenever there is no access_key_id", holds: () => true },
      ),
      part_size: field.size("0B", "parts of an upload", flag("part-size"), tuned),
      send_content_md5: field.toggle(false, "send an MD5", flag("send-content-md5"), {
        unused: "the signature covers a SHA-256 of the body",
      }),
      sts_endpoint: field.text("", "host of the token service", flag("sts-endpoint"), {
        unused: "set AWS_ENDPOINT_URL_STS instead",
      }),
      max_retries: field.integer(10, "tries after the first", flag("max-retries")),
      sse: sseBlock(flag("sse")),
      http: field.map("settings of the connection", {
        unused: "those of storage_config.aws.http_config hold",
      }),
      trace: field.section(
        "Log of requests.",
        { enabled: field.toggle(false, "write it", flag("trace.enabled")) },
        { unused: "metrics count them" },
      ),
    },
    unused === undefined ? {} : { unused },
  );
}

function gcs(prefix: string) {
  return field.section(
    "A bucket of Google Cloud Storage.",
    {
      bucket_name: field.text("", "bucket", `${prefix}.bucket-name`),
      service_account: field.secret("key of the account, as JSON", `${prefix}.service-account`),
      chunk_buffer_size: field.size("0B", "buffer of a write", `${prefix}.chunk-buffer-size`),
      max_retries: field.integer(10, "tries after the first", `${prefix}.max-retries`),
      http: httpKeys(),
    },
    { unused: notBuilt },
  );
}

function azure(prefix: string) {
  return field.section(
    "A container of Azure Blob Storage.",
    {
      account_name: field.text("", "account", `${prefix}.account-name`),
      account_key: field.secret("its key", `${prefix}.account-key`),
      connection_string: field.secret("or all in one text", `${prefix}.connection-string`),
      container_name: field.text("", "container", `${prefix}.container-name`),
      endpoint_suffix: field.text("", "end of the host name", `${prefix}.endpoint-suffix`),
      max_retries: field.integer(20, "tries after the first", `${prefix}.max-retries`),
      user_assigned_id: field.text("", "identity", `${prefix}.user-assigned-id`),
      chunk_delimiter: field.text("-", "what takes the place of :", `${prefix}.chunk-delimiter`),
      http: httpKeys(),
    },
    { unused: notBuilt },
  );
}
