import { invalidArgument, type Labels, parsePrometheusDuration } from "@skald/model";
import { type Logger, retry, sleep } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { urlProblem } from "./alertmanagers.js";
import {
  type Connection,
  type ConnectionTls,
  type Credentials,
  postOrRefuse,
  Refused,
} from "./post.js";
import { compileRelabels, type Relabel } from "./relabel.js";
import type { LogPosition, SampleLog } from "./sample-log.js";
import { compressSnappy, encodeWriteRequest, type TimedSample } from "./write-request.js";

interface RemoteWriterDeps {
  readonly tenant: string;
  readonly client: RemoteClient;
  readonly log: SampleLog;
  /** Headers of each request beside those of the client. */
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly metrics: RemoteWriteMetrics;
}

/** Sends the samples of a log to one server, in order, until the server takes them or refuses them for good. */
export class RemoteWriter {
  readonly #deps: RemoteWriterDeps;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  position: LogPosition = { file: 0, offset: 0 };
  /** Wakes the writer up. */
  #wake: (() => void) | undefined;
  #hasNews = true;

  constructor(deps: RemoteWriterDeps) {
    this.#deps = deps;
    this.#running = this.#run();
  }

  get client(): RemoteClient {
    return this.#deps.client;
  }

  /** Says that the log has more samples. */
  notify(): void {
    this.#hasNews = true;
    this.#wake?.();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { client, log, logger } = this.#deps;
    const { signal } = this.#abort;
    this.position = await log.loadPosition(client.id);
    while (!signal.aborted) {
      if (!this.#hasNews) await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
      if (signal.aborted) return;
      this.#hasNews = false;
      try {
        // The samples of the next rules go into the same request.
        await sleep(client.batchDeadlineMs, signal);
        await this.#sendAll();
      } catch (error) {
        if (signal.aborted) return;
        logger.error("the log of samples cannot be read", { error });
        this.#hasNews = true;
        await sleep(client.maxBackoffMs, signal).catch(() => undefined);
      }
    }
  }

  async #sendAll(): Promise<void> {
    const { client, log, metrics } = this.#deps;
    while (true) {
      const { samples, next } = await log.read(this.position);
      const wanted = this.#relabel(samples);
      for (let at = 0; at < wanted.length; at += client.maxSamplesPerSend) {
        metrics.pending.set(this.#labels, wanted.length - at);
        await this.#send(wanted.slice(at, at + client.maxSamplesPerSend));
      }
      metrics.pending.set(this.#labels, 0);
      const hasMoved = next.file !== this.position.file || next.offset !== this.position.offset;
      this.position = next;
      if (hasMoved) await log.savePosition(client.id, next);
      if (samples.length === 0) return;
    }
  }

  #relabel(samples: readonly TimedSample[]): TimedSample[] {
    const { client, metrics } = this.#deps;
    const wanted = samples.flatMap((sample) => {
      const labels: Labels | undefined = client.relabel(sample.labels);
      return labels === undefined || labels.names.length === 0 ? [] : [{ ...sample, labels }];
    });
    metrics.dropped.inc(this.#labels, samples.length - wanted.length);
    return wanted;
  }

  async #send(samples: readonly TimedSample[]): Promise<void> {
    const { client, logger, metrics } = this.#deps;
    const { signal } = this.#abort;
    const body = compressSnappy(encodeWriteRequest(samples));
    const start = performance.now();
    try {
      await retry(() => this.#post(body), {
        ...{ maxRetries: Number.POSITIVE_INFINITY, signal },
        ...{ minBackoffMs: client.minBackoffMs, maxBackoffMs: client.maxBackoffMs },
        isRetriable: (error) => !this.#isFinal(error),
        onRetry: (error, attempt) => {
          metrics.retried.inc(this.#labels, samples.length);
          if (attempt % 16 !== 0) return;
          logger.warn("samples cannot be sent; they are tried again", { client: client.id, error });
        },
      });
      metrics.sent.inc(this.#labels, samples.length);
      metrics.bytes.inc(this.#labels, body.length);
      metrics.highest.set(this.#labels, Math.max(...samples.map(({ timeMs }) => timeMs)) / 1000);
    } catch (error) {
      if (!this.#isFinal(error)) throw error;
      metrics.failed.inc(this.#labels, samples.length);
      logger.error("samples were refused and are dropped", {
        client: client.id,
        samples: samples.length,
        error,
      });
    }
    metrics.seconds.observe(this.#labels, (performance.now() - start) / 1000);
  }

  async #post(body: Uint8Array): Promise<void> {
    const { client, headers } = this.#deps;
    const { connection, url } = client;
    const all = {
      ...headers,
      "content-encoding": "snappy",
      "content-type": "application/x-protobuf",
      "x-prometheus-remote-write-version": "0.1.0",
      ...connection.headers,
    };
    await postOrRefuse(url, body, { ...connection, headers: all }, this.#abort.signal);
  }

  /** Whether the server will never take the samples. */
  #isFinal(error: unknown): boolean {
    if (!(error instanceof Refused)) return false;
    return error.status < 500 && !(error.status === 429 && this.#deps.client.retriesOn429);
  }

  get #labels() {
    return { tenant: this.#deps.tenant, remote_name: this.#deps.client.id };
  }
}

/** A server that takes samples by Prometheus remote write. */
interface RemoteClient {
  readonly id: string;
  readonly url: string;
  readonly connection: Connection;
  readonly relabel: Relabel;
  readonly maxSamplesPerSend: number;
  readonly batchDeadlineMs: number;
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Whether an answer of 429 is tried again. */
  readonly retriesOn429: boolean;
}

/** Clients by id, each in the form of a remote write config of Prometheus. */
export type ClientConfigs = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The clients of a tenant: the clients of all tenants with the changes of this tenant. Throws invalid_argument. */
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

/** The metrics of samples on their way, under the names that dashboards of rulers ask for. */
export function remoteWriteMetrics(metrics: Metrics): RemoteWriteMetrics {
  const tenant = ["tenant"];
  const client = ["tenant", "remote_name"];
  const storage = "ruler_wal_prometheus_remote_storage";
  return {
    appended: metrics.counter(
      "ruler_wal_samples_appended_total",
      "Samples written to the log.",
      tenant,
    ),
    diskSize: metrics.gauge("ruler_wal_disk_size", "Bytes of the log.", tenant),
    ready: metrics.gauge(
      "ruler_wal_appender_ready",
      "Whether samples can be written to the log.",
      tenant,
    ),
    overflow: metrics.counter(
      "ruler_wal_dropped_bytes_total",
      "Bytes of the log dropped unsent, for room or age.",
      tenant,
    ),
    sent: metrics.counter(`${storage}_samples_total`, "Samples sent.", client),
    failed: metrics.counter(
      `${storage}_samples_failed_total`,
      "Samples that were refused.",
      client,
    ),
    retried: metrics.counter(`${storage}_samples_retried_total`, "Samples sent again.", client),
    dropped: metrics.counter(
      `${storage}_samples_dropped_total`,
      "Samples dropped by relabelling.",
      client,
    ),
    bytes: metrics.counter(`${storage}_bytes_total`, "Compressed bytes sent.", client),
    seconds: metrics.histogram(
      `${storage}_sent_batch_duration_seconds`,
      "Time of requests.",
      client,
    ),
    highest: metrics.gauge(
      `${storage}_queue_highest_sent_timestamp_seconds`,
      "Time of the newest sample sent.",
      client,
    ),
    pending: metrics.gauge(
      `${storage}_samples_pending`,
      "Samples read from the log that are not sent yet.",
      client,
    ),
    newest: metrics.gauge(
      `${storage}_highest_timestamp_in_seconds`,
      "Time of the newest sample appended.",
      tenant,
    ),
  };
}

type Kinds = "counter" | "gauge" | "histogram";
type Metric<Names extends string, Kind extends Kinds> = Readonly<
  Record<Names, ReturnType<Metrics[Kind]>>
>;
export type RemoteWriteMetrics = Metric<
  "appended" | "overflow" | "sent" | "failed" | "retried" | "dropped" | "bytes",
  "counter"
> &
  Metric<"diskSize" | "ready" | "highest" | "newest" | "pending", "gauge"> &
  Metric<"seconds", "histogram">;
