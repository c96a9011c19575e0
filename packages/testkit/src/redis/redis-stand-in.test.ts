import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { findRedis, redisStandIn } from "./redis-program.js";
import { RedisServer } from "./redis-server.js";

/** A connection that is told in latin1 what to send, and gives what came back. */
class Wire {
  readonly #socket: Socket;
  #received = "";
  #heard = (): void => undefined;
  #isClosed = false;

  constructor(port: number) {
    this.#socket = connect(port, "127.0.0.1");
    this.#socket.setEncoding("latin1").on("data", (piece) => {
      this.#received += piece;
      this.#heard();
    });
    this.#socket.on("close", () => {
      this.#isClosed = true;
      this.#heard();
    });
  }

  send(text: string): void {
    this.#socket.write(text, "latin1");
  }

  /** Sends commands in one piece; returns the replies, `|` in place of line ends. */
  async ask(...commands: string[][]): Promise<string> {
    this.send(`${commands.map(bytesOf).join("")}${bytesOf(["ping", "the end"])}`);
    const text = await this.until("the end\r\n");
    return text.replace(/(\*2\r\n\$4\r\npong\r\n)?\$7\r\nthe end\r\n$/, "").replaceAll("\r\n", "|");
  }

  /** What came until a text did, or until the connection was closed. */
  async until(end: string): Promise<string> {
    while (!this.#received.endsWith(end) && !this.#isClosed)
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    const text = this.#received;
    this.#received = "";
    return text;
  }

  pause(): void {
    this.#socket.pause();
  }

  close(): void {
    this.#socket.destroy();
  }
}

function bytesOf(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`;
}

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
const wrongPassword = "-WRONGPASS invalid username-password pair or user is disabled.|";
const notAnInteger = "-ERR value is not an integer or out of range|";
const badTime = "-ERR invalid expire time in 'set' command|";
const badDatabase = "-ERR DB index is out of range|";
const badProtocol = "-NOPROTO unsupported protocol version|";

function wrongCount(name: string): string {
  return `-ERR wrong number of arguments for '${name}' command|`;
}

/** Commands with their replies over RESP2, and over RESP3 where those differ. `k` and `h` are keys that no other case has. */
const cases: readonly (readonly [name: string, string, resp2: string, resp3?: string])[] = [
  ["no value", "get k", "$-1|", "_|"],
  ["a value", "set k v; GET k; set k w; get k", "+OK|$1|v|+OK|$1|w|"],
  ["time limits", "set k v px 60000; get k; set k v PX 60000", "+OK|$1|v|+OK|"],
  ["time limits that are too short", "set k v px 0; set k v px -1", badTime + badTime],
  ["time limits without a number", "set k v px x; set k v px 1.5", notAnInteger + notAnInteger],
  ["wrong options", "set k v nope; set k v px; set k v px 1 px", "-ERR syntax error|".repeat(3)],
  ["fields that are new", "hset h a 1 b 2; hset h a 3 c 4; hset h c 5", ":2|:1|:0|"],
  [
    "all of a hash",
    "hset h a 1 b 2; hset h a 3; hgetall h",
    ":2|:0|*4|$1|a|$1|3|$1|b|$1|2|",
    ":2|:0|%2|$1|a|$1|3|$1|b|$1|2|",
  ],
  ["no hash", "hgetall h; hdel h a", "*0|:0|", "%0|:0|"],
  [
    "a hash that has lost its fields",
    "hset h a 1 b 2; hdel h a c; hdel h b; get h",
    ":2|:1|:1|$-1|",
    ":2|:1|:1|_|",
  ],
  ["a field twice", "hset h a 1 a 2; hdel h a a", ":1|:1|"],
  ["half a pair", "hset h a 1 b; get h", `${wrongCount("hset")}$-1|`, `${wrongCount("hset")}_|`],
  ["a hash as a string", "hset h a 1; get h; set h v; get h", `:1|${wrongType}+OK|$1|v|`],
  ["a string as a hash", "set k v; hset k a 1; hdel k a; hgetall k", `+OK|${wrongType.repeat(3)}`],
  ["databases", "set k v; select 1; get k", "+OK|+OK|$-1|", "+OK|+OK|_|"],
  ["databases that are not there", "select 16; select -1", badDatabase + badDatabase],
  ["a database without a number", "select x", notAnInteger],
  ["ping", "ping; PING x; ping x y", `+PONG|$1|x|${wrongCount("ping")}`],
  ["wrong counts of words", "get; GET a b; set k", wrongCount("get").repeat(2) + wrongCount("set")],
  [
    "unknown commands",
    "nope a b; Nope; constructor",
    "-ERR unknown command 'nope', with args beginning with: 'a' 'b' |" +
      "-ERR unknown command 'Nope', with args beginning with: |" +
      "-ERR unknown command 'constructor', with args beginning with: |",
  ],
  ["news that nobody listens to", "publish a x", ":0|"],
  ["passwords that are not needed", "auth default any; auth other any", `+OK|${wrongPassword}`],
  ["protocols that there are not", "hello 4; hello 1", badProtocol + badProtocol],
  ["options of hello that there are not", "hello 3 x", "-ERR Syntax error in HELLO option 'x'|"],
];

/** Bytes that are no command, with what is said before the connection is closed. */
const damaged: readonly (readonly [bytes: string, said: string])[] = [
  ["*x\r\n", "invalid multibulk length"],
  ["*99999999999\r\n", "invalid multibulk length"],
  ["*1\r\n+4\r\nping\r\n", "expected '$', got '+'"],
  ["*1\r\n$-1\r\n", "invalid bulk length"],
  ["*1\r\n$x\r\n", "invalid bulk length"],
  ["*2\r\n$3\r\nget\r\n$1073741824\r\n", "invalid bulk length"],
];

describe.each([...new Set([findRedis(), redisStandIn])])("$name", (program) => {
  let server: RedisServer;
  const wires: Wire[] = [];
  const open = (port = server.port): Wire => {
    const wire = new Wire(port);
    wires.push(wire);
    return wire;
  };
  /** One that speaks RESP3. */
  const openThird = async (): Promise<Wire> => {
    const wire = open();
    expect(await wire.ask(["hello", "3"])).toContain("$5|proto|:3|");
    return wire;
  };
  beforeAll(async () => {
    server = await RedisServer.start(program);
  });
  afterEach(() => {
    for (const wire of wires.splice(0)) wire.close();
  });
  afterAll(() => server?.remove());

  it.each(cases)("answers %s", async (name, commands, resp2, resp3 = resp2) => {
    for (const [wire, want, keys] of [
      [open(), resp2, `${name} over RESP2`],
      [await openThird(), resp3, `${name} over RESP3`],
    ] as const) {
      const key = (word: string) => (/^[kh]$/.test(word) ? keys : word);
      const asked = commands.split("; ").map((command) => command.split(" ").map(key));
      expect(await wire.ask(...asked)).toBe(want);
    }
  });

  it.each(damaged)("says what is wrong with %j, and closes", async (bytes, said) => {
    const wire = open();
    wire.send(bytes);
    expect(await wire.until("nothing more")).toBe(`-ERR Protocol error: ${said}\r\n`);
  });

  it("takes commands in pieces, and passes over empty ones", async () => {
    const wire = open();
    for (const byte of `*0\r\n*-1\r\n${bytesOf(["set", "pieces", "v"])}`) {
      wire.send(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await wire.ask(["get", "pieces"])).toBe("+OK|$1|v|");
  });

  it("answers thousands of commands in their order", async () => {
    const commands = Array.from({ length: 5000 }, (_, i) => ["ping", String(i)]);
    const want = commands.map(([, text = ""]) => `$${text.length}|${text}|`).join("");
    expect(await open().ask(...commands)).toBe(want);
  });

  it("keeps any bytes, of any size up to some megabytes", async () => {
    const wire = open();
    const any = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join("");
    const large = any.repeat(5 * 4096);
    await wire.ask(["set", any, large], ["hset", `${any}h`, any, any]);
    wire.send(bytesOf(["get", any]) + bytesOf(["hgetall", `${any}h`]));
    const bulk = (text: string) => `$${text.length}\r\n${text}\r\n`;
    const want = `${bulk(large)}*2\r\n${bulk(any)}${bulk(any)}`;
    expect((await wire.until(`${bulk(any)}${bulk(any)}`)) === want).toBe(true);
  });

  it("forgets values after their time, and those only that were not written without one since", async () => {
    const wire = open();
    const limited = ["a", "b"].map((key) => ["set", `limited ${key}`, "v", "px", "20"]);
    await wire.ask(...limited, ["set", "limited b", "w"]);
    while ((await wire.ask(["get", "limited a"])) !== "$-1|") {}
    expect(await wire.ask(["get", "limited b"])).toBe("$1|w|");
  });

  it("drops values whose time is over and that nobody asks for", async () => {
    const wire = open();
    await wire.ask(["select", "9"], ["set", "k", "v", "px", "1"], ["set", "l", "v"]);
    while ((await wire.ask(["dbsize"])) !== ":1|") {}
    expect(await wire.ask(["get", "l"])).toBe("$1|v|");
  });

  it("tells all who listen to a channel, whatever their database and protocol", async () => {
    const [second, third, writer] = [open(), await openThird(), open()];
    await writer.ask(["select", "3"]);
    expect(await second.ask(["subscribe", "news"])).toBe("*3|$9|subscribe|$4|news|:1|");
    expect(await third.ask(["subscribe", "news", "other", "news"])).toBe(
      ">3|$9|subscribe|$4|news|:1|>3|$9|subscribe|$5|other|:2|>3|$9|subscribe|$4|news|:2|",
    );
    const asked = [
      ["publish", "news", "x"],
      ["publish", "other", "y"],
      ["publish", "new", "z"],
    ];
    expect(await writer.ask(...asked)).toBe(":2|:1|:0|");
    expect(await second.until("x\r\n")).toBe("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n");
    expect(await third.until("y\r\n")).toBe(
      ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n>3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\ny\r\n",
    );
    second.close();
    while ((await writer.ask(["publish", "news", "again"])) !== ":1|") {}
  });

  it("runs commands of who listens over RESP3 only", async () => {
    const [second, third] = [open(), await openThird()];
    await Promise.all([second, third].map((wire) => wire.ask(["subscribe", "own"])));
    const refused = (name: string) =>
      `-ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context|`;
    const asked = [["get", "none"], ["PUBLISH", "own", "x"], ["ping"]];
    expect(await second.ask(...asked)).toBe(
      `${refused("get")}${refused("publish")}*2|$4|pong|$0||`,
    );
    const own = await third.ask(["get", "none"], ["publish", "own", "x"]);
    expect(own).toBe("_|>3|$7|message|$3|own|$1|x|:2|");
  });

  it("leaves a listener that does not read", async () => {
    const [deaf, writer] = [open(), open()];
    await deaf.ask(["subscribe", "loud"]);
    deaf.pause();
    const megabyte = "x".repeat(2 ** 20);
    let told = 0;
    while ((await writer.ask(["publish", "loud", megabyte])) !== ":0|") told++;
    expect(told).toBeGreaterThan(30);
  });

  it("wants its password", async () => {
    const closed = await RedisServer.start(program, "--requirepass", "secret");
    try {
      const none = "-NOAUTH Authentication required.|";
      const wire = open(closed.port);
      wire.send(bytesOf(["hello", "3"]));
      expect(await wire.until("\r\n")).toMatch(
        /^-NOAUTH HELLO must be called with the client already/,
      );
      for (const [command, want] of [
        ["get k", none],
        ["ping", none],
        ["nope", "-ERR unknown command 'nope', with args beginning with: |"],
        ["auth wrong", wrongPassword],
        ["auth other secret", wrongPassword],
        ["hello 3 auth default wrong", wrongPassword],
        ["hello 3 auth default", "-ERR Syntax error in HELLO option 'auth'|"],
        ["auth secret", "+OK|"],
        ["get k", "$-1|"],
        ["auth default secret", "+OK|"],
      ] as const) {
        wire.send(bytesOf(command.split(" ")));
        expect((await wire.until("\r\n")).replaceAll("\r\n", "|")).toBe(want);
      }
      const other = open(closed.port);
      expect(await other.ask(["hello", "3", "AUTH", "default", "secret"])).toContain(
        "$5|proto|:3|",
      );
    } finally {
      await closed.remove();
    }
  });
});
