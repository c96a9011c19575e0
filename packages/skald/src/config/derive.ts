import type { Settings } from "@skald/runtime/config";

/** Fills in the defaults that follow from `common` and from each other. Returns warnings. */
export function deriveSettings(settings: Settings): string[] {
  derivePaths(settings);
  deriveRings(settings);
  deriveAddresses(settings);
  deriveStores(settings);
  deriveGrpcPort(settings);
  const addresses = ["frontend.scheduler_address", "frontend_worker.scheduler_address"];
  if (addresses.every((path) => settings.get(path) === ""))
    settings.derive("query_scheduler.use_scheduler_ring", true);
  // Rulers that see each other share the rules.
  if (settings.get("ruler.ring.kvstore.store") === "redis")
    settings.derive("ruler.enable_sharding", true);
  deriveReplication(settings);
  return deriveOverrides(settings);
}

/** The directory of the data if no key names one, below the working directory. */
export const lastDirectory = "chunks";

const pathsBelowPrefix: Readonly<Record<string, string>> = {
  "ingester.wal.dir": "wal",
  "ruler.wal.dir": "ruler-wal",
  "compactor.working_directory": "compactor",
  "storage_config.segment_cache.directory": "segment-cache",
};

const tokenFiles: Readonly<Record<string, string>> = {
  "ingester.lifecycler.tokens_file_path": "ingester.tokens",
  "pattern_ingester.lifecycler.tokens_file_path": "pattern-ingester.tokens",
  "compactor.compactor_ring.tokens_file_path": "compactor.tokens",
  "ruler.ring.tokens_file_path": "ruler.tokens",
};

const rings = [
  "distributor.ring",
  "query_scheduler.scheduler_ring",
  "index_gateway.ring",
  "compactor.compactor_ring",
  "ruler.ring",
];
const lifecyclers = ["ingester.lifecycler", "pattern_ingester.lifecycler"];

function derivePaths(settings: Settings): void {
  const prefix = textOf(settings, "common.path_prefix").replace(/\/+$/, "");
  if (prefix === "") return;
  for (const [path, name] of Object.entries(pathsBelowPrefix))
    settings.derive(path, `${prefix}/${name}`);
  settings.derive("ingester.shutdown_marker_path", prefix);
  if (settings.get("common.persist_tokens") !== true) return;
  for (const [path, name] of Object.entries(tokenFiles)) settings.derive(path, `${prefix}/${name}`);
}

/** All rings take the settings of one: `common.ring`, else gossip, else the ring of the ingester. */
function deriveRings(settings: Settings): void {
  if (settings.isAnyGiven("common.ring")) {
    for (const ring of rings) settings.deriveBlock("common.ring", ring);
    for (const lifecycler of lifecyclers) deriveLifecycler(settings, "common.ring", lifecycler);
    return;
  }
  if ((settings.get("memberlist.join_members") as string[]).length > 0) {
    for (const ring of [...rings, ...lifecyclers.map((path) => `${path}.ring`)])
      settings.derive(`${ring}.kvstore.store`, "memberlist");
    return;
  }
  const own = "ingester.lifecycler.ring";
  settings.deriveBlock(own, "pattern_ingester.lifecycler.ring");
  for (const ring of rings) settings.deriveBlock(`${own}.kvstore`, `${ring}.kvstore`);
}

/** A lifecycler has other names for some keys of a ring. */
function deriveLifecycler(settings: Settings, ring: string, lifecycler: string): void {
  settings.deriveBlock(`${ring}.kvstore`, `${lifecycler}.ring.kvstore`);
  const same = {
    heartbeat_timeout: "ring.heartbeat_timeout",
    zone_awareness_enabled: "ring.zone_awareness_enabled",
    heartbeat_period: "heartbeat_period",
    tokens_file_path: "tokens_file_path",
    num_tokens: "num_tokens",
    instance_id: "id",
    instance_port: "port",
    instance_addr: "address",
    instance_interface_names: "interface_names",
    instance_availability_zone: "availability_zone",
    instance_enable_ipv6: "enable_inet6",
  };
  for (const [from, to] of Object.entries(same))
    if (settings.isGiven(`${ring}.${from}`) && settings.leaves.has(`${lifecycler}.${to}`))
      settings.derive(`${lifecycler}.${to}`, settings.get(`${ring}.${from}`));
}

function deriveAddresses(settings: Settings): void {
  if (settings.isGiven("common.instance_addr")) {
    const address = settings.get("common.instance_addr");
    for (const ring of rings) settings.derive(`${ring}.instance_addr`, address);
    for (const lifecycler of lifecyclers) settings.derive(`${lifecycler}.address`, address);
  }
  if (!settings.isGiven("common.instance_interface_names")) return;
  const names = settings.get("common.instance_interface_names");
  for (const ring of rings) settings.derive(`${ring}.instance_interface_names`, names);
  for (const lifecycler of lifecyclers) settings.derive(`${lifecycler}.interface_names`, names);
}

/** A process that serves HTTP on any free port does not claim a fixed one for gRPC, unless others have to find it there. */
function deriveGrpcPort(settings: Settings): void {
  const isAlone = (settings.get("target") as string[]).includes("all");
  if (isAlone && settings.get("server.http_listen_port") === 0)
    settings.derive("server.grpc_listen_port", 0);
}

function deriveStores(settings: Settings): void {
  settings.deriveBlock("common.storage.s3", "storage_config.aws");
  settings.deriveBlock("common.storage.object_store", "storage_config.object_store");
  settings.deriveBlock("common.storage.object_store", "ruler_storage");
  deriveDirectories(settings);
}

/** Derives the one key that the store reads from the several keys that may name the directory. */
function deriveDirectories(settings: Settings): void {
  const rules = textOf(settings, "common.storage.filesystem.rules_directory");
  if (rules !== "") {
    settings.derive("ruler.storage.type", "local");
    settings.derive("ruler.storage.local.directory", rules);
  }
  const prefix = textOf(settings, "common.path_prefix").replace(/\/+$/, "");
  const chunks = [
    textOf(settings, "common.storage.filesystem.chunks_directory"),
    textOf(settings, "storage_config.object_store.filesystem.dir"),
    prefix === "" ? lastDirectory : `${prefix}/chunks`,
  ].find((directory) => directory !== "");
  settings.derive("storage_config.filesystem.directory", chunks);
}

function deriveReplication(settings: Settings): void {
  if (!settings.isGiven("common.replication_factor")) return;
  const factor = settings.get("common.replication_factor") as number;
  settings.derive("ingester.lifecycler.ring.replication_factor", factor);
  settings.derive("index_gateway.ring.replication_factor", factor);
}

function deriveOverrides(settings: Settings): string[] {
  const old = "limits_config.per_tenant_override_config";
  const file = textOf(settings, old);
  if (file === "") return [];
  settings.derive("runtime_config.file", [file]);
  settings.derive(
    "runtime_config.period",
    settings.get("limits_config.per_tenant_override_period"),
  );
  return [`${old}: still honoured; its name is runtime_config.file now`];
}

function textOf(settings: Settings, path: string): string {
  return settings.get(path) as string;
}
