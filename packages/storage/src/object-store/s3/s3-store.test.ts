import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { type FaultKind, S3Server, testCertificate } from "@skald/testkit";
import { describeObjectStore } from "../../testing/object-store.suite.js";
import type { S3Options, S3Try } from "./calls.js";
import { S3Store, type S3StoreDeps } from "./s3-store.js";

const directory = mkdtempSync(join(tmpdir(), "skald-s3-store-"));
const server = new S3Server();
const { signal } = new AbortController();
const stores: S3Store[] = [];
beforeAll(() => server.open());
beforeEach(() => server.clear());
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server.close();
  rmSync(directory, { recursive: true });
});

function makeStore(options: Partial<S3Options> = {}, deps: S3StoreDeps = {}): S3Store {
  const store = new S3Store(
    {
      bucket: server.bucket,
      region: "us-east-1",
      endpoint: server.url,
      pathStyle: true,
      credentials: { accessKeyId: server.accessKeyId, secretAccessKey: "secret" },
      ...options,
    },
    { sleep: async () => {}, ...deps },
  );
  stores.push(store);
  return store;
}

describeObjectStore("s3 store", async () => ({ store: makeStore(), directory }));
describeObjectStore("s3 store in a folder, listed in small pages", async () => {
  server.maxKeys = 2;
  return { store: makeStore({ folder: "some/folder/" }), directory };
});
describeObjectStore("s3 store without a conditional put", async () => {
  server.condition = "ignored";
  return { store: makeStore(), directory };
});

// A bucket that may be written to: `s3://key:secret@host:port/bucket`, spoken to by HTTP. bench/swift.mjs makes one.
const real = /^s3:\/\/([^:]+):([^@]+)@([^/]+)\/(.+)$/.exec(process.env.SKALD_TEST_S3 ?? "");
if (real !== null) {
  const [, key = "", secret = "", host = "", bucket = ""] = real;
  const options = {
    bucket,
    endpoint: `http://${host}`,
    credentials: { accessKeyId: decodeURIComponent(key), secretAccessKey: secret },
  };
  const fallbacks: string[] = [];
  beforeAll(() => makeBucket(options));
  afterAll(() => {
    process.stderr.write(`real server at ${host}: ${fallbacks[0] ?? "has conditional puts"}\n`);
  });
  const make = (more: Partial<S3Options> = {}) =>
    makeStore(
      { ...options, folder: `${randomUUID()}/`, ...more },
      { onFallback: (why) => fallbacks.push(why) },
    );
  describeObjectStore(`real server at ${host}`, async () => ({ store: make(), directory }));
  it("real server: takes a large file in parts", async () => {
    const path = join(directory, "parts");
    const body = Buffer.alloc(21 * 1024 * 1024 + 5, "abcdefghijk-");
    writeFileSync(path, body);
    const store = make();
    expect(await store.putFile("large", path, { signal, ifAbsent: true })).toBe("stored");
    expect(await store.putFile("large", path, { signal, ifAbsent: true })).toBe("exists");
    expect(Buffer.compare(await store.get("large", { signal }), body)).toBe(0);
    expect(await store.stat("large", { signal })).toMatchObject({ sizeBytes: body.byteLength });
  });
}

async function makeBucket({
  bucket,
  ...place
}: Pick<S3Options, "bucket" | "endpoint" | "credentials">) {
  const { S3Client, CreateBucketCommand } = await import("@aws-sdk/client-s3");
  const client = new S3Client({ ...place, region: "us-east-1", forcePathStyle: true } as never);
  await client.send(new CreateBucketCommand({ Bucket: bucket })).catch((error: Error) => {
    if (!/^BucketAlready/.test(error.name)) throw error;
  });
  client.destroy();
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error("the call succeeded");
}

const slowDown: FaultKind = { kind: "status", status: 503, code: "SlowDown" };
const broken: FaultKind = { kind: "status", status: 500, code: "InternalError" };

describe("tries", () => {
  it.each<[string, FaultKind]>([
    ["a store that is busy", slowDown],
    ["an internal error", broken],
    ["an answer that is lost", { kind: "lost" }],
    ["a body that is cut", { kind: "cut" }],
    ["too many requests", { kind: "status", status: 429, code: "TooManyRequests" }],
  ])("go on after %s", async (_, fault) => {
    const store = makeStore();
    await store.put("a", Buffer.from("body of an object"), { signal });
    server.faults.push({ fault, times: 2 });
    expect(Buffer.from(await store.get("a", { signal })).toString()).toBe("body of an object");
    server.faults.push({ fault, times: 2 });
    const range = { offset: 8, length: 9 };
    expect(Buffer.from(await store.getRange("a", range, { signal })).toString()).toBe("an object");
  });

  it("end, with the time after which to ask again", async () => {
    const pauses: number[] = [];
    const sleep = async (ms: number) => void pauses.push(ms);
    const store = makeStore(
      { retry: { minBackoffMs: 100, maxBackoffMs: 300, maxRetries: 3 } },
      { sleep },
    );
    server.faults.push({ fault: slowDown });
    expect(await failureOf(store.get("a/b", { signal }))).toMatchObject({
      code: "unavailable",
      retryAfterSeconds: 1,
      message:
        "object a/b cannot be reached in s3://logs/: 503 SlowDown: the test server says SlowDown",
    });
    expect(server.seen).toHaveLength(4);
    for (const [at, full] of [100, 200, 300].entries()) {
      expect(pauses[at]).toBeGreaterThanOrEqual(full / 2);
      expect(pauses[at]).toBeLessThanOrEqual(full);
    }
  });

  it("wait as long as the store says, or leave that to whoever asked", async () => {
    const pauses: number[] = [];
    const store = makeStore({}, { sleep: async (ms) => void pauses.push(ms) });
    server.faults.push({ fault: { ...slowDown, retryAfter: 2 } as FaultKind, times: 1 });
    await store.put("a", Buffer.from("a"), { signal });
    expect(pauses).toEqual([2000]);
    server.faults.push({ fault: { ...slowDown, retryAfter: 60 } as FaultKind, times: 1 });
    const error = await failureOf(store.get("a", { signal }));
    expect(error).toMatchObject({ code: "unavailable", retryAfterSeconds: 60 });
  });

  it("have a time limit each", async () => {
    server.faults.push({ fault: { kind: "hang" }, times: 1 });
    const store = makeStore({ tryTimeoutMs: 200 });
    expect(errorCodeOf(await failureOf(store.get("a", { signal })))).toBe("not_found");
    expect(server.seen).toHaveLength(2);
  });

  it("end at once on an abort", async () => {
    server.faults.push({ fault: { kind: "hang" } });
    const abort = new AbortController();
    const call = failureOf(makeStore().get("a", { signal: abort.signal }));
    while (server.seen.length === 0) await new Promise(setImmediate);
    const reason = new Error("enough");
    abort.abort(reason);
    expect(await call).toBe(reason);
  });

  it.each([
    [403, "AccessDenied"],
    [403, "SignatureDoesNotMatch"],
    [404, "NoSuchBucket"],
    [400, "InvalidRequest"],
  ])("are not repeated after %d %s", async (status, code) => {
    server.faults.push({ fault: { kind: "status", status, code } });
    const store = makeStore();
    for (const call of [store.get("a", { signal }), store.put("a", Buffer.from("a"), { signal })]) {
      const error = await failureOf(call);
      expect(error).toMatchObject({ code: "unavailable", retryAfterSeconds: undefined });
      expect((error as Error).message).toContain(code);
    }
    expect(server.seen).toHaveLength(2);
  });

  it("are reported with their bytes", async () => {
    const tries: S3Try[] = [];
    const store = makeStore({ onTry: (report) => tries.push(report) });
    await store.put("a", Buffer.from("12345"), { signal });
    server.faults.push({ fault: broken, times: 1 });
    await store.getRange("a", { offset: 1, length: 3 }, { signal });
    await failureOf(store.stat("b", { signal }));
    expect(tries.map(({ seconds: _, ...rest }) => rest)).toEqual([
      { operation: "upload", status: 200, failed: false, sentBytes: 5, receivedBytes: 0 },
      { operation: "get_range", status: 500, failed: true, sentBytes: 0, receivedBytes: 0 },
      { operation: "get_range", status: 200, failed: false, sentBytes: 0, receivedBytes: 3 },
      { operation: "attributes", status: 404, failed: false, sentBytes: 0, receivedBytes: 0 },
    ]);
  });
});

describe("large files", () => {
  const MiB = 1024 * 1024;
  const path = join(directory, "large");
  const body = Buffer.alloc(20 * MiB + 17, "0123456789abcdef-");
  beforeAll(() => writeFileSync(path, body));
  const isPart = ({ query }: { query: URLSearchParams }) => query.has("partNumber");

  it("are sent in parts", async () => {
    const store = makeStore({ encryption: { kind: "SSE-S3" } });
    server.faults.push({ fault: broken, when: isPart, times: 2 });
    expect(await store.putFile("large", path, { signal })).toBe("stored");
    const stored = server.object("large");
    expect(Buffer.compare(stored?.body as Uint8Array, body)).toBe(0);
    expect(stored?.metadata["x-amz-server-side-encryption"]).toBe("AES256");
    expect(server.seen.filter(isPart)).toHaveLength(5);
    expect(await store.putFile("large", path, { signal, ifAbsent: true })).toBe("exists");
    expect(server.openUploads).toBe(0);
  });

  it("leave nothing behind when a part fails for good", async () => {
    const last = ({ query }: { query: URLSearchParams }) => query.get("partNumber") === "3";
    server.faults.push({ fault: broken, when: last });
    const error = await failureOf(makeStore().putFile("large", path, { signal }));
    expect(errorCodeOf(error)).toBe("unavailable");
    expect([server.keys, server.openUploads]).toEqual([[], 0]);
  });

  it("leave nothing behind on an abort", async () => {
    server.faults.push({ fault: { kind: "hang" }, when: isPart });
    const abort = new AbortController();
    const call = failureOf(makeStore().putFile("large", path, { signal: abort.signal }));
    while (!server.seen.some(isPart)) await new Promise(setImmediate);
    abort.abort();
    expect(await call).toBe(abort.signal.reason);
    expect([server.keys, server.openUploads]).toEqual([[], 0]);
  });

  it("are stored once when the answer to the last call is lost", async () => {
    const isEnd = ({ method, query }: { method: string; query: URLSearchParams }) =>
      method === "POST" && query.has("uploadId");
    server.faults.push({ fault: { kind: "lost" }, when: isEnd, times: 1 });
    const options = { signal, ifAbsent: true };
    expect(await makeStore().putFile("large", path, options)).toBe("stored");
    expect(server.keys).toEqual(["large"]);
  });
});

describe("conditional puts", () => {
  const options = { signal, ifAbsent: true };

  it.each<[string, FaultKind, boolean]>([
    ["the first answer was lost", { kind: "lost" }, true],
    ["a proxy sent the request twice", { kind: "twice" }, true],
    ["the first answer was lost and metadata are not kept", { kind: "lost" }, false],
    ["a proxy sent the request twice and metadata are not kept", { kind: "twice" }, false],
  ])("know their own object when %s", async (_, fault, keepsMetadata) => {
    const store = makeStore();
    await store.put("probe", Buffer.from("x"), options);
    server.keepsMetadata = keepsMetadata;
    server.faults.push({ fault, times: 1 });
    expect(await store.put("a", Buffer.from("mine"), options)).toBe("stored");
    for (const again of [broken, fault]) {
      server.faults.push({ fault: again, times: 1 });
      expect(await store.put("a", Buffer.from("another's"), options)).toBe("exists");
    }
    expect(Buffer.from(server.object("a")?.body as Uint8Array).toString()).toBe("mine");
  });

  it("know the object of another writer by its metadata, though the bytes are equal", async () => {
    const put = () => makeStore().put("a", Buffer.from("same"), options);
    expect(await put()).toBe("stored");
    server.faults.push({ fault: broken, times: 1 });
    expect(await put()).toBe("exists");
  });

  it.each(["ignored", "unsupported", "always refused"] as const)(
    "do without a condition that is %s",
    async (condition) => {
      server.condition = condition;
      const why: string[] = [];
      const store = makeStore({}, { onFallback: (text) => why.push(text) });
      expect(await store.put("a", Buffer.from("first"), options)).toBe("stored");
      expect(await store.put("a", Buffer.from("second"), options)).toBe("exists");
      expect(Buffer.from(server.object("a")?.body as Uint8Array).toString()).toBe("first");
      expect(server.keys).toEqual(["a"]);
      expect(why).toHaveLength(1);
    },
  );

  it("ask again what the bucket can when it did not answer", async () => {
    const store = makeStore({ retry: { minBackoffMs: 1, maxBackoffMs: 1, maxRetries: 0 } });
    server.faults.push({ fault: broken, times: 1 });
    expect(errorCodeOf(await failureOf(store.put("a", Buffer.from("a"), options)))).toBe(
      "unavailable",
    );
    expect(await store.put("a", Buffer.from("a"), options)).toBe("stored");
    expect(server.keys).toEqual(["a"]);
  });
});

it("puts what it is told about encryption and class into its requests", async () => {
  const encryption = { kind: "SSE-KMS", keyId: "key-1", context: '{"a":"b"}' } as const;
  const store = makeStore({ encryption, storageClass: "STANDARD_IA" });
  await store.put("a", Buffer.from("a"), { signal });
  expect(server.object("a")?.metadata).toMatchObject({
    "x-amz-server-side-encryption": "aws:kms",
    "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
    "x-amz-server-side-encryption-context": Buffer.from('{"a":"b"}').toString("base64"),
    "x-amz-storage-class": "STANDARD_IA",
  });
});

describe("credentials", () => {
  const names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE"];
  afterEach(() => {
    for (const name of names) delete process.env[name];
  });
  const put = () => makeStore({ credentials: undefined }).put("a", Buffer.from("a"), { signal });

  it("come from the environment", async () => {
    process.env.AWS_ACCESS_KEY_ID = server.accessKeyId;
    process.env.AWS_SECRET_ACCESS_KEY = "secret";
    expect(await put()).toBe("stored");
  });

  it("come from a file", async () => {
    const path = join(directory, "credentials");
    const lines = [
      "[default]",
      `aws_access_key_id=${server.accessKeyId}`,
      "aws_secret_access_key=s",
    ];
    writeFileSync(path, lines.join("\n"));
    process.env.AWS_SHARED_CREDENTIALS_FILE = path;
    expect(await put()).toBe("stored");
  });

  it("that are wrong are told", async () => {
    process.env.AWS_ACCESS_KEY_ID = "other";
    process.env.AWS_SECRET_ACCESS_KEY = "secret";
    expect(await failureOf(put())).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("403 InvalidAccessKeyId"),
    });
  });

  it("of a session have their token sent", async () => {
    const credentials = {
      accessKeyId: server.accessKeyId,
      secretAccessKey: "s",
      sessionToken: "t",
    };
    await makeStore({ credentials }).put("a", Buffer.from("a"), { signal });
    expect(server.seen[0]?.headers["x-amz-security-token"]).toBe("t");
  });
});

describe("certificates", () => {
  const secure = new S3Server({ tls: testCertificate });
  beforeAll(() => secure.open());
  afterAll(() => secure.close());
  const retry = { minBackoffMs: 1, maxBackoffMs: 1, maxRetries: 0 };
  // The library treats a body of this size in another way.
  const body = Buffer.alloc(3 * 1024 * 1024);
  const put = (options: Partial<S3Options>) =>
    makeStore({ endpoint: secure.url, retry, ...options }).put("a", body, { signal });

  it("are looked at", async () => {
    const failure = await failureOf(put({}));
    expect(failure).toMatchObject({ code: "unavailable" });
    expect((failure as Error).message).toMatch(/self.signed certificate/);
  });

  it("of an own authority are trusted", async () => {
    expect(await put({ ca: testCertificate.cert })).toBe("stored");
  });

  it("are not looked at where that is wanted", async () => {
    expect(await put({ insecureSkipVerify: true })).toBe("stored");
  });

  it("tell who speaks plain HTTP", async () => {
    const failure = await failureOf(put({ endpoint: server.url.replace("http:", "https:") }));
    expect((failure as Error).message).toContain("set insecure: true");
  });
});

it("sees what a late listing shows in the end", async () => {
  const store = makeStore();
  server.listingsLate = 1;
  await store.put("a", Buffer.from("a"), { signal });
  const list = async () => {
    const keys: string[] = [];
    for await (const { key } of store.list("", { signal })) keys.push(key);
    return keys;
  };
  expect(await list()).toEqual([]);
  expect(await list()).toEqual(["a"]);
});
