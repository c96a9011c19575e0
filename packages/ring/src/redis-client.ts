import type { Cluster, ClusterOptions, Redis, RedisOptions } from "ioredis";

/** Which Redis to connect to, and how. */
export interface RedisConnection {
  /** Hosts and ports: the server, the Sentinels where there is a master's name, or nodes of the Cluster. */
  readonly endpoints: readonly string[];
  /** Name of the master, as Sentinels know it. */
  readonly masterName?: string | undefined;
  /** Whether the endpoints are nodes of a Cluster; several without a master's name always are. */
  readonly isCluster?: boolean | undefined;
  /** The pause before the next attempt to connect doubles from `first` ms to at most `max` ms. */
  readonly backoffMs: { readonly first: number; readonly max: number };
  readonly options: Pick<
    RedisOptions,
    | ("connectTimeout" | "commandTimeout" | "socketTimeout" | "db" | "tls")
    | ("username" | "password" | "autoResubscribe" | "reconnectOnError")
  >;
  readonly sentinelOptions?: Pick<
    RedisOptions,
    | ("sentinelUsername" | "sentinelPassword" | "sentinelCommandTimeout")
    | ("enableTLSForSentinelMode" | "sentinelTLS")
  >;
  readonly clusterOptions?: Pick<ClusterOptions, "slotsRefreshTimeout">;
}

const usualPort = 6379;
const usualSentinelPort = 26_379;

/**
 * Makes a client that is not connected yet. It connects again for ever, and fails commands that it cannot send or get an
 * answer to.
 */
export async function redisClient(connection: RedisConnection): Promise<Redis | Cluster> {
  const { endpoints, masterName = "", isCluster = false, backoffMs } = connection;
  // A bundle has only the default export of a CommonJS module.
  const { Cluster, Redis } = (await import("ioredis")).default;
  const retryStrategy = (times: number) =>
    Math.min(backoffMs.first * 2 ** Math.min(times, 10), backoffMs.max);
  const common = { ...connection.options, lazyConnect: true, maxRetriesPerRequest: 0 };
  const whole = { ...common, retryStrategy, enableOfflineQueue: false };
  if (masterName !== "")
    return new Redis({
      ...whole,
      sentinels: endpoints.map((endpoint) => parseEndpoint(endpoint, usualSentinelPort)),
      name: masterName,
      sentinelRetryStrategy: retryStrategy,
      ...connection.sentinelOptions,
    });
  const nodes = endpoints.map((endpoint) => parseEndpoint(endpoint, usualPort));
  if (!isCluster && nodes.length === 1) return new Redis({ ...whole, ...nodes[0] });
  // A Cluster has only database 0.
  const { db: _, ...redisOptions } = common;
  return new Cluster(nodes, {
    ...{ redisOptions, lazyConnect: true, enableOfflineQueue: false },
    ...{ clusterRetryStrategy: retryStrategy, ...connection.clusterOptions },
  });
}

/** Reads `host`, `host:port` or `[::1]:port`. */
export function parseEndpoint(
  endpoint: string,
  defaultPort: number,
): { host: string; port: number } {
  const found = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(endpoint.trim());
  if (found === null) return { host: endpoint.trim(), port: defaultPort };
  const [, bracketed, plain, port] = found;
  return { host: (bracketed ?? plain) as string, port: Number(port ?? defaultPort) };
}
