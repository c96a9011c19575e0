import { connect, type IncomingHttpHeaders } from "node:http2";
import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { methodsOf } from "./methods.js";
import { serveDeletes } from "./services.js";
import {
  connectTestGrpc,
  echo,
  type GrpcHandler,
  startTestGrpc,
  stopTestGrpc,
  testMethod,
} from "./testing/grpc.js";

const { signal } = new AbortController();
const same = (bytes: Buffer): Buffer => bytes;
const stops: (() => void)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) stop();
  await stopTestGrpc();
});

describe("any client", () => {
  async function open(fail?: SkaldError) {
    const handlers: Record<string, GrpcHandler> = {
      Echo: echo,
      Wait: () => new Promise(() => undefined),
      Fail: () => Promise.reject(fail),
    };
    const { server, address } = await startTestGrpc(handlers, {}, {}, Object.keys(handlers));
    serveDeletes(server, { active: async () => [] });
    const client = new Client(address, credentials.createInsecure());
    stops.push(() => client.close());
    return { client, address, server };
  }

  function ask(client: Client, path: string, request: Buffer, deadline = Number.POSITIVE_INFINITY) {
    return new Promise<{ answer?: Buffer; error?: ServiceError }>((resolve) => {
      const end = (error: ServiceError | null, answer?: Buffer) =>
        resolve({
          ...(error === null ? {} : { error }),
          ...(answer === undefined ? {} : { answer }),
        });
      client.makeUnaryRequest(path, same, same, request, { deadline }, end);
    });
  }

  it("is answered", async () => {
    const { client } = await open();
    const { answer } = await ask(client, "/skald.v1.Test/Echo", Buffer.from("hello"));
    expect(String(answer)).toBe("hello");
  });

  it("sees the status and the text of an error", async () => {
    const { client } = await open(new SkaldError("rate_limited", "slow down: 100 % ü"));
    const { error } = await ask(client, "/skald.v1.Test/Fail", Buffer.alloc(0));
    expect([error?.code, error?.details]).toEqual([
      status.RESOURCE_EXHAUSTED,
      "slow down: 100 % ü",
    ]);
  });

  it.each([
    ["a method that is not there", "/skald.v1.Test/None", Buffer.alloc(1), status.UNIMPLEMENTED],
    ["a damaged message", "/skald.v1.Deletes/Active", Buffer.from([0xff]), status.INVALID_ARGUMENT],
    ["another message", "/skald.v1.Deletes/Active", Buffer.from([8, 1]), status.INVALID_ARGUMENT],
  ])("that sends %s is refused", async (_name, path, request, code) => {
    const { client } = await open();
    const { error } = await ask(client, path, request);
    expect(error?.code).toBe(code);
  });

  it.each([
    ["a frame larger than any", [0, 0xff, 0xff, 0xff, 0xff, 1], status.RESOURCE_EXHAUSTED],
    ["half a frame", [0, 0, 0, 0, 9, 1], status.UNIMPLEMENTED],
    ["no frame", [], status.UNIMPLEMENTED],
    ["two messages for one", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], status.UNIMPLEMENTED],
    ["a frame in an encoding that it does not name", [1, 0, 0, 0, 1, 7], status.OK],
  ])("that sends %s gets an error, and others an answer", async (_name, frame, code) => {
    const { client, address } = await open();
    const session = connect(`http://${address}`);
    stops.push(() => session.destroy());
    session.on("error", () => undefined);
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/skald.v1.Test/Echo" },
      ...{ "content-type": "application/grpc", te: "trailers" },
    });
    const found = await new Promise<number>((resolve) => {
      const look = (headers: IncomingHttpHeaders) => {
        const code = headers["grpc-status"];
        if (code !== undefined) resolve(Number(code));
      };
      stream.on("response", look).on("trailers", look);
      stream.on("error", () => undefined).on("close", () => resolve(-1));
      stream.resume().end(Buffer.from(frame));
    });
    expect(found).toBe(code);
    const { answer } = await ask(client, "/skald.v1.Test/Echo", Buffer.from("x"));
    expect(String(answer)).toBe("x");
  });

  it("gets an end at its deadline", async () => {
    const { client } = await open();
    const wait = ask(client, "/skald.v1.Test/Wait", Buffer.alloc(1), Date.now() + 200);
    expect((await wait).error?.code).toBe(status.DEADLINE_EXCEEDED);
  });

  it("can watch the health", async () => {
    const { client, server } = await open();
    const empty = Buffer.alloc(0);
    const call = client.makeServerStreamRequest("/grpc.health.v1.Health/Watch", same, same, empty);
    const next = () => new Promise<Buffer>((resolve) => call.once("data", resolve));
    expect([...(await next())]).toEqual([0x08, 1]);
    const changed = next();
    server.setHealth("NOT_SERVING");
    expect([...(await changed)]).toEqual([0x08, 2]);
    call.on("error", () => undefined);
    call.cancel();
  });

  it.each([
    [true, 1],
    [false, status.UNIMPLEMENTED],
  ])("learns what can be called where reflection is %s", async (hasReflection, want) => {
    const { address } = await startTestGrpc({}, { hasReflection });
    const client = new Client(address, credentials.createInsecure());
    stops.push(() => client.close());
    const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    const call = client.makeBidiStreamRequest(path, same, same);
    const found = await new Promise<Buffer | number>((resolve) => {
      call.on("data", resolve);
      call.on("error", ({ code }: ServiceError) => resolve(code));
      // list_services: ""
      call.write(Buffer.from([0x3a, 0]));
    });
    call.cancel();
    if (typeof found === "number") expect(found).toBe(want);
    else expect(String(found).includes("skald.v1.Ingester")).toBe(want === 1);
  });
});

describe("any server", () => {
  async function open(
    handler: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => void,
  ) {
    const server = new Server();
    const method = {
      path: "/skald.v1.Test/Call",
      requestStream: false,
      responseStream: false,
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
  const call = testMethod("Call", false);
  const text = Buffer.from("hello");

  it("understands what is sent", async () => {
    const connection = await open((asked, callback) => callback(null, asked.request));
    expect(String(await connection.call(call, text, { signal }))).toBe("hello");
    const large = Buffer.alloc(3_000_000, "abc");
    expect(large.equals(await connection.call(call, large, { signal }))).toBe(true);
  });

  it("gives its errors", async () => {
    const connection = await open((_, callback) =>
      callback({ code: status.NOT_FOUND, details: "none ü" }),
    );
    const asked = connection.call(call, text, { signal });
    await expect(asked).rejects.toMatchObject({ code: "not_found" });
    await expect(asked).rejects.toThrow("none ü");
  });

  it("that does not answer as the schema says is at fault", async () => {
    const connection = await open((_, callback) => callback(null, Buffer.from([0xff])));
    const method = { ...methodsOf("Ingester").Changes, path: call.path };
    const asked = connection.call(method, { tenant: "a", spans: [] }, { signal });
    await expect(asked).rejects.toMatchObject({ code: "internal" });
  });

  it("whose answer has no part is no answer", async () => {
    const connection = await open((_, callback) => callback(null, Buffer.from([0x0a, 9, 0x61])));
    const asked = connection.call(testMethod("Call"), text, { signal });
    await expect(asked).rejects.toMatchObject({ code: "unavailable" });
  });
});
