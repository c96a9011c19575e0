import { field, onlyDisk } from "@skald/runtime/config";
import { anyStore, sseBlock } from "./object-stores.js";

/** Object stores in the newer form; one of the children is used. */
export function objectStoreFields(prefix: string) {
  return {
    s3: s3(`${prefix}.s3`),
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
      { unused: onlyDisk },
    ),
    bos: field.section(
      "A bucket of Baidu Cloud.",
      {
        bucket: field.text("", "bucket", `${prefix}.bos.bucket`),
        endpoint: field.text("", "host", `${prefix}.bos.endpoint`),
        access_key: field.text("", "key id", `${prefix}.bos.access-key`),
        secret_key: field.secret("key", `${prefix}.bos.secret-key`),
      },
      { unused: onlyDisk },
    ),
    cos: anyStore("IBM Cloud"),
    storage_prefix: field.text("", "start of all keys", `${prefix}.storage-prefix`, {
      unused: onlyDisk,
    }),
  };
}

/** Object stores in the newer form, as a section. */
export function objectStoreBlock(prefix: string) {
  return field.section("Object stores in the newer form.", objectStoreFields(prefix), {
    ignored: { named_stores: onlyDisk },
  });
}

const httpKeys = (): field.Field<Record<string, unknown>> =>
  field.map("settings of the connection");

function s3(prefix: string) {
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
      list_objects_version: field.text("", "v1 or v2", flag("list-objects-version")),
      bucket_lookup_type: field.choice(
        "auto",
        ["auto", "virtual-hosted", "path"],
        "bucket in the host name or in the path",
        flag("bucket-lookup-type"),
      ),
      dualstack_enabled: field.toggle(true, "IPv4 and IPv6", flag("dualstack-enabled")),
      storage_class: field.text("", "storage class of objects", flag("storage-class")),
      native_aws_auth_enabled: field.toggle(
        false,
        "take the key as AWS tools do",
        flag("native-aws-auth-enabled"),
      ),
      part_size: field.size("0B", "parts of an upload", flag("part-size")),
      send_content_md5: field.toggle(false, "send an MD5", flag("send-content-md5")),
      sts_endpoint: field.text("", "host of the token service", flag("sts-endpoint")),
      max_retries: field.integer(10, "tries after the first", flag("max-retries")),
      sse: sseBlock(flag("sse")),
      http: httpKeys(),
      trace: field.section("Log of requests.", {
        enabled: field.toggle(false, "write it", flag("trace.enabled")),
      }),
    },
    { unused: onlyDisk },
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
    { unused: onlyDisk },
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
    { unused: onlyDisk },
  );
}
