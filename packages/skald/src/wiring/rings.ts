import { readFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import type { ConnectionOptions, SecureVersion } from "node:tls";
import {
  type Covers,
  KeptRing,
  Lifecycler,
  MemoryRingStore,
  RedisRingStore,
  Ring,
  type RingStore,
  ringKey,
} from "@skald/ring";
import type { Logger, Metrics } from "@skald/runtime";
import type { Config } from "../config/root.js";
import type { ModuleName } from "../config/targets.js";

/** A ring and this process's membership in it, with one life. */
export interface OwnRing {
  readonly ring: Ring;
  readonly id: string;
  /**
   * Whether this process owns what these texts name, as the ring was read last. With a shard only the instances of the tenant's
   * shard can own it.
   */
  owns(names: readonly string[], shard?: TenantShard): boolean;
  /** Enters the ring as PENDING and begins to watch it. */
  start(): Promise<void>;
  /** Becomes ACTIVE. */
  join(signal: AbortSignal): Promise<void>;
  leave(): Promise<void>;
  /** Writes the member to the store at once. Throws if the store cannot be written. */
  tell(): Promise<void>;
  stop(options?: EndOptions): Promise<void>;
}

/** A ring that this process watches. */
export interface WatchedRing {
  readonly ring: Ring;
  /** Begins to watch it. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

type EndOptions = Omit<Parameters<Lifecycler["stop"]>[0], "unregister">;

/** The rings of services by the modules that are members of them. */
export type ServiceRings = Partial<Record<ModuleName, OwnRing>>;

export interface TenantShard {
  readonly tenant: string;
  /** Instances of the shard; 0: all. */
  readonly size: number;
}

export interface RingContext {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
}

type KeepingContext = Pick<RingContext, "config" | "log">;

type PlacingLifecycler = Config["ingester"]["lifecycler"];
type LifecyclerConfig = PlacingLifecycler | Config["pattern_ingester"]["lifecycler"];
type OwningRingBlock = Config["compactor"]["compactor_ring"];

/** The configuration of a service's ring; with tokens each key has one owner. */
export type RingBlock = Config["distributor"]["ring"] &
  Partial<Pick<OwningRingBlock, "num_tokens" | "tokens_file_path">>;

const ingesterRing = "ring";
/** Each stream has one owner in it. */
const patternRing = "pattern-ring";

/** The ring of ingesters; a single process is the only member unless the ring is in Redis. */
export function buildIngesterRing(
  context: RingContext,
  told: Pick<MemberOptions, "oldestMs" | "covers">,
): OwnRing {
  const { lifecycler } = context.config.ingester;
  const placed = { id: ingesterIdOf(context.config), ...told };
  return lifecyclerRing(ingesterRing, lifecycler, context, placed);
}

/** The ring of the pattern ingesters. */
export function buildPatternRing(context: RingContext): OwnRing {
  const { lifecycler } = context.config.pattern_ingester;
  return lifecyclerRing(patternRing, lifecycler, context, { id: patternIdOf(context.config) });
}

/** The id of this process among pattern ingesters. */
export function patternIdOf({ pattern_ingester }: Config): string {
  return pattern_ingester.lifecycler.id || hostname();
}

/** The id of this process among ingesters. */
export function ingesterIdOf({ ingester }: Config): string {
  return ingester.lifecycler.id || hostname();
}

/** The ring of ingesters, for a process that is not an ingester. */
export function watchIngesterRing({ config, log, metrics }: RingContext): WatchedRing {
  const watched = watchRing(
    lifecyclerOptions(ingesterRing, config.ingester.lifecycler, { config, log }),
  );
  countMembers(metrics, watched.ring, "ingester");
  return watched;
}

/** The ring of pattern ingesters, for a process that is not one of them. */
export function watchPatternRing({ config, log }: KeepingContext) {
  const { lifecycler } = config.pattern_ingester;
  return watchRing(lifecyclerOptions(patternRing, lifecycler, { config, log }));
}

function lifecyclerRing(
  name: string,
  lifecycler: LifecyclerConfig,
  { config, log, metrics }: RingContext,
  member: Pick<MemberOptions, "id" | "oldestMs" | "covers">,
): OwnRing {
  const { address, interface_names, enable_inet6, port } = lifecycler;
  const host = addressOf(address, interface_names, enable_inet6);
  const forgetsCovered = name === ingesterRing && config.ingester.autoforget_unhealthy;
  const own = ownRing(
    { ...lifecyclerOptions(name, lifecycler, { config, log }), forgetsCovered },
    {
      ...member,
      address: `${host}:${port || config.server.grpc_listen_port}`,
      zone: lifecycler.availability_zone,
      tokens: lifecycler.num_tokens,
      tokensFile: lifecycler.tokens_file_path,
      unregister: lifecycler.unregister_on_shutdown,
    },
  );
  countMembers(metrics, own.ring, name === ingesterRing ? "ingester" : name);
  return own;
}

function lifecyclerOptions(
  name: string,
  { heartbeat_period, ring }: LifecyclerConfig,
  context: KeepingContext,
): RingOptions {
  const { log } = context;
  return {
    ...{ name, log, store: openStore(ring.kvstore, log), ...keptOf(name, ring, context) },
    heartbeatMs: heartbeat_period,
    heartbeatTimeoutMs: ring.heartbeat_timeout,
    // Only streams have copies; patterns are found once.
    ...("replication_factor" in ring ? copiesOf(ring) : {}),
  };
}

function copiesOf(ring: PlacingLifecycler["ring"]): Pick<RingOptions, "replicas" | "isZoneAware"> {
  const { replication_factor, zone_awareness_enabled: isZoneAware } = ring;
  // A ring that is not shared has one member.
  return { replicas: isShared(ring) ? replication_factor : 1, isZoneAware };
}

/** A ring through which the instances of a service find each other; it places none of their data. */
export function buildServiceRing(
  name: string,
  block: RingBlock,
  { config, log, metrics }: RingContext,
): OwnRing {
  const interfaces = block.instance_interface_names;
  const host = addressOf(block.instance_addr, interfaces, block.instance_enable_ipv6);
  const own = ownRing(serviceOptions(name, block, { config, log }), {
    id: block.instance_id || hostname(),
    address: `${host}:${block.instance_port || config.server.grpc_listen_port}`,
    zone: block.instance_availability_zone,
    tokens: block.num_tokens ?? 0,
    tokensFile: block.tokens_file_path ?? "",
    unregister: true,
  });
  countMembers(metrics, own.ring);
  return own;
}

/** The ring of a service, for a process that is not one of its instances. */
export function watchServiceRing(
  name: string,
  block: RingBlock,
  context: KeepingContext,
): WatchedRing {
  return watchRing(serviceOptions(name, block, context));
}

/** After this many heartbeat timeouts an instance is forgotten, because it holds nothing that others need. */
const forgetTimeouts = 2;

function serviceOptions(name: string, block: RingBlock, context: KeepingContext): RingOptions {
  const { log } = context;
  return {
    ...{ name, log, store: openStore(block.kvstore, log), ...keptOf(name, block, context) },
    heartbeatMs: block.heartbeat_period,
    heartbeatTimeoutMs: block.heartbeat_timeout,
    forgetAfterMs: forgetTimeouts * block.heartbeat_timeout,
  };
}

/** Where a ring that is shared is kept in the data folder, for a start while its store is down. */
function keptOf(
  name: string,
  block: Pick<RingBlock, "kvstore">,
  { config, log }: KeepingContext,
): { kept?: KeptRing } {
  if (!isShared(block)) return {};
  const { prefix, redis } = block.kvstore;
  const path = join(config.common.path_prefix || ".", "rings", `${name}.json`);
  const source = `${redis.endpoint} ${redis.master_name} ${redis.db} ${prefix}`;
  return { kept: new KeptRing({ path, source, log: log.child({ component: "ring" }) }) };
}

/** Whether other processes see a ring. */
export function isShared({ kvstore }: Pick<RingBlock, "kvstore">): boolean {
  return kvstore.store === "redis";
}

interface RingOptions {
  readonly name: string;
  /** Copies of each key; by default 1. */
  readonly replicas?: number;
  readonly isZoneAware?: boolean;
  readonly heartbeatMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly forgetAfterMs?: number;
  readonly forgetsCovered?: boolean;
  readonly store: OpenStore;
  readonly kept?: KeptRing;
  readonly log: Logger;
}

/** The membership of this process in a ring. */
interface MemberOptions {
  readonly id: string;
  readonly address: string;
  readonly zone: string;
  readonly tokens: number;
  readonly tokensFile: string;
  readonly unregister: boolean;
  readonly oldestMs?: () => number | undefined;
  readonly covers?: (earlier: Covers) => Covers;
}

function ownRing(options: RingOptions, { unregister, tokensFile, ...own }: MemberOptions): OwnRing {
  const { store, isShared } = options.store;
  const { ring, ...watched } = watchRing(options);
  const { isZoneAware = false, heartbeatMs } = options;
  const log = options.log.child({ component: "ring" });
  const member = new Lifecycler({
    ...{ ...own, store, ring, isZoneAware, heartbeatMs, log },
    ...(options.kept === undefined ? {} : { kept: options.kept }),
    ...(tokensFile === "" ? {} : { tokensFile }),
    ...(isShared ? {} : { settleMs: 0 }),
  });
  return {
    ...{ ring, id: own.id },
    owns: (names, shard) => {
      const { view } = ring;
      const part = shard === undefined ? view : view.shard(shard.tenant, shard.size);
      return part.ownerOf(ringKey(...names))?.id === own.id;
    },
    start: async () => {
      await member.start();
      await watched.start();
    },
    join: (signal) => member.join(signal),
    leave: () => member.leave(),
    tell: () => member.beat(true),
    stop: async (end = {}) => {
      await member.stop({ ...end, unregister });
      await watched.stop();
    },
  };
}

/** The longest pause between two reads of a ring, if heartbeats are rare. */
const maxPollMs = 15_000;

function watchRing(options: RingOptions): WatchedRing {
  const { name, heartbeatMs, heartbeatTimeoutMs, forgetAfterMs = 0 } = options;
  const { store } = options.store;
  const { replicas = 1, isZoneAware = false, forgetsCovered = false } = options;
  const ring = new Ring({
    ...{ store, name, replicas, isZoneAware, heartbeatTimeoutMs, forgetsCovered },
    log: options.log.child({ component: "ring" }),
    pollMs: Math.min(heartbeatMs || maxPollMs, maxPollMs),
    ...(forgetAfterMs > 0 ? { forgetAfterMs } : {}),
    ...(options.kept === undefined ? {} : { kept: options.kept }),
  });
  const end = new AbortController();
  let watching: Promise<void> | undefined;
  return {
    ring,
    start: async () => {
      watching = ring.run(end.signal);
    },
    stop: async () => {
      end.abort();
      await watching;
      await store.close();
    },
  };
}

const states = ["PENDING", "JOINING", "ACTIVE", "LEAVING"] as const;
/** Counts members whose heartbeats are overdue, whatever state they wrote last. */
const unhealthy = "Unhealthy";

/** Counts the members of a ring by state, each time that the ring is read. */
export function countMembers(metrics: Metrics, ring: Ring, name = ring.name): void {
  const labels = ["name", "state"];
  const members = metrics.gauge("ring_members", "Members of a ring by their state.", labels);
  ring.onRead(() => {
    const counts = new Map<string, number>([...states, unhealthy].map((state) => [state, 0]));
    for (const { isHealthy, state } of ring.view.instances) {
      const counted = isHealthy ? state : unhealthy;
      counts.set(counted, (counts.get(counted) ?? 0) + 1);
    }
    for (const [state, count] of counts) members.set({ name, state }, count);
  });
}

type KvStore = Config["distributor"]["ring"]["kvstore"];

interface OpenStore {
  readonly store: RingStore;
  /** Whether other processes see the same rings. */
  readonly isShared: boolean;
}

function openStore({ store, prefix, redis }: KvStore, log: Logger): OpenStore {
  const options = {
    endpoints: redis.endpoint.split(",").filter((endpoint) => endpoint.trim() !== ""),
    masterName: redis.master_name,
    isCluster: redis.cluster,
    username: redis.username,
    password: redis.password,
    sentinelUsername: redis.sentinel_username,
    sentinelPassword: redis.sentinel_password,
    database: redis.db,
    timeoutMs: redis.timeout,
    ...{ prefix, log, ...tlsOf(redis) },
  };
  if (store !== "redis") return { store: new MemoryRingStore(), isShared: false };
  return { store: new RedisRingStore(options), isShared: true };
}

function tlsOf(redis: KvStore["redis"]): { tls?: ConnectionOptions } {
  const { tls_enabled, tls_ca_path, tls_cert_path, tls_key_path } = redis;
  const { tls_server_name, tls_insecure_skip_verify, tls_cipher_suites, tls_min_version } = redis;
  if (!tls_enabled) return {};
  const version = /^VersionTLS(1)(\d)$/.exec(tls_min_version);
  return {
    tls: {
      rejectUnauthorized: !tls_insecure_skip_verify,
      ...(tls_ca_path && { ca: readFileSync(tls_ca_path) }),
      ...(tls_cert_path && { cert: readFileSync(tls_cert_path) }),
      ...(tls_key_path && { key: readFileSync(tls_key_path) }),
      ...(tls_server_name && { servername: tls_server_name }),
      ...(tls_cipher_suites && { ciphers: tls_cipher_suites.replaceAll(",", ":") }),
      ...(version && { minVersion: `TLSv1.${version[2]}` as SecureVersion }),
    },
  };
}

/** The address for others: the given one, else one of the named interfaces, or of any that is not local. */
function addressOf(given: string, names: readonly string[], allowsIpv6: boolean): string {
  if (given !== "") return given;
  const found = Object.entries(networkInterfaces())
    .filter(([name]) => names.length === 0 || names.includes(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ internal }) => names.length > 0 || !internal);
  const ipv4 = found.find(({ family }) => family === "IPv4");
  const ipv6 = found.find(({ family }) => family === "IPv6");
  if (ipv4 !== undefined) return ipv4.address;
  return allowsIpv6 && ipv6 !== undefined ? `[${ipv6.address}]` : "127.0.0.1";
}
