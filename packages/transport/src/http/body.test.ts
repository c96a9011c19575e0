import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { mock } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { until } from "@skald/testkit";
import { endResponse } from "./answer.js";
import { readAll, readBody } from "./body.js";
import { openWire } from "./testing/server.js";

const maxBytes = 100_000;
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Outcome = { readonly body: Buffer } | { readonly code: string; readonly message: string };

/** Answers with the length of each body, or its error; `outcomes` resolves with what the reader said, in order. */
async function serve(): Promise<{ port: number; next: () => Promise<Outcome> }> {
  const outcomes: Outcome[] = [];
  const waiting: ((outcome: Outcome) => void)[] = [];
  const server = createServer(async (request, response) => {
    const outcome = await readBody(request, maxBytes).then(
      (body): Outcome => ({ body: Buffer.from(body) }),
      (error: Error): Outcome => ({ code: errorCodeOf(error), message: error.message }),
    );
    const waiter = waiting.shift();
    if (waiter === undefined) outcomes.push(outcome);
    else waiter(outcome);
    response.statusCode = "body" in outcome ? 200 : 413;
    endResponse(response, Buffer.from("body" in outcome ? `${outcome.body.length}` : outcome.code));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const next = () =>
    new Promise<Outcome>((resolve) => {
      const outcome = outcomes.shift();
      if (outcome === undefined) waiting.push(resolve);
      else resolve(outcome);
    });
  return { port: (server.address() as AddressInfo).port, next };
}

const tooLarge = {
  code: "too_large",
  message: "request body too large: limit is 100000 bytes",
};
const cancelled = {
  code: "cancelled",
  message: "the request was cancelled by the client",
};

describe("endResponse", () => {
  it.each([
    [405, "content-length: 0\r\n"],
    [204, ""],
  ])("ends an answer of status %d without a body at once", async (status, length) => {
    const server = createServer((_request, response) => {
      response.sendDate = false;
      response.statusCode = status;
      endResponse(response);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const wire = await openWire((server.address() as AddressInfo).port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    await wire.until("\r\n\r\n");
    expect(wire.received().replace(/^.*\r\n/, "")).toBe(`${length}connection: close\r\n\r\n`);
    wire.socket.destroy();
  });
});

describe("the memory that a body arrives in is given back", () => {
  it.each([
    ["is read", 50_000, 200],
    ["is refused, and dropped", 1_000_000, 413],
  ])("when it %s", async (_, bytes, status) => {
    const chunks: Buffer[] = [];
    const server = createServer(async (request, response) => {
      const answer = readBody(request, maxBytes).then(
        () => 200,
        () => 413,
      );
      const watch = () => request.on("data", (chunk) => chunks.push(chunk));
      if (bytes <= maxBytes) watch();
      response.statusCode = await answer;
      endResponse(response);
      if (bytes > maxBytes) watch();
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const wire = await openWire((server.address() as AddressInfo).port);
    wire.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`);
    for (let sent = 0; sent < bytes; sent += 10_000) {
      wire.write("x".repeat(10_000));
      await nextTurn();
    }
    await wire.until(`HTTP/1.1 ${status}`);
    await until(() => chunks.length > 1 && chunks.every(({ length }) => length === 0));
    wire.socket.destroy();
  });
});

describe("readBody", () => {
  it.each([
    ["empty", ""],
    ["small", "hello"],
    ["of the limit", "x".repeat(maxBytes)],
  ])("reads a body that is %s, its length declared", async (_name, text) => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    expect(await next()).toEqual({ body: Buffer.from(text) });
    await wire.until(`\r\n\r\n${text.length}`);
    expect(wire.received()).not.toMatch(/connection: close/i);
    wire.socket.destroy();
  });

  it("puts chunks of every size together in order", async () => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    const sizes = [1, 2, 4095, 4096, 1, 5000, 3, 17_000, 100, 4095, 4095, 1];
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let sent = "";
    for (const [i, size] of sizes.entries()) {
      const text = String.fromCharCode(97 + i).repeat(size);
      sent += text;
      wire.write(`${size.toString(16)}\r\n${text}\r\n`);
    }
    wire.write("0\r\n\r\n");
    expect(await next()).toEqual({ body: Buffer.from(sent) });
    wire.socket.destroy();
  });

  it("takes a body in chunks of 32 bytes in little memory", async () => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.write(`${`20\r\n${"x".repeat(32)}\r\n`.repeat(maxBytes / 32)}0\r\n\r\n`);
    const outcome = (await next()) as { body: Buffer };
    expect(outcome.body.equals(Buffer.alloc(maxBytes, "x"))).toBe(true);
    wire.socket.destroy();
  });

  it("refuses a body in chunks of one byte soon", async () => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.write("1\r\nx\r\n".repeat(1025));
    expect(await next()).toEqual({
      code: "invalid_argument",
      message:
        "the request body arrives in too many pieces: after the first 64 they must have 16 bytes on average",
    });
    wire.socket.destroy();
  });

  it("leaves the rest of it unread, and cuts the connection after the answer", async () => {
    const { port } = await serve();
    const accepted = once(servers.at(-1)!, "connection") as Promise<[Socket]>;
    const begun = once(servers.at(-1)!, "request") as Promise<[unknown, ServerResponse]>;
    const wire = await openWire(port);
    const [socket] = await accepted;
    const piece = "1\r\nx\r\n";
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.write(piece.repeat(1000));
    const [, response] = await begun;
    await wire.until("invalid_argument");
    const { bytesRead } = socket;
    wire.write(piece.repeat(50_000));
    expect(await wire.closed()).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
    expect(socket.bytesRead).toBe(bytesRead);
    // It counts as answered, not as left.
    expect(response.writableFinished).toBe(true);
  });

  it.each([
    ["stops after its first MiB", 0, "unavailable"],
    ["arrives slowly after its first MiB", 300 * 1024, "unavailable"],
    ["keeps arriving", 330 * 1024, "read"],
  ])("watches a body that %s", async (_name, bytesInFiveSeconds, expected) => {
    mock.timers.enable({ apis: ["setInterval"] });
    try {
      const request = Object.assign(new PassThrough(), { headers: {}, complete: false });
      const body = readBody(request as unknown as IncomingMessage, 4 * 1024 * 1024);
      const outcome = body.then(() => "read", errorCodeOf);
      request.write(Buffer.alloc(1024 * 1024 + 1));
      for (let period = 0; period < 3; period++) {
        request.write(Buffer.alloc(bytesInFiveSeconds));
        await nextTurn();
        mock.timers.tick(5000);
      }
      request.end();
      expect(await outcome).toBe(expected);
    } finally {
      mock.timers.reset();
    }
  });

  describe("of a large declared length", () => {
    const declared = 4 * 1024 * 1024;
    const piece = (first: number) => Buffer.alloc(declared / 16, first);
    const read = () => {
      const headers = { "content-length": String(declared) };
      const request = Object.assign(new PassThrough(), { headers, complete: true });
      const taken: Uint8Array[] = [];
      const take = (length: number) => {
        taken.push(new Uint8Array(length));
        return taken.at(-1)!;
      };
      const body = readBody(request as unknown as IncomingMessage, 2 * declared, undefined, take);
      return { request, taken, body };
    };

    it("has memory once an eighth of it came, into which the rest goes as it comes", async () => {
      const { request, taken, body } = read();
      request.write(piece(0));
      await nextTurn();
      expect(taken).toEqual([]);
      for (let i = 1; i < 5; i++) request.write(piece(i));
      // Each piece is more than bodies take in one turn.
      for (let i = 1; i <= 5; i++) await nextTurn();
      expect(taken.map(({ length }) => length)).toEqual([declared]);
      expect([taken[0]![0], taken[0]!.indexOf(4)]).toEqual([0, declared / 4]);
      for (let i = 5; i < 16; i++) request.write(piece(i));
      request.end();
      const whole = Buffer.concat(Array.from({ length: 16 }, (_, i) => piece(i)));
      expect(whole.equals(await body)).toBe(true);
      expect(taken).toHaveLength(1);
    });

    it("is refused where more comes", async () => {
      const { request, body } = read();
      for (let i = 0; i < 16; i++) request.write(piece(i));
      request.end("x");
      await expect(body).rejects.toThrow("longer than its header content-length");
    });
  });

  it("refuses a declared length beyond the limit before a byte of it came", async () => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${maxBytes + 1}\r\n\r\n`);
    expect(await next()).toEqual(tooLarge);
    await wire.until("too_large");
    expect(wire.received()).toMatch(/^HTTP\/1\.1 413 /);
    expect(wire.received()).toMatch(/\r\nconnection: close\r\n/i);
    wire.socket.destroy();
  });

  it("refuses an undeclared length as soon as it is beyond the limit", async () => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    wire.write(`fffff\r\n${"x".repeat(maxBytes + 1)}`);
    expect(await next()).toEqual(tooLarge);
    await wire.until("too_large");
    wire.socket.destroy();
  });

  it.each([
    ["declared", "Content-Length: 4000000000", ""],
    ["undeclared", "Transfer-Encoding: chunked", "ffffffff\r\n"],
  ])("answers, then cuts a client that goes on sending a %s body", async (_name, header, start) => {
    const { port } = await serve();
    const wire = await openWire(port);
    let isClosed = false;
    wire.socket.once("close", () => {
      isClosed = true;
    });
    wire.write(`POST / HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${start}`);
    const flood = Buffer.alloc(64 * 1024, "x");
    const send = () => {
      while (!isClosed && wire.socket.write(flood));
      if (!isClosed) wire.socket.once("drain", send);
    };
    send();
    const text = await wire.closed();
    expect(text).toMatch(/^HTTP\/1\.1 413 [\s\S]*too_large$/);
  });

  it("serves the next request of a client that sent the rest of a refused one", async () => {
    const { port } = await serve();
    const wire = await openWire(port);
    wire.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${maxBytes + 1}\r\n\r\n`);
    await wire.until("too_large");
    wire.write("x".repeat(maxBytes + 1));
    expect(await wire.closed()).toMatch(/^HTTP\/1\.1 413 /);
    const again = await openWire(port);
    again.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    await again.until("\r\n\r\n1");
    again.socket.destroy();
  });

  it.each([
    ["orderly", (wire: { socket: { end(): void } }) => wire.socket.end()],
    [
      "by a reset",
      (wire: { socket: { resetAndDestroy(): void } }) => wire.socket.resetAndDestroy(),
    ],
  ])("is cancelled when the client leaves midway, %s", async (_name, leave) => {
    const { port, next } = await serve();
    const wire = await openWire(port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    leave(wire);
    expect(await next()).toEqual(cancelled);
    wire.socket.destroy();
  });

  it("is cancelled when the client has left already", async () => {
    const { port, next } = await serveAfterLeave();
    const wire = await openWire(port);
    wire.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    wire.socket.end();
    expect(await next).toEqual(cancelled);
    wire.socket.destroy();
  });
});

/** Reads the body only when the connection is gone. */
async function serveAfterLeave(): Promise<{ port: number; next: Promise<Outcome> }> {
  let tell: (outcome: Outcome) => void = () => undefined;
  const next = new Promise<Outcome>((resolve) => {
    tell = resolve;
  });
  const server = createServer((request) => {
    request.on("error", () => undefined);
    request.once("close", () => {
      readBody(request, maxBytes).then(
        (body) => tell({ body: Buffer.from(body) }),
        (error: Error) => tell({ code: errorCodeOf(error), message: error.message }),
      );
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, next };
}

describe("readAll", () => {
  it.each([
    ["announced", 64 * 65_536],
    ["other", 0],
  ])(
    "takes little of many large %s bodies in one turn of the event loop, and all of them in the end",
    async (_name, declared) => {
      const chunkBytes = 65_536;
      const [bodies, chunks] = [8, 64];
      await nextTurn();
      let turn = 0;
      const bytesOfTurn: number[] = [];
      const book = (bytes: number) => {
        bytesOfTurn[turn] = (bytesOfTurn[turn] ?? 0) + bytes;
      };
      const reads = Array.from({ length: bodies }, () => {
        const body = Readable.from(
          Array.from({ length: chunks }, () => Buffer.alloc(chunkBytes, 7)),
        );
        return readAll(body, { maxBytes: 1 << 23, declared, book, isWhole: () => true });
      });
      const all = Promise.all(reads);
      let isOver = false;
      void all.finally(() => {
        isOver = true;
      });
      for (; !isOver; turn++) await nextTurn();
      for (const { length } of await all) expect(length).toBe(chunks * chunkBytes);
      // A chunk of each body comes besides what has its turn, before it is counted and when it waits.
      const most = 128 * 1024 + 2 * bodies * chunkBytes;
      expect(Math.max(...bytesOfTurn.filter((bytes) => bytes !== undefined))).toBeLessThanOrEqual(
        most,
      );
    },
  );

  it.each([
    ["announced", 99_000_000],
    ["other", 0],
  ])(
    "gives the memory back that a large %s body arrives in, before any part of it has a place in the end",
    async (_name, declared) => {
      const taken: number[] = [];
      const take = (length: number) => {
        taken.push(length);
        return Buffer.alloc(length);
      };
      const chunks = Array.from({ length: 40 }, (_, i) => Buffer.alloc(65_536, i));
      const stream = new PassThrough();
      const body = readAll(stream, { maxBytes: 1e8, declared, take, isWhole: () => true });
      for (const chunk of chunks) {
        stream.write(chunk);
        await nextTurn();
      }
      expect(chunks.map(({ length }) => length)).toEqual([65_536, ...Array(39).fill(0)]);
      expect(taken).toEqual([]);
      stream.end();
      const expected = Buffer.concat(Array.from({ length: 40 }, (_, i) => Buffer.alloc(65_536, i)));
      expect(expected.equals(await body)).toBe(true);
    },
  );

  it("has memory of its own for a body once an eighth of it is there", async () => {
    const taken: [arrived: number, length: number][] = [];
    let arrived = 0;
    const take = (length: number) => {
      taken.push([arrived, length]);
      return Buffer.alloc(length);
    };
    const book = (bytes: number) => {
      arrived += bytes;
    };
    const sizes = [1000, 70_000, 100, 200_000, 65_536, 3, 1_200_000, 65_536, 65_536];
    const parts = sizes.map((size, i) => Buffer.alloc(size, i + 1));
    const expected = Buffer.concat(parts);
    const declared = expected.length;
    const isWhole = () => true;
    const body = await readAll(Readable.from(parts), {
      maxBytes: 1e8,
      declared,
      book,
      take,
      isWhole,
    });
    expect(expected.equals(body)).toBe(true);
    expect(taken).toEqual([[271_100, declared]]);
    expect(271_100 - 200_000).toBeLessThan(declared / 8);
  });
});
