import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { deadline } from "@skald/runtime";

/** How to talk to a server outside Skald. */
export interface Connection {
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly credentials: Credentials;
  readonly tls?: ConnectionTls;
  /** Bytes of an answer to keep; 4096 when absent. */
  readonly maxAnswerBytes?: number;
}

/** Credentials of a server. Files are read for each request, because they may change. */
export interface Credentials {
  readonly user?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  /** `Bearer` when empty. */
  readonly type?: string;
  readonly token?: string;
  readonly tokenFile?: string;
}

export interface ConnectionTls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly serverName?: string;
  readonly insecureSkipVerify?: boolean;
}

interface PostAnswer {
  readonly status: number;
  /** The start of the body. */
  readonly text: string;
}

const usualAnswerBytes = 4096;

/** The server answered with a status other than 2xx. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(`answered ${status}: ${text.slice(0, 500)}`);
    this.status = status;
  }
}

/** Posts a body. Throws Refused when the answer is not 2xx, and another error when there is no answer in time. */
export async function postOrRefuse(...args: Parameters<typeof post>): Promise<void> {
  const { status, text } = await post(...args);
  if (status < 200 || status >= 300) throw new Refused(status, text);
}

/** Posts a body and returns the answer, whatever its status. Throws when there is no answer in time. */
export async function post(
  url: string,
  body: Uint8Array,
  { timeoutMs, headers, credentials, tls = {}, maxAnswerBytes = usualAnswerBytes }: Connection,
  signal: AbortSignal,
): Promise<PostAnswer> {
  const target = new URL(url);
  const bounded = deadline({ timeoutMs, message: `no answer in ${timeoutMs} ms`, signal });
  try {
    const options: RequestOptions = {
      method: "POST",
      headers: { ...headers, ...authorization(target, credentials), "content-length": body.length },
      signal: bounded.signal,
      ...(target.protocol === "https:" ? tlsOptions(tls) : {}),
    };
    target.username = "";
    target.password = "";
    return await new Promise<PostAnswer>((resolve, reject) => {
      const ask = target.protocol === "https:" ? httpsRequest : httpRequest;
      const request = ask(target, options, (answer) =>
        readAnswer(answer, maxAnswerBytes).then(resolve, reject),
      );
      request.once("error", reject);
      request.end(body);
    });
  } catch (error) {
    throw bounded.signal.aborted ? bounded.signal.reason : error;
  } finally {
    bounded.clear();
  }
}

async function readAnswer(answer: IncomingMessage, maxAnswerBytes: number): Promise<PostAnswer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    if (bytes < maxAnswerBytes) chunks.push(chunk);
    bytes += chunk.length;
  }
  const text = Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString("utf8").trim();
  return { status: answer.statusCode ?? 0, text };
}

function authorization(url: URL, given: Credentials): Record<string, string> {
  const user = given.user || decodeURIComponent(url.username);
  if (user !== "") {
    const fromUrl = decodeURIComponent(url.password);
    const password = given.passwordFile ? fileText(given.passwordFile) : given.password || fromUrl;
    return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
  }
  const token = given.tokenFile ? fileText(given.tokenFile) : (given.token ?? "");
  return token === "" ? {} : { authorization: `${given.type || "Bearer"} ${token}` };
}

function tlsOptions({ caFile, certFile, keyFile, serverName, insecureSkipVerify }: ConnectionTls) {
  return {
    ...(caFile ? { ca: readFileSync(caFile) } : {}),
    ...(certFile ? { cert: readFileSync(certFile) } : {}),
    ...(keyFile ? { key: readFileSync(keyFile) } : {}),
    ...(serverName ? { servername: serverName } : {}),
    ...(insecureSkipVerify === true ? { rejectUnauthorized: false } : {}),
  };
}

function fileText(path: string): string {
  return readFileSync(path, "utf8").trim();
}
