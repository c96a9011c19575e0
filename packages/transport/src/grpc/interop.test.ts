import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { connectTestGrpc, startTestGrpc, stopTestGrpc } from "./testing/grpc.js";

// The library that others use for gRPC, at either end.

const { signal } = new AbortController();
const same = (bytes: Buffer): Buffer => bytes;
const stops: (() => void)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) stop();
  await stopTestGrpc();
});

/** A piece that is a message of its own, of less than 100 bytes. */
function pieceOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x10, bytes.length, 0x0a, bytes.length]), bytes]);
}

function hello(): Metadata {
  const metadata = new Metadata();
  metadata.set("skald-protocol", "1");
  return metadata;
}

describe("a client of another kind", () => {
  async function open(fail?: SkaldError): Promise<Client> {
    const { address } = await startTestGrpc({
      Echo: async (request) => [request],
      Wait: () => new Promise(() => undefined),
      Fail: () => Promise.reject(fail),
    });
    const client = new Client(address, credentials.createInsecure());
    stops.push(() => client.close());
    return client;
  }

  function exchange(client: Client, path: string, pieces: readonly Buffer[], deadline?: number) {
    return new Promise<{ answer: Buffer; error?: ServiceError }>((resolve) => {
      const options = deadline === undefined ? {} : { deadline };
      const call = client.makeBidiStreamRequest(path, same, same, hello(), options);
      const frames: Buffer[] = [];
      call.on("data", (frame: Buffer) => frames.push(frame));
      call.on("error", (error: ServiceError) => resolve({ answer: Buffer.concat(frames), error }));
      call.on("end", () => resolve({ answer: Buffer.concat(frames) }));
      for (const piece of pieces) call.write(piece);
      call.end();
    });
  }

  it("is answered", async () => {
    const client = await open();
    const { answer } = await exchange(client, "/test.Test/Echo", [pieceOf("hello")]);
    expect(answer.equals(pieceOf("hello"))).toBe(true);
  });

  it("sees the status and the text of an error", async () => {
    const client = await open(new SkaldError("rate_limited", "slow down: 100 % ü"));
    const { error } = await exchange(client, "/test.Test/Fail", [pieceOf("x")]);
    expect([error?.code, error?.details]).toEqual([
      status.RESOURCE_EXHAUSTED,
      "slow down: 100 % ü",
    ]);
  });

  it.each([
    ["a method that is not there", "/test.Test/None", [pieceOf("x")], status.UNIMPLEMENTED],
    ["half a message", "/test.Test/Echo", [Buffer.from([0x10, 9, 0x0a, 1, 0x61])], 3],
    ["no protobuf", "/test.Test/Echo", [Buffer.from([0xff])], status.INVALID_ARGUMENT],
    ["no message", "/test.Test/Echo", [], status.INVALID_ARGUMENT],
    ["a frame that is too large", "/test.Test/Echo", [Buffer.alloc(300_000)], status.OUT_OF_RANGE],
  ])("that sends %s is refused", async (_name, path, pieces, code) => {
    const { error } = await exchange(await open(), path, pieces);
    expect(error?.code).toBe(code);
  });

  it("gets an end at its deadline", async () => {
    const { error } = await exchange(
      await open(),
      "/test.Test/Wait",
      [pieceOf("x")],
      Date.now() + 200,
    );
    expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
  });

  it("can watch the health", async () => {
    const { server, address } = await startTestGrpc({});
    const client = new Client(address, credentials.createInsecure());
    stops.push(() => client.close());
    const empty = Buffer.alloc(0);
    const call = client.makeServerStreamRequest("/grpc.health.v1.Health/Watch", same, same, empty);
    const next = () => new Promise<Buffer>((resolve) => call.once("data", resolve));
    expect([...(await next())]).toEqual([0x08, 1]);
    const changed = next();
    server.setHealth("not_serving");
    expect([...(await changed)]).toEqual([0x08, 2]);
    call.on("error", () => undefined);
    call.cancel();
  });
});

describe("a server of another kind", () => {
  async function open(handler: (stream: ServerDuplexStream<Buffer, Buffer>) => void) {
    const server = new Server();
    const method = {
      path: "/test.Test/Call",
      requestStream: true,
      responseStream: true,
      requestSerialize: same,
      requestDeserialize: same,
      responseSerialize: same,
      responseDeserialize: same,
    };
    server.addService({ Call: method }, { Call: handler });
    stops.push(() => server.forceShutdown());
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    return connectTestGrpc(`127.0.0.1:${port}`);
  }
  const text = [Buffer.from("hello")];

  it("understands what is sent", async () => {
    const connection = await open((stream) => {
      stream.sendMetadata(hello());
      stream.on("data", (frame) => stream.write(frame));
      stream.on("end", () => stream.end());
    });
    const answer = await connection.call("/test.Test/Call", text, { signal });
    expect(Buffer.from(answer).toString()).toBe("hello");
    const large = Buffer.alloc(3_000_000, "abc");
    expect(large.equals(await connection.call("/test.Test/Call", [large], { signal }))).toBe(true);
  });

  it("gives its errors", async () => {
    const connection = await open((stream) => {
      stream.sendMetadata(hello());
      stream.emit("error", { code: status.NOT_FOUND, details: "none ü" });
    });
    const asked = connection.call("/test.Test/Call", text, { signal });
    await expect(asked).rejects.toMatchObject({ code: "not_found" });
    await expect(asked).rejects.toThrow("none ü");
  });

  it("that speaks no protocol of ours is told apart", async () => {
    const connection = await open((stream) => {
      stream.write(pieceOf("x"));
      stream.end();
    });
    const asked = connection.call("/test.Test/Call", text, { signal });
    await expect(asked).rejects.toThrow(/no protocol of ours/);
  });

  it("whose answer is not whole is no answer", async () => {
    const connection = await open((stream) => {
      stream.sendMetadata(hello());
      stream.write(Buffer.from([0x10, 9, 0x0a, 1, 0x61]));
      stream.end();
    });
    const asked = connection.call("/test.Test/Call", text, { signal });
    await expect(asked).rejects.toMatchObject({ code: "unavailable" });
  });
});
