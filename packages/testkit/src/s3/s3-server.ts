import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { Buckets, type StoredObject } from "./buckets.js";
import { checkSignature } from "./signature.js";
import { attribute, completeXml, createXml, errorXml, listXml } from "./xml.js";

export interface S3ServerOptions {
  readonly accessKeyId?: string;
  readonly bucket?: string;
  readonly port?: number;
  /** Speaks HTTPS with it. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** What a fault does to a request. */
export type FaultKind =
  | {
      readonly kind: "status";
      readonly status: number;
      readonly code: string;
      readonly retryAfter?: number;
    }
  /** The connection ends in the middle of the answer's body. */
  | { readonly kind: "cut" }
  /** The request is carried out, and its answer is lost. */
  | { readonly kind: "lost" }
  /** The request is carried out twice, and the second answer is sent: a proxy lost the first one. */
  | { readonly kind: "twice" }
  /** No answer, until the server is closed. */
  | { readonly kind: "hang" };

export interface StoreFault {
  readonly fault: FaultKind;
  /** Requests that it meets; all when absent. */
  readonly when?: (request: SeenRequest) => boolean;
  /** How many; every one when absent. */
  times?: number;
}

/** How the server answers `If-None-Match: *`: as S3 does, not at all, with 501, or with 412 whatever there is. */
export type ConditionAnswer = "right" | "ignored" | "unsupported" | "always refused";

export interface SeenRequest {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
}

/**
 * A server that speaks as much of S3 as the store needs, in memory, path style only, and fails as it is told to: it looks at
 * the form of signatures and at the hashes of bodies, not at the secret.
 */
export class S3Server {
  readonly seen: SeenRequest[] = [];
  readonly faults: StoreFault[] = [];
  condition: ConditionAnswer = "right";
  /** Listings do not show an object before this many more of them were asked for. */
  listingsLate = 0;
  /** Whether answers have the metadata of puts. */
  keepsMetadata = true;
  /** Time that every answer takes at least, ms. */
  delayMs = 0;
  /** Names of one page at most. */
  maxKeys = 1000;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly #buckets = new Buckets();
  readonly #server: Server;
  readonly #port: number;
  readonly #scheme: string;

  constructor({ accessKeyId = "test-key", bucket = "logs", port = 0, tls }: S3ServerOptions = {}) {
    this.accessKeyId = accessKeyId;
    this.bucket = bucket;
    this.#port = port;
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch(() => response.destroy());
    };
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createServer(answer) : createSecureServer(tls, answer);
  }

  /** Listens, and resolves with its address. */
  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    return this.url;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Keys of all objects, ascending. */
  get keys(): string[] {
    return this.#buckets.keys();
  }

  object(key: string): StoredObject | undefined {
    return this.#buckets.get(key);
  }

  /** Stores an object that nobody uploads. */
  put(key: string, body: Uint8Array): void {
    this.#buckets.put(key, body, { headers: {}, late: 0 });
  }

  /** Multipart uploads that were neither completed nor aborted. */
  get openUploads(): number {
    return this.#buckets.uploads.size;
  }

  clear(): void {
    this.#buckets.clear();
    this.endFaults();
    this.seen.length = 0;
    this.maxKeys = 1000;
  }

  /** From now on all is as it should be, and listings show every object. */
  endFaults(): void {
    this.faults.length = 0;
    this.condition = "right";
    this.listingsLate = 0;
    this.delayMs = 0;
    this.keepsMetadata = true;
    this.#buckets.showAll();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://host");
    const [, bucket = "", ...rest] = url.pathname.split("/");
    const seen: SeenRequest = {
      method: request.method ?? "",
      key: rest.map(decodeURIComponent).join("/"),
      query: url.searchParams,
      headers: request.headers,
    };
    this.seen.push(seen);
    const body = await readAll(request);
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs));
    const fault = this.#faultOf(seen);
    if (fault?.kind === "hang") return;
    if (fault?.kind === "status") {
      if (fault.retryAfter !== undefined) response.setHeader("retry-after", fault.retryAfter);
      sendError(response, fault.status, fault.code, seen);
      return;
    }
    const refused = checkSignature(request.headers, this.accessKeyId, () =>
      createHash("sha256").update(body).digest("hex"),
    );
    if (refused !== undefined) {
      sendError(response, 403, refused, seen);
      return;
    }
    if (bucket !== this.bucket) {
      sendError(response, 404, "NoSuchBucket", seen);
      return;
    }
    if (fault?.kind === "lost") {
      this.#handle(seen, body, new Answer());
      response.destroy();
      return;
    }
    if (fault?.kind === "twice") this.#handle(seen, body, new Answer());
    const answer = new Answer();
    this.#handle(seen, body, answer);
    answer.send(response, seen, fault?.kind === "cut");
  }

  #faultOf(seen: SeenRequest): FaultKind | undefined {
    const found = this.faults.find(({ when, times }) => times !== 0 && (when?.(seen) ?? true));
    if (found?.times !== undefined) found.times--;
    return found?.fault;
  }

  #handle(seen: SeenRequest, body: Buffer, answer: Answer): void {
    const { method, key, query } = seen;
    if (key === "") {
      if (method === "GET") this.#list(query, answer);
      else answer.fail(405, "MethodNotAllowed");
      return;
    }
    if (method === "PUT" && query.has("uploadId")) this.#putPart(query, body, answer);
    else if (method === "PUT") this.#put(seen, body, answer);
    else if (method === "POST" && query.has("uploads")) {
      answer.xml(createXml(this.bucket, key, this.#buckets.start(key, seen.headers)));
    } else if (method === "POST" && query.has("uploadId")) this.#complete(seen, body, answer);
    else if (method === "GET" || method === "HEAD") this.#get(seen, answer);
    else if (method === "DELETE") this.#delete(key, query, answer);
    else answer.fail(405, "MethodNotAllowed");
  }

  #put(seen: SeenRequest, body: Buffer, answer: Answer): void {
    if (this.#refuses(seen, answer)) return;
    const { etag } = this.#buckets.put(seen.key, body, { ...seen, late: this.listingsLate });
    answer.headers.etag = etag;
  }

  /** Answers a condition that does not hold. */
  #refuses({ key, headers }: SeenRequest, answer: Answer): boolean {
    if (headers["if-none-match"] === undefined || this.condition === "ignored") return false;
    if (this.condition === "unsupported") answer.fail(501, "NotImplemented");
    else if (this.condition === "always refused" || this.#buckets.get(key) !== undefined)
      answer.fail(412, "PreconditionFailed");
    return answer.status !== 200;
  }

  #putPart(query: URLSearchParams, body: Buffer, answer: Answer): void {
    const upload = this.#buckets.uploads.get(query.get("uploadId") ?? "");
    if (upload === undefined) {
      answer.fail(404, "NoSuchUpload");
      return;
    }
    upload.parts.set(Number(query.get("partNumber")), body);
    answer.headers.etag = `"${createHash("md5").update(body).digest("hex")}"`;
  }

  #complete(seen: SeenRequest, body: Buffer, answer: Answer): void {
    const id = seen.query.get("uploadId") ?? "";
    const upload = this.#buckets.uploads.get(id);
    if (upload === undefined) {
      answer.fail(404, "NoSuchUpload");
      return;
    }
    if (this.#refuses(seen, answer)) return;
    const numbers = attribute(body.toString(), "PartNumber").map(Number);
    const parts = numbers.map((number) => upload.parts.get(number));
    const small = parts.slice(0, -1).some((part) => (part?.byteLength ?? 0) < 5 * 1024 * 1024);
    if (small) {
      answer.fail(400, "EntityTooSmall");
      return;
    }
    const whole = Buffer.concat(parts as Buffer[]);
    this.#buckets.uploads.delete(id);
    const { etag } = this.#buckets.put(seen.key, whole, {
      headers: upload.headers,
      late: this.listingsLate,
    });
    answer.xml(completeXml(this.bucket, seen.key, etag));
  }

  #get({ method, key, headers }: SeenRequest, answer: Answer): void {
    const object = this.#buckets.get(key);
    if (object === undefined) {
      answer.fail(404, "NoSuchKey");
      return;
    }
    Object.assign(answer.headers, {
      etag: object.etag,
      "last-modified": new Date(object.modifiedMs).toUTCString(),
      "content-type": "binary/octet-stream",
      ...(this.keepsMetadata ? object.metadata : {}),
    });
    const { body } = object;
    const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "");
    if (method === "HEAD" || range === null) answer.body = body;
    else {
      const from = Number(range[1]);
      const end = Math.min(Number(range[2]) + 1, body.byteLength);
      if (from >= body.byteLength) {
        answer.fail(416, "InvalidRange");
        return;
      }
      answer.status = 206;
      answer.headers["content-range"] = `bytes ${from}-${end - 1}/${body.byteLength}`;
      answer.body = body.subarray(from, end);
    }
  }

  #delete(key: string, query: URLSearchParams, answer: Answer): void {
    if (query.has("uploadId")) this.#buckets.uploads.delete(query.get("uploadId") ?? "");
    else this.#buckets.delete(key);
    answer.status = 204;
  }

  #list(query: URLSearchParams, answer: Answer): void {
    if (query.get("list-type") !== "2") {
      answer.fail(501, "NotImplemented");
      return;
    }
    const asked = Number(query.get("max-keys") ?? 1000);
    const page = this.#buckets.page({
      prefix: query.get("prefix") ?? "",
      delimiter: query.get("delimiter") ?? "",
      after: query.get("continuation-token") ?? query.get("start-after") ?? "",
      maxKeys: Math.min(asked, this.maxKeys),
    });
    answer.xml(listXml(this.bucket, page));
  }
}

/** An answer while it is made. */
class Answer {
  status = 200;
  readonly headers: Record<string, string> = {};
  body: Uint8Array = new Uint8Array(0);
  #error: string | undefined;

  xml(text: string): void {
    this.headers["content-type"] = "application/xml";
    this.body = Buffer.from(text);
  }

  fail(status: number, code: string): void {
    this.status = status;
    this.#error = code;
  }

  send(response: ServerResponse, seen: SeenRequest, cut: boolean): void {
    if (this.#error !== undefined) {
      sendError(response, this.status, this.#error, seen);
      return;
    }
    const { body, headers } = this;
    response.writeHead(this.status, { ...headers, "content-length": body.byteLength });
    if (cut) response.write(body.subarray(0, body.byteLength >> 1), () => response.destroy());
    else response.end(seen.method === "HEAD" ? undefined : body);
  }
}

function sendError(
  response: ServerResponse,
  status: number,
  code: string,
  seen: SeenRequest,
): void {
  const body = seen.method === "HEAD" ? "" : errorXml(code, seen.key);
  response.writeHead(status, { "content-type": "application/xml" }).end(body);
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
