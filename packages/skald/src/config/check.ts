import { type RetentionLimits, RetentionRules } from "@skald/compactor/retention";
import { syslogProblems } from "@skald/distributor/syslog-config";
import { formatSize, quote } from "@skald/model";
import {
  type CheckedSettings,
  formatDurationMs,
  nearest,
  type Settings,
} from "@skald/runtime/config";
import { originOf } from "@skald/transport/origins";
import { checkTls } from "@skald/transport/tls";
import { lastDirectory } from "./derive.js";
import { notBuilt } from "./ignored-keys.js";
import type { Config } from "./root.js";
import { bucketProblem, storeKindFrom, storeKindOf } from "./s3-bucket.js";
import { grpcTlsOptionsOf, syslogSurroundingsOf, tlsOptionsOf } from "./server.js";
import type { SchemaPeriod } from "./storage.js";
import { targets } from "./targets.js";

interface Findings {
  readonly problems: string[];
  readonly warnings: string[];
}

/** Checks keys together; keys that could not be read are left out. */
export function checkSettings(
  settings: Settings,
  isBroken: (path: string) => boolean,
): CheckedSettings {
  const findings: Findings = { problems: [], warnings: [] };
  checkTargets(settings, findings);
  checkPushSize(settings, findings);
  checkCompactor(settings, findings);
  checkRetention(settings, findings);
  checkCommonStorage(settings, findings);
  checkDirectory(settings, findings);
  checkListener(settings, findings);
  checkSyslog(settings, findings);
  checkOrigins(settings, findings);
  checkUsers(settings, findings);
  checkBucket(settings, findings);
  checkRings(settings, findings);
  if (!isBroken("schema_config.configs")) checkSchema(settings, findings);
  return findings;
}

/** The blocks that configure the stores of the rings. */
const ringStores = [
  "distributor.ring.kvstore",
  "ingester.lifecycler.ring.kvstore",
  "compactor.compactor_ring.kvstore",
  "ruler.ring.kvstore",
  "query_scheduler.scheduler_ring.kvstore",
  "index_gateway.ring.kvstore",
  "pattern_ingester.lifecycler.ring.kvstore",
];

/** Warns about stores that are not supported: processes do not find each other through them. */
function checkRings(settings: Settings, { problems, warnings }: Findings): void {
  const kept = new Set(ringStores.map((path) => settings.get(`${path}.store`) as string));
  for (const store of kept)
    if (!["inmemory", "redis"].includes(store))
      warnings.push(
        `kvstore.store: ${store} is not spoken, rings are kept in the memory of this process; for several processes set common.ring.kvstore.store: redis and common.ring.kvstore.redis.endpoint`,
      );
  for (const path of ringStores) {
    if (settings.get(`${path}.store`) !== "redis") continue;
    if (settings.get(`${path}.redis.endpoint`) === "")
      problems.push(`${path}.store is redis: set ${path}.redis.endpoint, or that of common.ring`);
  }
}

function checkTargets(settings: Settings, { problems }: Findings): void {
  const names = settings.get("target") as string[];
  if (names.length === 0) problems.push("target is empty; -list-targets shows what it accepts");
  for (const name of names) {
    if (Object.hasOwn(targets, name)) continue;
    const near = nearest(name, Object.keys(targets));
    const hint = near === undefined ? "-list-targets shows all" : `did you mean ${near}?`;
    problems.push(`unrecognised module name: ${name}; ${hint}`);
  }
}

/** A body is held in memory as a whole, so the default is also the maximum. */
function checkPushSize(settings: Settings, { warnings }: Findings): void {
  const path = "distributor.max_decompressed_size";
  const size = settings.get(path) as number;
  const most = settings.leaves.get(path)?.note.defaultValue as number;
  if (size > most)
    warnings.push(
      `${path}: ${formatSize(size)} is more than a push may take; ${formatSize(most)} holds`,
    );
}

/** Settings that restrict access must be honoured completely. */
function checkListener(settings: Settings, { problems }: Findings): void {
  const { server } = settings.build() as Config;
  const listeners = [
    ["http", tlsOptionsOf(server)],
    // It has the versions and ciphers of HTTP, which are checked there.
    ["grpc", { ...grpcTlsOptionsOf(server), minVersion: "", cipherSuites: [] }],
  ] as const;
  for (const [name, options] of listeners)
    for (const problem of checkTls(options)) {
      const section = problem.startsWith("tls_") ? "server." : `server.${name}_tls_config: `;
      problems.push(section + problem);
    }
}

function checkSyslog(settings: Settings, { problems, warnings }: Findings): void {
  const config = settings.build() as Config;
  const { listeners } = config.syslog;
  const around = syslogSurroundingsOf(config);
  for (const [i, listener] of listeners.entries())
    for (const problem of syslogProblems(listener, around))
      problems.push(`syslog.listeners[${i}].${problem}`);
  if (listeners.length > 0 && !config.limits_config.allow_structured_metadata)
    warnings.push(
      "syslog.listeners: only label_fields of a message are kept beside its line, because limits_config.allow_structured_metadata is off",
    );
}

function checkOrigins(settings: Settings, { problems }: Findings): void {
  for (const origin of settings.get("ui.allowed_origins") as string[])
    if (originOf(origin) === undefined)
      problems.push(`ui.allowed_origins: ${quote(origin)} is no origin; write https://host:port`);
}

/** Rulers that ask over HTTP send no credentials. */
function checkUsers(settings: Settings, { warnings }: Findings): void {
  const isRemote = settings.get("ruler.evaluation.mode") === "remote";
  if (settings.get("auth.users_file") !== "" && isRemote)
    warnings.push(
      "ruler.evaluation.mode: remote asks without credentials, which a query frontend with auth.users_file refuses; use mode local, or a frontend of its own for rulers",
    );
}

function checkCompactor(settings: Settings, { problems }: Findings): void {
  if (settings.get("compactor.working_directory") === "")
    problems.push("compactor.working_directory is empty; set it or common.path_prefix");
  const isRetained = settings.get("compactor.retention_enabled");
  if (isRetained && settings.get("compactor.delete_request_store") === "")
    problems.push("compactor.delete-request-store should be configured when retention is enabled");
}

const dayMs = 86_400_000;

function checkRetention(settings: Settings, { problems, warnings }: Findings): void {
  const paths = ["retention_period", "retention_stream"];
  const given = paths.filter((name) => settings.isAnyChanged(`limits_config.${name}`));
  if (given.length > 0 && !settings.get("compactor.retention_enabled"))
    warnings.push(
      `limits_config: nothing is deleted by age unless compactor.retention_enabled is set: ${given.join(", ")}`,
    );
  const rules = settings.get(
    "limits_config.retention_stream",
  ) as RetentionLimits["retention_stream"];
  try {
    new RetentionRules({ retention_period: 0, retention_stream: rules });
  } catch (error) {
    problems.push(`limits_config.retention_stream: ${(error as Error).message}`);
  }
  for (const { period } of rules)
    if (period < dayMs)
      problems.push(
        `limits_config.retention_stream: retention period must be >= 24h was ${formatDurationMs(period)}`,
      );
}

function checkCommonStorage(settings: Settings, { problems }: Findings): void {
  const children = settings.root.children.get("common");
  const storage = children?.kind === "section" ? children.children.get("storage") : undefined;
  if (storage?.kind !== "section") return;
  const given = [...storage.children.keys()].filter((name) =>
    settings.isAnyChanged(`common.storage.${name}`),
  );
  if (given.length > 1)
    problems.push(`common.storage has several stores, ${given.join(", ")}; keep one`);
}

/** The supported object stores, by their names in `schema_config`. */
const builtStores: readonly string[] = ["filesystem", "s3", "aws"];
const useBuilt =
  "set object_store: filesystem in schema_config, and storage_config.filesystem.directory; or s3, and storage_config.aws";

/** Without periods data stays on the local disk: a key that names another store is a problem. */
function checkStoresWithoutPeriods(settings: Settings, { problems }: Findings): void {
  for (const { key, value, why } of settings.ignored)
    if (why === notBuilt && value !== "" && bucketKey.test(key))
      problems.push(`${key}: ${why}; ${useBuilt}`);
}

/** Keys and flags that name a bucket or an account; files often hold the other keys with their defaults. */
const bucketKey = /(?:bucket|account.name|connection.string|auth.url)[^.]*$/;

const objectStores = "filesystem s3 aws gcs azure swift cos bos alibabacloud".split(" ");

function checkSchema(settings: Settings, findings: Findings): void {
  const { problems, warnings } = findings;
  const periods = settings.get("schema_config.configs") as SchemaPeriod[];
  const last = periods.at(-1);
  if (last === undefined) {
    checkStoresWithoutPeriods(settings, findings);
    return;
  }
  for (const [index, period] of periods.entries()) {
    const name = `schema_config.configs[${index}]`;
    checkPeriod(settings, period, name, findings);
    const before = periods[index - 1];
    if (before !== undefined && before.from >= period.from)
      problems.push(`${name}: from ${period.from} must be later than ${before.from} before it`);
    if (period === last) continue;
    if (period.store !== "tsdb")
      warnings.push(`${name}: data of store ${period.store} is not read`);
    else if (storeKindOf(period.object_store) !== storeKindOf(last.object_store))
      warnings.push(`${name}: data of object store ${period.object_store} is not read`);
  }
  if (last.store !== "tsdb")
    problems.push(`schema_config: store ${last.store || '""'} of the last period must be tsdb`);
  checkMetadata(settings, last, findings);
  if (!builtStores.includes(last.object_store) && isKnownStore(settings, last.object_store))
    problems.push(
      `schema_config: object_store ${last.object_store} is not built into this version; ${useBuilt}`,
    );
}

const indexStores = "tsdb boltdb-shipper boltdb aws bigtable gcp cassandra grpc-store".split(" ");

function checkPeriod(
  settings: Settings,
  period: SchemaPeriod,
  name: string,
  { problems }: Findings,
): void {
  const { from, store, object_store, schema, index } = period;
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(from) && !Number.isNaN(Date.parse(`${from}T00:00:00Z`));
  if (!isDay) problems.push(`${name}: from "${from}" is not a day; write it like 2024-01-31`);
  if (!indexStores.includes(store)) problems.push(`${name}: store "${store}" is unknown; use tsdb`);
  if (!/^v(?:9|1[0-4])$/.test(schema))
    problems.push(`${name}: schema "${schema}" is unknown; use v13`);
  if (!isKnownStore(settings, object_store))
    problems.push(`${name}: unrecognized \`object_store\` type \`${object_store}\``);
  if (store === "tsdb" && index.period !== dayMs)
    problems.push(
      `${name}: index.period must be 24h for tsdb, not ${formatDurationMs(index.period)}`,
    );
}

function isKnownStore(settings: Settings, name: string): boolean {
  if (objectStores.includes(name)) return true;
  const named = /^storage_config\.named_stores\.[^.]+\.(.+)$/;
  return settings.ignored.some(({ key }) => named.exec(key)?.[1]?.startsWith(`${name}.`));
}

function checkMetadata(settings: Settings, last: SchemaPeriod, { problems }: Findings): void {
  if (settings.get("limits_config.allow_structured_metadata") !== true) return;
  const version = /^v(\d+)$/.exec(last.schema)?.[1];
  if (version !== undefined && Number(version) < 13)
    problems.push(
      `schema v13 is required to store Structured Metadata and use native OTLP ingestion, your schema version is ${last.schema}; set allow_structured_metadata: false in limits_config, or add a period with schema: v13`,
    );
}

function checkBucket(settings: Settings, { problems }: Findings): void {
  if (storeKindFrom((path) => settings.get(path)) !== "s3") return;
  const text = (path: string) => settings.get(path) as string;
  const older = {
    url: text("storage_config.aws.s3"),
    bucket: text("storage_config.aws.bucketnames"),
  };
  const newer = text("storage_config.object_store.s3.bucket_name");
  if (older.url === "" && older.bucket === "" && newer !== "") return;
  const problem = bucketProblem(older.url, older.bucket);
  if (problem !== undefined) problems.push(`storage_config.aws: ${problem}`);
}

function checkDirectory(settings: Settings, { warnings }: Findings): void {
  if (storeKindFrom((path) => settings.get(path)) !== "filesystem") return;
  for (const unused of ["aws", "object_store.s3", "object_prefix"].map(
    (key) => `storage_config.${key}`,
  ))
    if (settings.isAnyChanged(unused))
      warnings.push(`${unused} is not used: object_store is filesystem`);
  const path = "storage_config.filesystem.directory";
  const isChosen = settings.isGiven(path) || settings.get(path) !== lastDirectory;
  if (settings.get(path) === "" || !isChosen)
    warnings.push(
      `${path} is not set: data is kept in ${lastDirectory} below the working directory; set it or common.path_prefix`,
    );
}
