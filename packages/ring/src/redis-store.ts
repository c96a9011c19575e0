import type { ConnectionOptions } from "node:tls";
import { unavailable } from "@skald/model";
import type { Logger } from "@skald/runtime";
import type { Cluster, Redis } from "ioredis";
import { redisClient } from "./redis-client.js";
import type { RingStore } from "./ring-store.js";

/** How to reach Redis: one server, a master that Sentinels know, or a Cluster. */
export interface RedisStoreOptions {
  /** Hosts and ports: the server, the Sentinels where there is a master's name, or nodes of the Cluster. */
  readonly endpoints: readonly string[];
  /** Name of the master, as Sentinels know it. */
  readonly masterName?: string;
  /** Whether the endpoints are nodes of a Cluster; several without a master's name are. */
  readonly isCluster?: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly sentinelUsername?: string;
  readonly sentinelPassword?: string;
  /** Number of the database; a Cluster has 0 only. */
  readonly database?: number;
  readonly tls?: ConnectionOptions;
  /** Start of all keys and channels. */
  readonly prefix: string;
  /** Time limit of a command, connecting included, in ms. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

type Client = Redis | Cluster;

const backoffMs = { first: 50, max: 2000 };

/**
 * Rings in Redis: a hash for each ring, a field for each instance, and a channel of the same name on which news is told. It
 * uses nothing that a server or Cluster of any kind might lack: no scripts, no transactions, no expiry.
 *
 * Connects when it is used first, and again whenever it must, for ever; what it is asked in between fails.
 */
export class RedisRingStore implements RingStore {
  readonly #options: RedisStoreOptions;
  readonly #watchers = new Map<string, Set<() => void>>();
  #clients: Promise<Clients> | undefined;
  #isClosed = false;
  #isFailing = false;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
  }

  async read(ring: string): Promise<ReadonlyMap<string, string>> {
    const client = await this.#client();
    void this.#tryNews();
    return new Map(Object.entries(await client.hgetall(this.#key(ring))));
  }

  async write(
    ring: string,
    id: string,
    text: string,
    { news }: { readonly news: boolean },
  ): Promise<void> {
    const client = await this.#client();
    await client.hset(this.#key(ring), id, text);
    if (news) await client.publish(this.#key(ring), id);
  }

  async remove(ring: string, id: string): Promise<void> {
    const client = await this.#client();
    if ((await client.hdel(this.#key(ring), id)) > 0) await client.publish(this.#key(ring), id);
  }

  watch(ring: string, onNews: () => void): () => void {
    const key = this.#key(ring);
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers);
    const watcher = () => onNews();
    watchers.add(watcher);
    void this.#subscribe([key]);
    return () => {
      watchers.delete(watcher);
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const clients = await this.#clients?.catch(() => undefined);
    clients?.commands.disconnect();
    clients?.news.disconnect();
  }

  #key(ring: string): string {
    return this.#options.prefix + ring;
  }

  /** The client for commands, connected; throws unavailable when it is not within the time limit. */
  async #client(): Promise<Client> {
    if (this.#isClosed) throw unavailable("the store of the ring is closed");
    const { commands } = await this.#connected();
    if (commands.status !== "ready") await this.#ready(commands);
    return commands;
  }

  #connected(): Promise<Clients> {
    this.#clients ??= this.#connect();
    return this.#clients;
  }

  async #connect(): Promise<Clients> {
    const commands = await makeClient(this.#options);
    const news = await makeClient(this.#options);
    for (const client of [commands, news]) client.on("error", (error) => this.#noteFailure(error));
    commands.on("ready", () => this.#noteSuccess());
    news.on("message", (channel: string) => this.#tell(channel));
    // News from before is lost, so a new watcher reads the ring at once.
    news.on("ready", () => {
      void this.#subscribe([...this.#watchers.keys()]);
      for (const channel of this.#watchers.keys()) this.#tell(channel);
    });
    for (const client of [commands, news]) client.connect().catch(() => undefined);
    return { commands, news };
  }

  async #ready(client: Client): Promise<void> {
    const { timeoutMs, endpoints } = this.#options;
    const isReady = await new Promise<boolean>((resolve) => {
      const onReady = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        client.off("ready", onReady);
        resolve(false);
      }, timeoutMs);
      client.once("ready", onReady);
    });
    if (!isReady) throw unavailable(`no connection to Redis at ${endpoints.join(",")}`);
  }

  /** Listens to channels; one that fails is tried again when the connection comes back. */
  async #subscribe(channels: readonly string[]): Promise<void> {
    if (this.#isClosed || channels.length === 0) return;
    try {
      const { news } = await this.#connected();
      if (news.status === "ready") await news.subscribe(...channels);
    } catch (error) {
      this.#noteFailure(error);
    }
  }

  /** Nothing else is ever asked on that connection: without an answer it is cut, and made again. */
  async #tryNews(): Promise<void> {
    const { news } = await this.#connected();
    if (news.status === "ready") await news.ping().catch(() => undefined);
  }

  #tell(channel: string): void {
    for (const watcher of this.#watchers.get(channel) ?? []) watcher();
  }

  #noteFailure(error: unknown): void {
    if (!this.#isFailing && !this.#isClosed)
      this.#options.log.warn("Redis fails; it is tried again and again", { error });
    this.#isFailing = true;
  }

  #noteSuccess(): void {
    if (this.#isFailing) this.#options.log.info("Redis answers again");
    this.#isFailing = false;
  }
}

interface Clients {
  readonly commands: Client;
  /** Subscribed: it can do nothing else. */
  readonly news: Client;
}

function makeClient(store: RedisStoreOptions): Promise<Client> {
  const { endpoints, masterName, isCluster, username, password, database = 0 } = store;
  const { timeoutMs, sentinelUsername, sentinelPassword, tls } = store;
  return redisClient({
    ...{ endpoints, masterName, isCluster, backoffMs },
    options: {
      ...{ connectTimeout: timeoutMs, commandTimeout: timeoutMs, db: database },
      // A host that is gone sends nothing: otherwise commands would fail until the system gives up the connection.
      socketTimeout: timeoutMs,
      autoResubscribe: false,
      // After a failover the old master only reads: look for the new one.
      reconnectOnError: (error) => error.message.startsWith("READONLY"),
      ...(username ? { username } : {}),
      ...(password ? { password } : {}),
      ...(tls === undefined ? {} : { tls }),
    },
    sentinelOptions: {
      ...(sentinelUsername ? { sentinelUsername } : {}),
      ...(sentinelPassword ? { sentinelPassword } : {}),
      sentinelCommandTimeout: timeoutMs,
      ...(tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: tls }),
    },
    clusterOptions: { slotsRefreshTimeout: timeoutMs },
  });
}
