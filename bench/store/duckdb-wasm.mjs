// DuckDB for WebAssembly under Node, with its own client of S3. It calls the bucket by XMLHttpRequest, as in a browser's worker, and waits for
// the answer: here another thread makes the request, and this one sleeps meanwhile.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  isMainThread,
  MessageChannel,
  receiveMessageOnPort,
  Worker,
  workerData,
} from "node:worker_threads";

/** The newest build on the npm registry that has the Parquet reader linked in, not as an extension to be downloaded. */
const npmPackage = "@malloydata/duckdb-wasm@0.0.6";
const requestTimeoutMs = 60_000;

if (!isMainThread) answerRequests(workerData);

/** Installs it into the folder, unless it is there, and answers where it is. */
export function installDuckDb(folder) {
  const dist = join(
    folder,
    "node_modules",
    npmPackage.slice(0, npmPackage.lastIndexOf("@")),
    "dist",
  );
  if (existsSync(dist)) return dist;
  writeFileSync(join(folder, "package.json"), "{}");
  const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", npmPackage];
  const { status, stderr } = spawnSync("npm", args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`npm cannot install ${npmPackage}: ${stderr}`);
  return dist;
}

/** Opens it over a bucket; `query` answers rows as arrays of texts. */
export async function openDuckDb(dist, { host, key, secret }) {
  const requests = new Requests();
  const db = await likeInBrowser(requests, async () => {
    const duckdb = await import(pathToFileURL(join(dist, "duckdb-browser-blocking.mjs")).href);
    const bundle = { mainModule: pathToFileURL(join(dist, "duckdb-eh.wasm")).href };
    const bundles = { mvp: bundle, eh: bundle };
    const made = await duckdb.createDuckDB(
      bundles,
      new duckdb.VoidLogger(),
      duckdb.BROWSER_RUNTIME,
    );
    return made.instantiate(() => {});
  });
  db.open({});
  const connection = db.connect();
  const query = (sql) =>
    connection
      .query(sql)
      .toArray()
      .map((row) => Object.values(row.toJSON()).map(String));
  query(`SET s3_endpoint = 'http://${host}'`);
  query("SET s3_region = 'us-east-1'");
  query(`SET s3_access_key_id = '${key}'`);
  query(`SET s3_secret_access_key = '${secret}'`);
  const version = query("SELECT version()")[0][0];
  return { version, query, close: () => requests.close() };
}

/** Runs something while this process looks like a browser's worker: that is what the package finds its own way by. */
async function likeInBrowser(requests, load) {
  const { fetch, Response } = globalThis;
  const versions = Object.getOwnPropertyDescriptor(process, "versions");
  const headers = { "content-type": "application/wasm" };
  globalThis.fetch = async ({ url }) => new Response(readFileSync(new URL(url)), { headers });
  // Fetch loads itself when it is first used, and wants to know its version of Node.
  await globalThis.fetch(new Request("file:///dev/null"));
  globalThis.self = globalThis;
  globalThis.importScripts = () => {};
  globalThis.location = { href: "file:///", origin: "null" };
  globalThis.XMLHttpRequest = requestClass(requests);
  Object.defineProperty(process, "versions", { value: {}, configurable: true });
  try {
    return await load();
  } finally {
    Object.defineProperty(process, "versions", versions);
    globalThis.fetch = fetch;
  }
}

/** As much of XMLHttpRequest as a synchronous request takes. */
function requestClass(requests) {
  return class {
    responseType = "";
    #call = { headers: {} };
    #answer;
    open(method, url) {
      this.#call = { method, url, headers: {} };
    }
    setRequestHeader(name, value) {
      this.#call.headers[name] = value;
    }
    send() {
      this.#answer = requests.send(this.#call);
    }
    getResponseHeader(name) {
      return this.#answer.headers[name.toLowerCase()] ?? null;
    }
    get status() {
      return this.#answer.status;
    }
    get statusText() {
      return "";
    }
    get response() {
      return this.#answer.body;
    }
  };
}

/** Requests of another thread, for which this one waits. */
class Requests {
  #done = new Int32Array(new SharedArrayBuffer(4));
  #port;
  #worker;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData = { port: port2, done: this.#done };
    this.#worker = new Worker(new URL(import.meta.url), { workerData, transferList: [port2] });
    this.#worker.unref();
  }

  send(call) {
    Atomics.store(this.#done, 0, 0);
    this.#port.postMessage(call);
    if (Atomics.wait(this.#done, 0, 0, requestTimeoutMs) === "timed-out")
      throw new Error(`no answer of ${call.url}`);
    return receiveMessageOnPort(this.#port).message;
  }

  async close() {
    this.#port.close();
    await this.#worker.terminate();
  }
}

function answerRequests({ port, done }) {
  port.on("message", async ({ method, url, headers }) => {
    const answer = await fetch(url, { method, headers }).then(
      async (got) => ({
        status: got.status,
        headers: Object.fromEntries(got.headers),
        body: await got.arrayBuffer(),
      }),
      () => ({ status: 0, headers: {}, body: new ArrayBuffer(0) }),
    );
    port.postMessage(answer, [answer.body]);
    Atomics.store(done, 0, 1);
    Atomics.notify(done, 0);
  });
}
