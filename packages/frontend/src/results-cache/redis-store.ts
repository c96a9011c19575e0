import type { ConnectionOptions } from "node:tls";
import { redisClient } from "@skald/ring";
import type { Logger } from "@skald/runtime";
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
const backoffMs = { first: 100, max: 5000 };

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

async function makeClient(store: RedisResultStoreOptions): Promise<RedisClient> {
  const { endpoints, masterName, username, password, database, timeoutMs, tls } = store;
  const client = await redisClient({
    ...{ endpoints, masterName, backoffMs },
    options: {
      ...{ connectTimeout: timeoutMs, commandTimeout: timeoutMs, db: database },
      ...(username === "" ? {} : { username }),
      ...(password === "" ? {} : { password }),
      ...(tls === undefined ? {} : { tls }),
    },
  });
  return client as unknown as RedisClient;
}
