import type { ConnectionOptions } from "node:tls";
import type { Logger } from "@skald/runtime";
import type { Cluster, Redis } from "ioredis";
import type { ResultStore } from "./result-store.js";

export interface RedisResultStoreOptions {
  /** Hosts and ports: a server, Sentinels where there is a master's name, else nodes of a Cluster. */
  readonly endpoints: readonly string[];
  readonly masterName: string;
  readonly username: string;
  readonly password: string;
  readonly database: number;
  readonly tls?: ConnectionOptions | undefined;
  /** Time limit of a command, ms. */
  readonly timeoutMs: number;
  /** How long a value is kept, ms. */
  readonly ttlMs: number;
  readonly compress: boolean;
  /** Start of all keys. */
  readonly prefix: string;
  readonly log: Logger;
}

/** What is used of a client; it never waits for a connection. */
export interface RedisClient {
  readonly status: string;
  getBuffer(key: string): Promise<Buffer | null>;
  set(key: string, value: Buffer, px: "PX", ms: number): Promise<unknown>;
  connect(): Promise<unknown>;
  disconnect(): void;
  on(event: "error", told: (error: unknown) => void): unknown;
}

const maxValueBytes = 4 * 1024 * 1024;
/** Values that are being written; further ones are dropped. */
const maxWrites = 256;
const maxReconnectMs = 5000;
const usualPort = 6379;
const usualSentinelPort = 26_379;

/**
 * Keeps values in Redis. While it does not answer nothing is kept: a query never waits for a connection, and after a
 * command that took too long it does not ask for a while.
 */
export class RedisResultStore implements ResultStore {
  readonly maxValueBytes = maxValueBytes;
  readonly #options: RedisResultStoreOptions;
  readonly #make: (options: RedisResultStoreOptions) => Promise<RedisClient>;
  #client: RedisClient | undefined;
  #connecting: Promise<void> | undefined;
  #isClosed = false;
  #isFailing = false;
  #writes = 0;
  #restsUntilMs = 0;

  constructor(options: RedisResultStoreOptions, make = makeClient) {
    this.#options = options;
    this.#make = make;
  }

  get compress(): boolean {
    return this.#options.compress;
  }

  async get(
    keys: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Uint8Array | undefined)[]> {
    const client = this.#ready();
    if (client === undefined || signal.aborted) return keys.map(() => undefined);
    try {
      const values = await Promise.all(keys.map((key) => client.getBuffer(this.#key(key))));
      this.#isFailing = false;
      return values.map((value) => value ?? undefined);
    } catch (error) {
      this.#note(error);
      return keys.map(() => undefined);
    }
  }

  put(key: string, value: Uint8Array<ArrayBuffer>): void {
    const client = this.#ready();
    if (client === undefined || this.#writes >= maxWrites || value.byteLength > maxValueBytes)
      return;
    this.#writes++;
    client
      .set(this.#key(key), Buffer.from(value.buffer), "PX", this.#options.ttlMs)
      .catch((error: unknown) => this.#note(error))
      .finally(() => this.#writes--);
  }

  /** Opens the connection, so that it is there for the first query. */
  open(): void {
    this.#connecting ??= this.#connect().catch((error: unknown) => this.#note(error));
  }

  close(): void {
    this.#isClosed = true;
    this.#client?.disconnect();
  }

  #key(key: string): string {
    return this.#options.prefix + key;
  }

  #ready(): RedisClient | undefined {
    this.open();
    if (this.#isClosed || this.#client?.status !== "ready") return undefined;
    return performance.now() < this.#restsUntilMs ? undefined : this.#client;
  }

  async #connect(): Promise<void> {
    const client = await this.#make(this.#options);
    client.on("error", (error) => this.#note(error));
    client.connect().catch(() => undefined);
    this.#client = client;
  }

  #note(error: unknown): void {
    this.#restsUntilMs = performance.now() + 2 * this.#options.timeoutMs;
    if (this.#isFailing || this.#isClosed) return;
    this.#isFailing = true;
    this.#options.log.warn("Redis fails: nothing is kept there meanwhile", { error });
  }
}

async function makeClient(options: RedisResultStoreOptions): Promise<RedisClient> {
  // Of CommonJS a bundle has nothing but the default.
  const { Cluster, Redis } = (await import("ioredis")).default;
  const { endpoints, masterName, username, password, database, timeoutMs, tls } = options;
  const retryStrategy = (times: number) => Math.min(100 * 2 ** Math.min(times, 8), maxReconnectMs);
  const common = {
    ...{ lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0 },
    ...{ connectTimeout: timeoutMs, commandTimeout: timeoutMs, db: database },
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
  const nodes = (port: number) => endpoints.map((endpoint) => parseEndpoint(endpoint, port));
  let client: Redis | Cluster;
  if (masterName !== "") {
    const sentinels = nodes(usualSentinelPort);
    client = new Redis({ ...common, retryStrategy, sentinels, name: masterName });
  } else if (endpoints.length === 1) {
    client = new Redis({ ...common, retryStrategy, ...nodes(usualPort)[0] });
  } else {
    const { db: _, ...redisOptions } = common;
    const own = { redisOptions, lazyConnect: true, enableOfflineQueue: false };
    client = new Cluster(nodes(usualPort), { ...own, clusterRetryStrategy: retryStrategy });
  }
  return client as unknown as RedisClient;
}

/** Reads `host`, `host:port` or `[::1]:port`. */
function parseEndpoint(endpoint: string, defaultPort: number): { host: string; port: number } {
  const found = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(endpoint.trim());
  if (found === null) return { host: endpoint.trim(), port: defaultPort };
  const [, bracketed, plain, port] = found;
  return { host: (bracketed ?? plain) as string, port: Number(port ?? defaultPort) };
}
