import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { HttpServer } from "@skald/transport";
import { uiRoutes } from "./ui-routes.js";

const folder = mkdtempSync(join(tmpdir(), "skald-ui-"));
const config = {
  ...{ version: "1.2.3", title: "site", multiTenant: true, patterns: false, deletes: true },
  ...{
    rules: true,
    parquet: false,
    targets: ["all"],
    links: [{ field: "trace_id", url: "https://t/{value}" }],
  },
};
const script = "export const x = 1;\n".repeat(200);
let server: HttpServer;
let base: string;

/** Asks without the compression that fetch undoes by itself. */
function ask(path: string, headers: Record<string, string> = {}) {
  const own = { "accept-encoding": "identity", ...headers };
  return fetch(base + path, { headers: own, redirect: "manual" });
}

function put(name: string, text: string): object {
  const bytes = Buffer.from(text);
  writeFileSync(join(folder, name), bytes);
  writeFileSync(join(folder, `${name}.br`), brotliCompressSync(bytes));
  writeFileSync(join(folder, `${name}.gz`), gzipSync(bytes));
  const type = name.endsWith(".html") ? "text/html; charset=utf-8" : "text/javascript";
  return { file: name, type, bytes: bytes.length, etag: `"${bytes.length}"` };
}

beforeAll(async () => {
  mkdirSync(join(folder, "assets"));
  const manifest = {
    "index.html": put("index.html", "<!doctype html><title>x</title>"),
    "assets/app-1.js": put("assets/app-1.js", script),
    screens: { first: ["index.html"] },
  };
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  server = new HttpServer({
    ...{ address: "127.0.0.1", port: 0, maxBodyBytes: 1000, compressResponses: true },
    ...{
      readTimeoutMs: 1000,
      readHeaderTimeoutMs: 1000,
      writeTimeoutMs: 1000,
      idleTimeoutMs: 1000,
    },
    ...{ gracefulShutdownMs: 0, maxConnections: 10, pathPrefix: "/logs" },
    rawRoutes: new Map(),
    routes: uiRoutes({ config, folder: pathToFileURL(`${folder}/`) }),
  });
  const port = await server.start();
  base = `http://127.0.0.1:${port}/logs`;
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("the web interface", () => {
  it.each(["/", "/ui"])("leads browsers from %s, and is not there for others", async (path) => {
    const found = await ask(path, { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    expect(found.status).toBe(302);
    expect(new URL(found.headers.get("location")!, base + path).pathname).toBe("/logs/ui/");
    const other = await ask(path, { accept: "*/*" });
    expect([other.status, await other.text()]).toEqual([404, "404 page not found\n"]);
  });

  it.each(["/ui/", "/ui/explore", "/ui/system"])(
    "%s is the page, with its policy",
    async (path) => {
      const found = await ask(path);
      expect(await found.text()).toContain("<!doctype html>");
      expect(Object.fromEntries(found.headers)).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-cache",
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
      });
      const etag = found.headers.get("etag")!;
      expect((await ask(path, { "if-none-match": etag })).status).toBe(304);
    },
  );

  it.each([
    ["br", "br, gzip", "br"],
    ["gzip", "gzip, br;q=0", "gzip"],
    ["nothing", "identity", null],
  ])("sends a file as it was compressed: %s", async (_, accept, encoding) => {
    const found = await ask("/ui/assets/app-1.js", { "accept-encoding": accept });
    expect(found.headers.get("content-encoding")).toBe(encoding);
    expect(found.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(found.headers.get("vary")).toBe("Accept-Encoding");
    // fetch has undone the one encoding that the answer has.
    expect(await found.text()).toBe(script);
    const length = Number(found.headers.get("content-length"));
    if (encoding === "br") expect(length).toBe(brotliCompressSync(Buffer.from(script)).length);
  });

  it.each(["none.js", "..%2Fmanifest.json", "%2e%2e%2findex.html", "__proto__", "app-1.js.br"])(
    "has no other files: %s",
    async (name) => {
      expect((await ask(`/ui/assets/${name}`)).status).toBe(404);
    },
  );

  it("says what the page shows", async () => {
    const found = await ask("/ui/config.json");
    expect(await found.json()).toEqual(config);
    expect(found.headers.get("cache-control")).toBe("no-cache");
  });

  it("says what to do where it was not built", async () => {
    const [, , page] = uiRoutes({ config, folder: pathToFileURL(`${folder}/none/`) });
    const answer = await page!.handler({ headers: {} } as never);
    expect(answer).toMatchObject({ status: 404 });
    expect(String(answer.body)).toContain("npm run build");
  });
});
