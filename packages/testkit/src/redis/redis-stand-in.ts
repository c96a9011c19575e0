import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** Largest command, in bytes; Redis takes 512 MB for each word. */
const maxCommandBytes = 64 * 1024 * 1024;
const maxWords = 1024 * 1024;
/** Largest number in front of a command or word, with its sign, in bytes. */
const maxCountBytes = 32;
/** A client that leaves more replies than this unread is disconnected, as Redis does with subscribers. */
const maxUnreadBytes = 32 * 1024 * 1024;
const databaseCount = 16;
/** Pause between two looks for keys that have expired, in ms. */
const sweepPauseMs = 1000;

/** Keys and fields are bytes, held as latin1 strings so that a Map finds them. */
type Value =
  | { readonly kind: "string"; readonly bytes: Buffer; readonly expiresAtMs: number }
  | { readonly kind: "hash"; readonly fields: Map<string, Buffer> };
type Database = Map<string, Value>;

/** A reply before the protocol of the client gives it a form; a number is an integer, a Buffer or a string is a bulk string. */
type Reply =
  | { readonly kind: "status"; readonly text: string }
  | { readonly kind: "array" | "map" | "push"; readonly items: readonly Reply[] }
  | number
  | string
  | Buffer
  | null;

const ok: Reply = { kind: "status", text: "OK" };

/** A reply that says what is wrong with a command. */
class ErrorReply extends Error {}

/** The bytes are not a command: the client is told, and disconnected. */
class ProtocolError extends Error {}

/**
 * The commands of Redis that Skald sends, over RESP2 and RESP3, in memory. It takes the place of Redis where none is installed:
 * the same requests get the same replies, errors included, and a command or an option that is not here is an error. It has no
 * disk, replicas, transactions, scripts or inline commands.
 */
export class RedisStandIn {
  readonly #server: Server;
  readonly #clients = new Set<Client>();
  readonly #databases: readonly Database[] = Array.from({ length: databaseCount }, () => new Map());
  readonly #password: string;
  #sweeper: NodeJS.Timeout | undefined;
  #lastId = 0;

  /** With a password, clients must give it, as user "default" if they name one. */
  constructor({ password = "" }: { readonly password?: string } = {}) {
    this.#password = password;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Listens at a port of this machine; 0 takes a free one. */
  async open(port = 0): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", resolve);
    });
    this.#sweeper = setInterval(() => this.#sweep(), sweepPauseMs);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { socket } of this.#clients) socket.destroy();
    await closed;
  }

  #serve(socket: Socket): void {
    const client: Client = {
      ...{ socket, id: ++this.#lastId, protocol: 2, database: 0, channels: new Set() },
      isAuthenticated: this.#password === "",
    };
    this.#clients.add(client);
    let received: Buffer = Buffer.alloc(0);
    socket.setNoDelay();
    socket.on("error", () => undefined);
    socket.on("close", () => this.#clients.delete(client));
    socket.on("data", (piece) => {
      socket.cork();
      try {
        received = this.#runAll(client, Buffer.concat([received, piece]));
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        send(client, new ErrorReply(`ERR Protocol error: ${error.message}`));
        socket.end();
        socket.removeAllListeners("data");
      }
      socket.uncork();
    });
  }

  /** Runs the commands that are whole; returns the bytes behind them. */
  #runAll(client: Client, received: Buffer): Buffer {
    let at = 0;
    for (;;) {
      const found = readCommand(received, at);
      if (found === undefined) return received.subarray(at);
      at = found.end;
      if (found.words.length > 0) this.#run(client, found.words);
    }
  }

  #run(client: Client, [first, ...args]: readonly Buffer[]): void {
    const name = first?.toString("latin1") ?? "";
    try {
      const reply = this.#call(client, name, args);
      if (reply !== undefined) send(client, reply);
    } catch (error) {
      if (!(error instanceof ErrorReply)) throw error;
      send(client, error);
    }
  }

  /** Checks a command in the order in which Redis does, and runs it; it returns nothing if it has sent its replies. */
  #call(client: Client, name: string, args: readonly Buffer[]): Reply | undefined {
    const command = this.#commands.get(name.toLowerCase());
    if (command === undefined) {
      const shown = args.map((arg) => `'${arg.toString("latin1")}' `).join("");
      throw new ErrorReply(`ERR unknown command '${name}', with args beginning with: ${shown}`);
    }
    const [least, most, run] = command;
    if (args.length < least || args.length > most) throw wrongCount(name);
    const { isAuthenticated, protocol, channels } = client;
    if (!isAuthenticated && run !== this.#hello && run !== this.#auth)
      throw new ErrorReply("NOAUTH Authentication required.");
    if (protocol === 2 && channels.size > 0 && run !== this.#subscribe && run !== this.#ping)
      throw new ErrorReply(
        `ERR Can't execute '${name.toLowerCase()}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`,
      );
    return run(client, args);
  }

  readonly #hello: Command = (client, [version, ...options]) => {
    const wanted = version === undefined ? client.protocol : toInteger(version);
    if (wanted === undefined)
      throw new ErrorReply("ERR Protocol version is not an integer or out of range");
    if (wanted !== 2 && wanted !== 3) throw new ErrorReply("NOPROTO unsupported protocol version");
    const [option, user, password, ...more] = options;
    if (option !== undefined) {
      const isWhole = /^auth$/i.test(option.toString("latin1")) && password !== undefined;
      if (!isWhole || more.length > 0)
        throw new ErrorReply(`ERR Syntax error in HELLO option '${option.toString("latin1")}'`);
      this.#auth(client, [user as Buffer, password]);
    }
    if (!client.isAuthenticated)
      throw new ErrorReply(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
      );
    client.protocol = wanted;
    const items = [
      ...["server", "redis", "version", "7.0.0", "proto", wanted, "id", client.id],
      ...["mode", "standalone", "role", "master", "modules", { kind: "array", items: [] } as const],
    ];
    return { kind: "map", items };
  };

  readonly #auth: Command = (client, args) => {
    const [user, password] = args.length === 1 ? ["default", args[0]] : args;
    if (args.length === 1 && this.#password === "")
      throw new ErrorReply(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
      );
    const isRight = this.#password === "" || password?.toString() === this.#password;
    if (user?.toString() !== "default" || !isRight)
      throw new ErrorReply("WRONGPASS invalid username-password pair or user is disabled.");
    client.isAuthenticated = true;
    return ok;
  };

  readonly #ping: Command = ({ protocol, channels }, [text]) => {
    if (protocol === 2 && channels.size > 0)
      return { kind: "array", items: ["pong", text ?? Buffer.alloc(0)] };
    return text ?? { kind: "status", text: "PONG" };
  };

  readonly #subscribe: Command = (client, names) => {
    for (const name of names) {
      client.channels.add(name.toString("latin1"));
      send(client, { kind: "push", items: ["subscribe", name, client.channels.size] });
    }
    return undefined;
  };

  readonly #publish: Command = (_, [name, text]) => {
    const channel = (name as Buffer).toString("latin1");
    const listeners = [...this.#clients].filter(({ channels }) => channels.has(channel));
    const items = ["message", name as Buffer, text as Buffer];
    for (const listener of listeners) send(listener, { kind: "push", items });
    return listeners.length;
  };

  readonly #select: Command = (client, [index]) => {
    const database = toInteger(index as Buffer);
    if (database === undefined) throw notAnInteger();
    if (this.#databases[database] === undefined)
      throw new ErrorReply("ERR DB index is out of range");
    client.database = database;
    return ok;
  };

  readonly #get: Command = (client, [key]) => {
    const value = this.#find(client, key as Buffer);
    if (value === undefined) return null;
    if (value.kind !== "string") throw wrongType();
    return value.bytes;
  };

  readonly #set: Command = (client, [key, bytes, option, timeMs, ...more]) => {
    let expiresAtMs = Number.POSITIVE_INFINITY;
    if (option !== undefined) {
      if (!/^px$/i.test(option.toString("latin1")) || timeMs === undefined || more.length > 0)
        throw new ErrorReply("ERR syntax error");
      const ms = toInteger(timeMs);
      if (ms === undefined) throw notAnInteger();
      if (ms <= 0) throw new ErrorReply("ERR invalid expire time in 'set' command");
      expiresAtMs = Date.now() + ms;
    }
    const value: Value = { kind: "string", bytes: Buffer.from(bytes as Buffer), expiresAtMs };
    this.#of(client).set((key as Buffer).toString("latin1"), value);
    return ok;
  };

  readonly #hset: Command = (client, [key, ...pairs]) => {
    if (pairs.length % 2 !== 0) throw wrongCount("hset");
    const fields = this.#hash(client, key as Buffer) ?? new Map<string, Buffer>();
    const before = fields.size;
    for (let i = 0; i < pairs.length; i += 2)
      fields.set((pairs[i] as Buffer).toString("latin1"), Buffer.from(pairs[i + 1] as Buffer));
    this.#of(client).set((key as Buffer).toString("latin1"), { kind: "hash", fields });
    return fields.size - before;
  };

  readonly #hgetall: Command = (client, [key]) => {
    const fields = [...(this.#hash(client, key as Buffer) ?? [])];
    const items = fields.flatMap(([field, value]) => [Buffer.from(field, "latin1"), value]);
    return { kind: "map", items };
  };

  readonly #hdel: Command = (client, [key, ...names]) => {
    const fields = this.#hash(client, key as Buffer);
    if (fields === undefined) return 0;
    const removed = names.filter((name) => fields.delete(name.toString("latin1"))).length;
    if (fields.size === 0) this.#of(client).delete((key as Buffer).toString("latin1"));
    return removed;
  };

  /** By name: how many arguments at least and at most, and what they do. */
  readonly #commands = new Map<string, readonly [number, number, Command]>([
    ["auth", [1, 2, this.#auth]],
    ["dbsize", [0, 0, (client) => this.#of(client).size]],
    ["get", [1, 1, this.#get]],
    ["hdel", [2, maxWords, this.#hdel]],
    ["hello", [0, maxWords, this.#hello]],
    ["hgetall", [1, 1, this.#hgetall]],
    ["hset", [3, maxWords, this.#hset]],
    // Clients wait until it says that the server has loaded its data.
    ["info", [0, maxWords, () => "# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\n"]],
    ["ping", [0, 1, this.#ping]],
    ["publish", [2, 2, this.#publish]],
    ["select", [1, 1, this.#select]],
    ["set", [2, maxWords, this.#set]],
    ["subscribe", [1, maxWords, this.#subscribe]],
  ]);

  #of({ database }: Client): Database {
    return this.#databases[database] as Database;
  }

  /** The value of a key that has not expired. */
  #find(client: Client, key: Buffer): Value | undefined {
    const name = key.toString("latin1");
    const value = this.#of(client).get(name);
    if (value === undefined || !hasExpired(value, Date.now())) return value;
    this.#of(client).delete(name);
    return undefined;
  }

  #hash(client: Client, key: Buffer): Map<string, Buffer> | undefined {
    const value = this.#find(client, key);
    if (value !== undefined && value.kind !== "hash") throw wrongType();
    return value?.fields;
  }

  /** Drops keys that expired and that nobody asks for. */
  #sweep(): void {
    const nowMs = Date.now();
    for (const database of this.#databases)
      for (const [name, value] of database) if (hasExpired(value, nowMs)) database.delete(name);
  }
}

interface Client {
  readonly socket: Socket;
  readonly id: number;
  /** Channels that it listens to. */
  readonly channels: Set<string>;
  protocol: 2 | 3;
  database: number;
  isAuthenticated: boolean;
}

type Command = (client: Client, args: readonly Buffer[]) => Reply | undefined;

function hasExpired(value: Value, nowMs: number): boolean {
  return value.kind === "string" && value.expiresAtMs <= nowMs;
}

function send({ socket, protocol }: Client, reply: Reply | ErrorReply): void {
  for (const piece of encode(reply, protocol)) socket.write(piece);
  if (socket.writableLength > maxUnreadBytes) socket.destroy();
}

/** The bytes of a reply in pieces. RESP2 has neither maps nor pushes: they are arrays. */
function* encode(reply: Reply | ErrorReply, protocol: 2 | 3): Generator<Buffer> {
  if (reply === null) yield Buffer.from(protocol === 3 ? "_\r\n" : "$-1\r\n");
  else if (typeof reply === "number") yield Buffer.from(`:${reply}\r\n`);
  else if (typeof reply === "string" || Buffer.isBuffer(reply)) {
    const bytes = typeof reply === "string" ? Buffer.from(reply) : reply;
    yield Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")]);
  } else if (reply instanceof ErrorReply)
    yield Buffer.from(`-${reply.message.replaceAll(/[\r\n]/g, " ")}\r\n`, "latin1");
  else if (reply.kind === "status") yield Buffer.from(`+${reply.text}\r\n`);
  else {
    const { kind, items } = reply;
    const isPlain = protocol === 2 || kind === "array";
    const count = kind === "map" && !isPlain ? items.length / 2 : items.length;
    yield Buffer.from(`${isPlain ? "*" : kind === "map" ? "%" : ">"}${count}\r\n`);
    for (const item of items) yield* encode(item, protocol);
  }
}

/** The command that begins at `start`: its words, and where it ends; undefined while it is not whole. */
function readCommand(
  bytes: Buffer,
  start: number,
): { readonly words: Buffer[]; readonly end: number } | undefined {
  const count = readCount(bytes, start, "*", "multibulk", maxWords);
  if (count === undefined) return undefined;
  const words: Buffer[] = [];
  let at = count.end;
  while (words.length < count.value) {
    const size = readCount(bytes, at, "$", "bulk", maxCommandBytes - (at - start));
    if (size === undefined) return undefined;
    if (size.value < 0) throw new ProtocolError("invalid bulk length");
    at = size.end + size.value + 2;
    if (at > bytes.length) return undefined;
    words.push(bytes.subarray(size.end, size.end + size.value));
  }
  return { words, end: at };
}

/** A line like `*3`; undefined while it is not whole. */
function readCount(bytes: Buffer, at: number, mark: "*" | "$", what: string, most: number) {
  if (at >= bytes.length) return undefined;
  const first = String.fromCharCode(bytes[at] as number);
  if (first !== mark) throw new ProtocolError(`expected '${mark}', got '${first}'`);
  const end = bytes.indexOf("\r\n", at);
  const line = bytes.subarray(at + 1, end < 0 ? undefined : end);
  const value = toInteger(line);
  if (line.length > maxCountBytes || (end >= 0 && (value === undefined || value > most)))
    throw new ProtocolError(`invalid ${what} length`);
  return end < 0 ? undefined : { value: value as number, end: end + 2 };
}

function toInteger(bytes: Buffer): number | undefined {
  const text = bytes.toString("latin1");
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

function wrongCount(name: string): ErrorReply {
  return new ErrorReply(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
}

function wrongType(): ErrorReply {
  return new ErrorReply("WRONGTYPE Operation against a key holding the wrong kind of value");
}

function notAnInteger(): ErrorReply {
  return new ErrorReply("ERR value is not an integer or out of range");
}
