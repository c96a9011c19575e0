import { invalidArgument, parsePrometheusDuration } from "@skald/model";
import { urlProblem } from "../send/alertmanagers.js";
import type { Connection, ConnectionTls, Credentials } from "../send/post.js";
import { compileRelabels, type Relabel } from "../send/relabel.js";

/** A server that takes samples by Prometheus remote write. */
export interface RemoteClient {
  readonly id: string;
  readonly url: string;
  readonly connection: Connection;
  readonly relabel: Relabel;
  readonly maxSamplesPerSend: number;
  readonly batchDeadlineMs: number;
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Try again what was answered with 429. */
  readonly retriesOn429: boolean;
}

/** Clients by id, each as Prometheus writes a remote write config. */
export type ClientConfigs = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The clients of a tenant: those of all, each changed by what the tenant says of it. Throws invalid_argument. */
export function readClients(all: ClientConfigs, own: ClientConfigs): RemoteClient[] {
  const ids = new Set([...Object.keys(all), ...Object.keys(own)]);
  return [...ids].map((id) => readClient(id, { ...all[id], ...own[id] }));
}

type Config = Readonly<Record<string, unknown>>;

function readClient(id: string, config: Config): RemoteClient {
  const where = `remote write client ${id}`;
  const url = String(config.url ?? "");
  const problem = urlProblem(url);
  if (problem !== undefined) throw invalidArgument(`${where}: url: ${problem}`);
  const refused = ["sigv4", "oauth2", "azuread", "google_iam", "proxy_url"].find(
    (key) => config[key] !== undefined,
  );
  if (refused !== undefined) throw invalidArgument(`${where}: ${refused} is not supported`);
  const queue = mapOf(config.queue_config, `${where}: queue_config`);
  const relabels = config.write_relabel_configs ?? [];
  if (!Array.isArray(relabels)) throw invalidArgument(`${where}: write_relabel_configs is no list`);
  const ms = (value: unknown, usual: string) => durationMs(value ?? usual, where);
  const headers = mapOf(config.headers, `${where}: headers`);
  return {
    id,
    url,
    connection: {
      timeoutMs: ms(config.remote_timeout, "30s"),
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
      ),
      credentials: credentialsOf(config, where),
      tls: tlsOf(mapOf(config.tls_config, `${where}: tls_config`)),
    },
    relabel: compileRelabels(relabels as Config[]),
    maxSamplesPerSend: positive(queue.max_samples_per_send ?? 2000, where),
    batchDeadlineMs: ms(queue.batch_send_deadline, "5s"),
    minBackoffMs: ms(queue.min_backoff, "30ms"),
    maxBackoffMs: ms(queue.max_backoff, "5s"),
    retriesOn429: String(queue.retry_on_http_429 ?? false) === "true",
  };
}

function credentialsOf(config: Config, where: string): Credentials {
  const basic = mapOf(config.basic_auth, `${where}: basic_auth`);
  const bearer = mapOf(config.authorization, `${where}: authorization`);
  const text = (value: unknown) => (value === undefined || value === null ? "" : String(value));
  return {
    user: text(basic.username),
    password: text(basic.password),
    passwordFile: text(basic.password_file),
    type: text(bearer.type),
    token: text(bearer.credentials) || text(config.bearer_token),
    tokenFile: text(bearer.credentials_file) || text(config.bearer_token_file),
  };
}

function tlsOf(tls: Config): ConnectionTls {
  const text = (key: string) => String(tls[key] ?? "");
  return {
    caFile: text("ca_file"),
    certFile: text("cert_file"),
    keyFile: text("key_file"),
    serverName: text("server_name"),
    insecureSkipVerify: String(tls.insecure_skip_verify ?? false) === "true",
  };
}

function mapOf(value: unknown, where: string): Config {
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Config;
  throw invalidArgument(`${where} is no map`);
}

function durationMs(value: unknown, where: string): number {
  const ns = parsePrometheusDuration(String(value));
  if (ns === undefined) throw invalidArgument(`${where}: ${JSON.stringify(value)} is no duration`);
  return Number(ns / 1_000_000n);
}

function positive(value: unknown, where: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw invalidArgument(`${where}: ${JSON.stringify(value)} is no whole number above 0`);
}
