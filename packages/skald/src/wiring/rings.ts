import { readFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import type { ConnectionOptions, SecureVersion } from "node:tls";
import {
  Lifecycler,
  MemoryRingStore,
  RedisRingStore,
  Ring,
  type RingStore,
  ringKey,
} from "@skald/ring";
import type { Logger } from "@skald/runtime";
import type { Config } from "../config/root.js";
import type { ModuleName } from "../config/targets.js";

/** A ring and this process's member of it, with one life. */
export interface OwnRing {
  readonly ring: Ring;
  readonly id: string;
  /**
   * Whether what is named by these texts is this process's to work on, as the ring was seen last; with a tenant's shard, of as
   * many instances as are the tenant's.
   */
  owns(names: readonly string[], shard?: TenantShard): boolean;
  /** Enters the ring as PENDING and begins to watch it. */
  start(): Promise<void>;
  /** Becomes ACTIVE. */
  join(signal: AbortSignal): Promise<void>;
  leave(): Promise<void>;
  /** Writes the member now, and has the others read it. Throws when the store cannot be written. */
  tell(): Promise<void>;
  stop(options?: EndOptions): Promise<void>;
}

type EndOptions = Omit<Parameters<Lifecycler["stop"]>[0], "unregister">;

/** The rings of services by the modules that are members of them. */
export type ServiceRings = Partial<Record<ModuleName, OwnRing>>;

export interface TenantShard {
  readonly tenant: string;
  /** 0: all. */
  readonly size: number;
}

interface Context {
  readonly config: Config;
  readonly log: Logger;
}

type PlacingLifecycler = Config["ingester"]["lifecycler"];
type LifecyclerConfig = PlacingLifecycler | Config["pattern_ingester"]["lifecycler"];

/** The ring of ingesters; the single process is its only member unless it is kept in Redis. */
export function buildIngesterRing(
  { config, log }: Context,
  oldestMs: () => number | undefined,
): OwnRing {
  const { lifecycler } = config.ingester;
  return lifecyclerRing("ring", ingesterIdOf(config), lifecycler, { config, log }, oldestMs);
}

/** The ring of those who find patterns, which has each stream once. */
export function buildPatternRing({ config, log }: Context): OwnRing {
  const { lifecycler } = config.pattern_ingester;
  return lifecyclerRing(patternRing, patternIdOf(config), lifecycler, { config, log });
}

/** The name of this process among those who find patterns. */
export function patternIdOf({ pattern_ingester }: Config): string {
  return pattern_ingester.lifecycler.id || hostname();
}

/** The name of this process among ingesters. */
export function ingesterIdOf({ ingester }: Config): string {
  return ingester.lifecycler.id || hostname();
}

/** The ring of ingesters, for a process that is none itself. */
export function watchIngesterRing({ config, log }: Context): WatchedRing {
  return watchRing(watchedRing("ring", config.ingester.lifecycler, log));
}

/** The ring of those who find patterns, for a process that is none itself. */
export function watchPatternRing({ config, log }: Context): WatchedRing {
  return watchRing(watchedRing(patternRing, config.pattern_ingester.lifecycler, log));
}

const patternRing = "pattern-ring";

function lifecyclerRing(
  name: string,
  id: string,
  lifecycler: LifecyclerConfig,
  { config, log }: Context,
  oldestMs?: () => number | undefined,
): OwnRing {
  const { address, interface_names, enable_inet6, port } = lifecycler;
  const host = addressOf(address, interface_names, enable_inet6);
  return ownRing({
    ...watchedRing(name, lifecycler, log),
    id,
    address: `${host}:${port || config.server.grpc_listen_port}`,
    zone: lifecycler.availability_zone,
    tokens: lifecycler.num_tokens,
    tokensFile: lifecycler.tokens_file_path,
    unregister: lifecycler.unregister_on_shutdown,
    ...(oldestMs === undefined ? {} : { oldestMs }),
  });
}

function watchedRing(name: string, { heartbeat_period, ring }: LifecyclerConfig, log: Logger) {
  // Patterns are found once, however many copies of the lines there are.
  const placing = "replication_factor" in ring ? placingOf(ring) : {};
  return {
    ...{ name, log, ...placing },
    heartbeatMs: heartbeat_period,
    heartbeatTimeoutMs: ring.heartbeat_timeout,
    store: openStore(ring.kvstore, log),
  };
}

/** How many copies of a stream there are, and where. A ring that is not shared has one member. */
function placingOf({
  kvstore,
  replication_factor,
  zone_awareness_enabled,
}: PlacingLifecycler["ring"]): Pick<RingOfOptions, "replicas" | "isZoneAware"> {
  const replicas = kvstore.store === "redis" ? replication_factor : 1;
  return { replicas, isZoneAware: zone_awareness_enabled };
}

type OwningRingBlock = Config["compactor"]["compactor_ring"];

/** What a ring of a service is configured by; with tokens each key has one instance as its owner. */
export type RingBlock = Config["distributor"]["ring"] &
  Partial<Pick<OwningRingBlock, "num_tokens" | "tokens_file_path">>;

/** A ring by which the instances of a service know each other, and which places none of their data. */
export function buildServiceRing(name: string, ring: RingBlock, { config, log }: Context): OwnRing {
  const names = ring.instance_interface_names;
  const address = addressOf(ring.instance_addr, names, ring.instance_enable_ipv6);
  return ownRing({
    name,
    id: ring.instance_id || hostname(),
    address: `${address}:${ring.instance_port || config.server.grpc_listen_port}`,
    zone: ring.instance_availability_zone,
    tokens: ring.num_tokens ?? 0,
    tokensFile: ring.tokens_file_path ?? "",
    heartbeatMs: ring.heartbeat_period,
    heartbeatTimeoutMs: ring.heartbeat_timeout,
    forgetAfterMs: forgetTimeouts * ring.heartbeat_timeout,
    unregister: true,
    store: openStore(ring.kvstore, log),
    log,
  });
}

/** The ring of a service, for a process that is none of its instances. */
export function watchServiceRing(
  name: string,
  ring: Pick<RingBlock, "kvstore" | "heartbeat_period" | "heartbeat_timeout">,
  { log }: Pick<Context, "log">,
): WatchedRing {
  return watchRing({
    name,
    heartbeatMs: ring.heartbeat_period,
    heartbeatTimeoutMs: ring.heartbeat_timeout,
    forgetAfterMs: forgetTimeouts * ring.heartbeat_timeout,
    store: openStore(ring.kvstore, log),
    log,
  });
}

/** Whether other processes see a ring. */
export function isShared({ kvstore }: Pick<RingBlock, "kvstore">): boolean {
  return kvstore.store === "redis";
}

/** Such an instance has nothing that others miss: it is forgotten after so many heartbeat timeouts. */
const forgetTimeouts = 2;
/** The longest pause between two looks at a ring, where heartbeats are rare. */
const maxPollMs = 15_000;

/** A ring that is looked at. */
export interface WatchedRing {
  readonly ring: Ring;
  /** Begins to watch it. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface RingOfOptions {
  readonly name: string;
  /** Copies of each key; by default 1. */
  readonly replicas?: number;
  readonly isZoneAware?: boolean;
  readonly heartbeatMs: number;
  readonly heartbeatTimeoutMs: number;
  readonly forgetAfterMs?: number;
  readonly store: OpenStore;
  readonly log: Logger;
}

interface OwnRingOptions extends RingOfOptions {
  readonly id: string;
  readonly address: string;
  readonly zone: string;
  readonly tokens: number;
  readonly tokensFile: string;
  readonly unregister: boolean;
  readonly oldestMs?: () => number | undefined;
}

function ownRing(options: OwnRingOptions): OwnRing {
  const { store, isShared } = options.store;
  const { ring, ...watched } = watchRing(options);
  const { id, address, zone, isZoneAware = false, tokens, tokensFile, heartbeatMs } = options;
  const log = options.log.child({ component: "ring" });
  const member = new Lifecycler({
    ...{ store, ring, id, address, zone, isZoneAware, tokens, heartbeatMs, log },
    ...(tokensFile === "" ? {} : { tokensFile }),
    ...(options.oldestMs === undefined ? {} : { oldestMs: options.oldestMs }),
    ...(isShared ? {} : { settleMs: 0 }),
  });
  return {
    ...{ ring, id },
    owns: (names, shard) => {
      const { view } = ring;
      const part = shard === undefined ? view : view.shard(shard.tenant, shard.size);
      return part.ownerOf(ringKey(...names))?.id === id;
    },
    start: async () => {
      await member.start();
      await watched.start();
    },
    join: (signal) => member.join(signal),
    leave: () => member.leave(),
    tell: () => member.beat(true),
    stop: async (end = {}) => {
      await member.stop({ ...end, unregister: options.unregister });
      await watched.stop();
    },
  };
}

function watchRing(options: RingOfOptions): WatchedRing {
  const { name, heartbeatMs, heartbeatTimeoutMs, forgetAfterMs = 0 } = options;
  const { store } = options.store;
  const { replicas = 1, isZoneAware = false } = options;
  const ring = new Ring({
    ...{ store, name, replicas, isZoneAware, heartbeatTimeoutMs },
    log: options.log.child({ component: "ring" }),
    pollMs: Math.min(heartbeatMs || maxPollMs, maxPollMs),
    ...(forgetAfterMs > 0 ? { forgetAfterMs } : {}),
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

type KvStore = Config["distributor"]["ring"]["kvstore"];

interface OpenStore {
  readonly store: RingStore;
  /** Whether other processes have the same rings. */
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
      ...(tls_ca_path === "" ? {} : { ca: readFileSync(tls_ca_path) }),
      ...(tls_cert_path === "" ? {} : { cert: readFileSync(tls_cert_path) }),
      ...(tls_key_path === "" ? {} : { key: readFileSync(tls_key_path) }),
      ...(tls_server_name === "" ? {} : { servername: tls_server_name }),
      ...(tls_cipher_suites === "" ? {} : { ciphers: tls_cipher_suites.replaceAll(",", ":") }),
      ...(version === null ? {} : { minVersion: `TLSv1.${version[2]}` as SecureVersion }),
    },
  };
}

/** The address told to others: the one given, else that of an interface, of the names given or of any that is not local. */
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
