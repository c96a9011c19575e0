import { readFileSync } from "node:fs";
import { parseGoDuration } from "@skald/model/units";
import { Failure, flag, parseHeader, type Values } from "../shell/command.js";

/** Flags of all commands that talk to a server. logcli has the same, under the same names. */
export const connectionFlags = {
  addr: flag.text("the address of the server", "http://localhost:3100", {
    env: "ADDR",
    shown: "URL",
  }),
  "org-id": flag.text("the tenant, or several: a|b", "", { env: "ORG_ID", shown: "ID" }),
  username: flag.text("the user of basic authentication", "", { env: "USERNAME" }),
  password: flag.text("the password of basic authentication", "", { env: "PASSWORD" }),
  "bearer-token": flag.text("the bearer token", "", { env: "BEARER_TOKEN" }),
  "bearer-token-file": flag.text("a file with the bearer token", "", {
    ...{ env: "BEARER_TOKEN_FILE", shown: "FILE" },
  }),
  "auth-header": flag.text("the header that has the credentials", "Authorization", {
    ...{ env: "AUTH_HEADER", shown: "NAME" },
  }),
  header: flag.list("a header of every request", { env: "HEADER", shown: "NAME: VALUE" }),
  "ca-cert": flag.text("certificates to trust", "", { env: "CA_CERT_PATH", shown: "FILE" }),
  cert: flag.text("the client's certificate", "", { env: "CLIENT_CERT_PATH", shown: "FILE" }),
  key: flag.text("the key of the certificate", "", { env: "CLIENT_KEY_PATH", shown: "FILE" }),
  "tls-skip-verify": flag.boolean("trusts any certificate", { env: "TLS_SKIP_VERIFY" }),
  "proxy-url": flag.text("a proxy for all requests", "", { env: "HTTP_PROXY_URL", shown: "URL" }),
  envproxy: flag.boolean("takes the proxy from HTTPS_PROXY, HTTP_PROXY and NO_PROXY", {
    env: "ENV_PROXY",
  }),
  compress: flag.boolean("asks for compressed answers", { env: "HTTP_COMPRESSION" }),
  nocache: flag.boolean("asks for answers that no cache has", { env: "NO_CACHE" }),
  "query-tags": flag.text("the header X-Query-Tags, for the server's log", "", {
    env: "QUERY_TAGS",
  }),
  retries: flag.number("how often a request is repeated that was not answered, or with 5xx", 0, {
    env: "CLIENT_RETRIES",
  }),
  "min-backoff": flag.text("the first pause before a repetition", "500ms", {
    ...{ env: "CLIENT_MIN_BACKOFF", shown: "DURATION" },
  }),
  "max-backoff": flag.text("the longest pause before a repetition", "5s", {
    ...{ env: "CLIENT_MAX_BACKOFF", shown: "DURATION" },
  }),
  context: flag.text("the context to use, see skald context", "", {
    ...{ env: "CONTEXT", shown: "NAME" },
  }),
} as const;

export type ConnectionFlags = Values<typeof connectionFlags>;

/** How to reach a server. */
export interface Connection {
  /** Without a slash at its end. */
  readonly addr: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFiles | undefined;
  readonly proxy: string | undefined;
  readonly retries: number;
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
}

export interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly rejectUnauthorized: boolean;
}

/** The connection that flags describe; reads the files that they name. */
export function connectionOf(
  flags: ConnectionFlags,
  env: Readonly<Record<string, string | undefined>>,
): Connection {
  const addr = flags.addr.includes("://") ? flags.addr : `http://${flags.addr}`;
  if (!URL.canParse(addr) || !/^https?:/.test(addr))
    throw new Failure("usage", `--addr: ${flags.addr} is no URL, such as http://localhost:3100`);
  const url = new URL(addr);
  const userInfo = { username: decodeURIComponent(url.username), password: url.password };
  url.username = "";
  url.password = "";
  return {
    addr: `${url.origin}${url.pathname}`.replace(/\/+$/, ""),
    headers: headersOf(flags, userInfo),
    tls: tlsOf(flags),
    proxy: flags["proxy-url"] || (flags.envproxy ? proxyOf(url, env) : undefined) || undefined,
    retries: flags.retries,
    minBackoffMs: backoffMs("min-backoff", flags["min-backoff"]),
    maxBackoffMs: backoffMs("max-backoff", flags["max-backoff"]),
  };
}

function headersOf(
  flags: ConnectionFlags,
  url: { readonly username: string; readonly password: string },
): Record<string, string> {
  const headers: Record<string, string> = {
    "user-agent": "skald",
    // Compression costs more than it saves on the same machine.
    "accept-encoding": flags.compress ? "gzip, deflate" : "identity",
  };
  if (flags["org-id"] !== "") headers["x-scope-orgid"] = flags["org-id"];
  if (flags["query-tags"] !== "") headers["x-query-tags"] = flags["query-tags"];
  if (flags.nocache) headers["cache-control"] = "no-cache";
  const username = flags.username || url.username;
  const password = flags.password || decodeURIComponent(url.password);
  const token = flags["bearer-token"] || readText("bearer-token-file", flags["bearer-token-file"]);
  if (username !== "" && token !== "")
    throw new Failure("usage", "a user and a bearer token are both given; give one");
  const basic = Buffer.from(`${username}:${password}`).toString("base64");
  const credentials = token !== "" ? `Bearer ${token}` : username !== "" ? `Basic ${basic}` : "";
  if (credentials !== "") headers[flags["auth-header"].toLowerCase()] = credentials;
  for (const [name, value] of flags.header.map(parseHeader)) headers[name.toLowerCase()] = value;
  return headers;
}

function tlsOf(flags: ConnectionFlags): TlsFiles | undefined {
  const { cert, key } = flags;
  const isSkipped = flags["tls-skip-verify"];
  if (!isSkipped && flags["ca-cert"] === "" && cert === "" && key === "") return undefined;
  if ((cert === "") !== (key === ""))
    throw new Failure("usage", "--cert and --key belong together; give both");
  return {
    rejectUnauthorized: !isSkipped,
    ...(flags["ca-cert"] === "" ? {} : { ca: readFile("ca-cert", flags["ca-cert"]) }),
    ...(cert === "" ? {} : { cert: readFile("cert", cert), key: readFile("key", key) }),
  };
}

/** The proxy that the environment names for a URL. */
function proxyOf(url: URL, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const left = (env.NO_PROXY ?? env.no_proxy ?? "").split(",").map((one) => one.trim());
  const { hostname } = url;
  const isLeft = (name: string) =>
    name === "*" || name === hostname || hostname.endsWith(`.${name.replace(/^\*?\./, "")}`);
  if (left.some((name) => name !== "" && isLeft(name))) return undefined;
  return url.protocol === "https:"
    ? (env.HTTPS_PROXY ?? env.https_proxy)
    : (env.HTTP_PROXY ?? env.http_proxy);
}

function readText(name: string, path: string): string {
  return path === "" ? "" : readFile(name, path).toString("utf8").trim();
}

function readFile(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Failure("usage", `--${name}: ${(error as Error).message}`);
  }
}

/** A pause: a duration, or seconds as logcli takes them. */
function backoffMs(name: string, text: string): number {
  const ns = /^\d+$/.test(text) ? BigInt(text) * 1_000_000_000n : parseGoDuration(text);
  if (ns === undefined || ns < 0n)
    throw new Failure("usage", `--${name}: ${text} is no duration, such as 500ms`);
  return Number(ns / 1_000_000n);
}
