import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "./load-config.js";
import { s3OptionsOf, storeKind } from "./s3-bucket.js";

function optionsOf(yaml: string, env: NodeJS.ProcessEnv = {}) {
  const argv = ["-config.file=c.yaml", "-common.path-prefix=/d"];
  const loaded = loadConfig(argv, {}, { readFile: () => yaml });
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return { kind: storeKind(loaded.config), ...s3OptionsOf(loaded.config, env) };
}

const aws = (text: string) => `storage_config: {aws: {${text}}}`;

describe("the bucket of a configuration", () => {
  it.each<[string, string, object]>([
    [
      "a URL with a host",
      aws('s3: "s3://key:se%2Fc/r+t@minio:9000/chunks", insecure: true, s3forcepathstyle: true'),
      {
        bucket: "chunks",
        endpoint: "http://minio:9000",
        region: "us-east-1",
        credentials: { accessKeyId: "key", secretAccessKey: "se/c/r+t" },
        pathStyle: true,
      },
    ],
    [
      "a URL with a region",
      aws('s3: "s3://eu-west-1/chunks"'),
      { bucket: "chunks", endpoint: undefined, region: "eu-west-1", credentials: undefined },
    ],
    [
      "keys of its own",
      aws(
        "bucketnames: b, endpoint: store.example, region: r, access_key_id: k, secret_access_key: s, session_token: t",
      ),
      {
        bucket: "b",
        endpoint: "https://store.example",
        region: "r",
        credentials: { accessKeyId: "k", secretAccessKey: "s", sessionToken: "t" },
        pathStyle: false,
      },
    ],
    [
      "a host of Amazon",
      aws("bucketnames: b, endpoint: s3.eu-central-1.amazonaws.com"),
      { endpoint: undefined, region: "eu-central-1" },
    ],
    [
      "patience",
      aws(
        "bucketnames: b, http_config: {timeout: 5s, response_header_timeout: 1s}, backoff_config: {min_period: 1s, max_period: 2s, max_retries: 7}",
      ),
      {
        tryTimeoutMs: 5000,
        headerTimeoutMs: 1000,
        retry: { minBackoffMs: 1000, maxBackoffMs: 2000, maxRetries: 7 },
      },
    ],
    [
      "encryption and class",
      aws("bucketnames: b, sse: {type: SSE-KMS, kms_key_id: id}, storage_class: GLACIER_IR"),
      { encryption: { kind: "SSE-KMS", keyId: "id" }, storageClass: "GLACIER_IR" },
    ],
    [
      "a folder",
      `storage_config: {aws: {bucketnames: b}, object_prefix: "/logs/prod"}`,
      { folder: "logs/prod/", storageClass: undefined, encryption: undefined },
    ],
    [
      "the common store",
      "common: {storage: {s3: {bucketnames: b, endpoint: 'h:1', insecure: true}}}",
      { bucket: "b", endpoint: "http://h:1" },
    ],
    [
      "the newer form",
      "storage_config: {object_store: {storage_prefix: p, s3: {bucket_name: b, endpoint: 'minio:9000', access_key_id: k, secret_access_key: s}}}",
      { bucket: "b", endpoint: "https://minio:9000", pathStyle: true, folder: "p/" },
    ],
  ])("%s", (_, yaml, want) => {
    const found = optionsOf(yaml);
    expect(found.kind).toBe("s3");
    const asked = Object.keys(want).map((key) => [key, found[key as keyof typeof found]]);
    expect(Object.fromEntries(asked)).toEqual(want);
  });

  it("takes the region of the environment", () => {
    expect(optionsOf(aws("bucketnames: b"), { AWS_REGION: "eu-north-1" }).region).toBe(
      "eu-north-1",
    );
  });

  it("is not asked for where the last period is on disk", () => {
    const period =
      "{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}";
    const yaml = `schema_config: {configs: [${period}]}\n${aws("bucketnames: b")}`;
    expect(optionsOf(yaml).kind).toBe("filesystem");
    const more = `${yaml.slice(0, -1)}, object_prefix: p}`;
    const loaded = loadConfig(
      ["-config.file=c.yaml", "-common.path-prefix=/d"],
      {},
      { readFile: () => more },
    );
    expect("warnings" in loaded && loaded.warnings).toEqual([
      "storage_config.aws is not used: object_store is filesystem",
      "storage_config.object_prefix is not used: object_store is filesystem",
    ]);
  });
});
