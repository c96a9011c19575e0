import { readdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@skald/testkit";
import { readText, root } from "../testing/deploy/repository.js";
import { makeFolder, removeFolders, runProgram, startServer } from "../testing/server.js";

const closing: (() => void)[] = [];

afterAll(async () => {
  for (const close of closing) close();
  await removeFolders();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe("what goes into the image", () => {
  const folder = makeFolder();
  const fromBundle = (...names: string[]) => names.map((name) => `packages/skald/bundle/${name}`);
  const main = join(folder, "packages/skald/bundle/main.js");
  let files: string[] = [];

  beforeAll(async () => {
    const done = await runProgram(join(root, "deploy/docker/assemble.mjs"), [folder]);
    expect(done).toMatchObject({ code: 0, stderr: "" });
    files = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  });

  it("has no tests, sources, benchmarks or build tools", () => {
    const unwanted =
      /\.test\.[cm]?js$|\.ts$|^packages\/[^/]+\/(src|bench|testdata)\/|\/testing\/|^packages\/(test|testkit)\/|\/(jest|typescript|assemblyscript|@biomejs)\//;
    expect(files.filter((file) => unwanted.test(file))).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining(["LICENSE", ...fromBundle("main.js", "worker.js", "LICENSES.txt")]),
    );
  });

  it("runs where nothing else is", async () => {
    const done = await runProgram(main, ["-version"], { cwd: folder });
    expect(done).toMatchObject({ code: 0 });
    const verified = await runProgram(main, [
      "-verify-config",
      `-config.file=${join(root, "deploy/docker/local-config.yaml")}`,
    ]);
    expect(verified).toMatchObject({ code: 0 });
  });

  it("loads the store of a bucket, which is asked for late", async () => {
    const flags = ["-s3.endpoint=http://127.0.0.1:1", "-s3.max-retries=1"];
    const keys = ["-s3.access-key-id=a", "-s3.secret-access-key=b"];
    const done = await runProgram(main, ["verify", "s3://logs", ...flags, ...keys]);
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining("ECONNREFUSED") });
  });
});

describe("the Dockerfile", () => {
  const lines = readText("Dockerfile").split("\n");

  it("ends in a stage that is no builder, with a user, a volume and a check of health", () => {
    const last = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));
    expect(last[0]).not.toContain(" AS ");
    const text = last.join("\n");
    expect(text).toMatch(/^USER 10001:10001$/m);
    expect(text).toMatch(/^ENV MALLOC_MMAP_THRESHOLD_=131072$/m);
    expect(text).toMatch(/^ENTRYPOINT \[.*"--max-semi-space-size=16", /m);
    expect(text).toMatch(/^VOLUME \/var\/loki$/m);
    expect(text).toMatch(/^HEALTHCHECK .*\/app\/health\.mjs/m);
    expect(text).not.toMatch(/^RUN /m);
  });

  it("copies files that are there, and that .dockerignore lets through", () => {
    const ignored = readText(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const copied = lines
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
      .flatMap((line) => line.split(" ").slice(1, -1))
      .filter((path) => path !== ".");
    for (const path of copied) {
      expect(readText(path)).not.toBe("");
      expect(ignored.filter((one) => path.startsWith(one))).toEqual([]);
    }
    expect(copied.length).toBeGreaterThan(2);
  });
});

describe("health.mjs", () => {
  const check = (url: string) =>
    runProgram(join(root, "deploy/docker/health.mjs"), [], { env: { SKALD_READY_URL: url } });

  it("tells a ready process from one that is not, and from none", async () => {
    const server = await startServer(makeFolder());
    expect(await check(`${server.url}/ready`)).toMatchObject({ code: 0 });
    expect(await check(`${server.url}/nothing`)).toMatchObject({ code: 1 });
    await server.kill("SIGTERM");
    expect(await check(`${server.url}/ready`)).toMatchObject({ code: 1 });
  });
});

describe("prepare-shutdown.mjs", () => {
  const authority = new TestAuthority("cluster");
  const account = makeFolder();
  const data = makeFolder();
  const asked: string[] = [];
  let isSet = false;
  let apiPort = 0;
  let ingesterPort = 0;

  beforeAll(async () => {
    for (const [file, text] of [
      ["ca.crt", authority.cert],
      ["token", "secret"],
      ["namespace", "logs"],
    ] as const)
      writeFileSync(join(account, file), text);
    const api = createTlsServer(authority.issue("127.0.0.1"), ({ url, headers }, response) => {
      asked.push(`${url} ${headers.authorization}`);
      response.statusCode = url?.includes("/statefulsets/ingester/") ? 200 : 403;
      response.end(JSON.stringify({ spec: { replicas: 3 } }));
    });
    apiPort = await listen(api);
    ingesterPort = await listen(
      createServer(({ method, url }, response) => {
        if (method !== "GET") {
          asked.push(`${method} ${url}`);
          isSet = method === "POST";
        }
        response.end(isSet ? "set\n" : "unset\n");
      }),
    );
  });

  async function run(pod: string, more: Record<string, string> = {}): Promise<string[]> {
    asked.length = 0;
    const env = {
      POD_NAME: pod,
      SKALD_ACCOUNT_FOLDER: account,
      SKALD_DATA_FOLDER: data,
      SKALD_URL: `http://127.0.0.1:${ingesterPort}`,
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: String(apiPort),
      ...more,
    };
    const done = await runProgram(join(root, "deploy/docker/prepare-shutdown.mjs"), [], { env });
    expect(done).toMatchObject({ code: 0 });
    return [...asked];
  }

  it("prepares the end of a pod for which the set has no room any more", async () => {
    expect(await run("ingester-3")).toEqual([
      "/apis/apps/v1/namespaces/logs/statefulsets/ingester/scale Bearer secret",
      "POST /ingester/prepare_shutdown",
    ]);
  });

  it("undoes what it asked itself when the pod will come back after all", async () => {
    expect((await run("ingester-2")).at(-1)).toBe("DELETE /ingester/prepare_shutdown");
  });

  it("lets a pod that will come back end as it is, also when an operator prepared its end", async () => {
    const [, ...others] = await run("ingester-2");
    expect(others).toEqual([]);
    isSet = true;
    const [, ...more] = await run("ingester-2");
    expect([more, isSet]).toEqual([[], true]);
    isSet = false;
  });

  it("prepares when it cannot ask", async () => {
    const post = "POST /ingester/prepare_shutdown";
    expect((await run("other-0")).at(-1)).toBe(post);
    isSet = false;
    expect(await run("ingester-0", { KUBERNETES_SERVICE_PORT: "1" })).toEqual([post]);
    isSet = false;
    expect(await run("none")).toEqual([post]);
  });
});
