import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { deadline } from "@skald/runtime";

/** How a server of others is spoken to. */
export interface Connection {
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly credentials: Credentials;
  readonly tls?: ConnectionTls;
  /** Of an answer only so much is kept, bytes; 4096 if not given. */
  readonly maxAnswerBytes?: number;
}

/** Files are read for each request: what is in them may change. */
export interface Credentials {
  readonly user?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  /** `Bearer` as a rule. */
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

/** Posts a body and tells the answer, whatever its status. Throws when there is none in time. */
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
