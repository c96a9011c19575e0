import type { S3Options } from "@skald/storage";
import type { Config } from "./root.js";
import type { SchemaPeriod } from "./storage.js";

/** Whether data is in a directory or in a bucket. */
export type StoreKind = "filesystem" | "s3";

/** The kind of a name in `schema_config`; undefined if it is not supported. */
export function storeKindOf(name: string): StoreKind | undefined {
  if (name === "filesystem") return name;
  return name === "s3" || name === "aws" ? "s3" : undefined;
}

/** The store of the last period; without periods the bucket if one is named, else the directory. */
export function storeKindFrom(get: (path: string) => unknown): StoreKind {
  const last = (get("schema_config.configs") as readonly SchemaPeriod[]).at(-1);
  if (last !== undefined) return storeKindOf(last.object_store) ?? "filesystem";
  const named = [
    "storage_config.aws.s3",
    "storage_config.aws.bucketnames",
    "storage_config.object_store.s3.bucket_name",
  ];
  return named.some((path) => get(path) !== "") ? "s3" : "filesystem";
}

type Options = Omit<S3Options, "onTry" | "ca">;

/** The kind of store of a configuration. */
export function storeKind(config: Config): StoreKind {
  return storeKindFrom((path) =>
    path.split(".").reduce((at, key) => (at as Record<string, unknown>)[key], config as unknown),
  );
}

/** The bucket of a configuration: that of the older form if it names one, else that of the newer form. */
export function s3OptionsOf(config: Config, env = process.env): Options {
  const { aws, object_store, object_prefix } = config.storage_config;
  const newer = newerOptions(object_store.s3, object_store.storage_prefix, env);
  const older = olderOptions(aws, object_prefix, env);
  return older.bucket === "" ? newer : older;
}

/** A problem of the URL or the list of buckets of the older form; undefined if there is none. */
export function bucketProblem(url: string, buckets: string): string | undefined {
  const parsed = url === "" ? { bucket: "" } : parseUrl(url);
  if (parsed === undefined) return "s3 is not of the form s3://key:secret@host-or-region/bucket";
  const bucket = buckets || parsed.bucket;
  if (bucket === "") return "the bucket is missing; set bucketnames";
  if (bucket.includes(",")) return "several buckets are not supported; name one";
  return undefined;
}

function olderOptions(
  aws: Config["storage_config"]["aws"],
  folder: string,
  env: NodeJS.ProcessEnv,
): Options {
  const { http_config: http, backoff_config: backoff, sse } = aws;
  const url = parseUrl(aws.s3);
  const host = aws.endpoint || url?.host || "";
  const keyId = aws.access_key_id || url?.keyId || "";
  const secret = aws.secret_access_key || url?.secret || "";
  return {
    ...place(host, aws.insecure, aws.region || url?.region, env),
    bucket: aws.bucketnames || url?.bucket || "",
    folder: folderOf(folder),
    credentials: credentialsOf(keyId, secret, aws.session_token),
    pathStyle: aws.s3forcepathstyle,
    dualstack: !aws.disable_dualstack,
    insecureSkipVerify: http.insecure_skip_verify,
    idleTimeoutMs: http.idle_conn_timeout,
    headerTimeoutMs: http.response_header_timeout,
    tryTimeoutMs: http.timeout,
    retry: {
      minBackoffMs: backoff.min_period,
      maxBackoffMs: backoff.max_period,
      maxRetries: backoff.max_retries || Number.POSITIVE_INFINITY,
    },
    encryption: encryptionOf(sse),
    ...classOf(aws.storage_class),
  };
}

type Newer = Config["storage_config"]["object_store"]["s3"];

function newerOptions(s3: Newer, folder: string, env: NodeJS.ProcessEnv): Options {
  const { endpoint, bucket_lookup_type: lookup } = s3;
  return {
    ...place(endpoint, s3.insecure, s3.region, env),
    bucket: s3.bucket_name,
    folder: folderOf(folder),
    credentials: credentialsOf(s3.access_key_id, s3.secret_access_key, s3.session_token),
    pathStyle: lookup === "path" || (lookup === "auto" && endpoint !== "" && !isAmazon(endpoint)),
    dualstack: s3.dualstack_enabled,
    retry: { minBackoffMs: 100, maxBackoffMs: 3000, maxRetries: s3.max_retries },
    encryption: encryptionOf(s3.sse),
    ...classOf(s3.storage_class),
  };
}

interface BucketUrl {
  readonly keyId: string;
  readonly secret: string;
  readonly host?: string;
  readonly region?: string;
  readonly bucket: string;
}

function parseUrl(text: string): BucketUrl | undefined {
  // Not by URL: a secret may hold what a URL must not, such as a slash.
  const match = /^s3:\/\/(?:([^:@/]*):(.*)@|([^:@/]*)@)?([^/@]*)(?:\/([^/?]*)\/?)?$/.exec(text);
  if (match === null) return undefined;
  const [, keyId = "", secret = "", onlyKey = "", host = "", bucket = ""] = match;
  const place = /[.:]/.test(host) ? { host } : { region: host };
  return { keyId: unescapePart(keyId || onlyKey), secret: unescapePart(secret), ...place, bucket };
}

function unescapePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Every S3 server accepts a region, and most expect this one. */
const usualRegion = "us-east-1";

function place(
  endpoint: string,
  insecure: boolean,
  region: string | undefined,
  env: NodeJS.ProcessEnv,
) {
  const scheme = insecure ? "http" : "https";
  const url = /^https?:\/\//.test(endpoint) ? endpoint : `${scheme}://${endpoint}`;
  return {
    region: region || regionOf(endpoint) || env.AWS_REGION || env.AWS_DEFAULT_REGION || usualRegion,
    // The library derives the hosts of Amazon itself.
    ...(endpoint === "" || isAmazon(endpoint) ? {} : { endpoint: url }),
  };
}

/** Hosts that follow from a region: `s3.amazonaws.com`, `s3.eu-west-1.amazonaws.com`. */
const amazonHost = /^(?:https:\/\/)?s3[.-](?:([a-z]{2}(?:-[a-z]+)+-\d)\.)?amazonaws\.com\/?$/;

function isAmazon(endpoint: string): boolean {
  return amazonHost.test(endpoint);
}

function regionOf(endpoint: string): string | undefined {
  return amazonHost.exec(endpoint)?.[1];
}

function folderOf(prefix: string): string {
  const folder = prefix.replace(/^\/+|\/+$/g, "");
  return folder === "" ? "" : `${folder}/`;
}

function credentialsOf(accessKeyId: string, secretAccessKey: string, sessionToken: string) {
  if (accessKeyId === "") return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken === "" ? {} : { sessionToken }) };
}

function encryptionOf(sse: Newer["sse"]): S3Options["encryption"] {
  const { type, kms_key_id: keyId, kms_encryption_context: context } = sse;
  if (type === "") return undefined;
  if (type === "SSE-S3") return { kind: type };
  return {
    kind: type,
    ...(keyId === "" ? {} : { keyId }),
    ...(context === "" ? {} : { context }),
  };
}

/** The default class is left out, because some servers know no classes. */
function classOf(storageClass: string) {
  return storageClass === "" || storageClass === "STANDARD" ? {} : { storageClass };
}
