import { resolveSrv } from "node:dns/promises";
import { formatRfc3339, type Labels, labelsToObject, makeLabels } from "@skald/model";
import { type Logger, messageWithCauses, retry, sleep } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import type { Alert } from "../evaluate/alerting-rule.js";
import { pairsOf } from "../evaluate/series-ends.js";
import { type Connection, postOrRefuse, Refused } from "./post.js";
import type { Relabel } from "./relabel.js";

interface AlertmanagerOptions {
  readonly urls: readonly string[];
  /** Whether the hosts are names of SRV records. */
  readonly discovers: boolean;
  readonly refreshMs: number;
  /** Alerts that may wait for one Alertmanager. New alerts replace the oldest beyond it. */
  readonly capacity: number;
  readonly connection: Connection;
  readonly relabel: Relabel;
  readonly externalLabels: Readonly<Record<string, string>>;
  readonly externalUrl: string;
  readonly datasourceUid: string;
}

interface AlertmanagerDeps {
  readonly options: AlertmanagerOptions;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly resolve?: typeof resolveSrv;
}

/** An alert in version 2 of the API. */
interface SentAlert {
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

const maxBatch = 64;
const retries = { maxRetries: 3, minBackoffMs: 250, maxBackoffMs: 5000 };
const path = "/api/v2/alerts";
/** How long a stop waits for alerts on their way, ms. */
const maxStopMs = 2000;

/** Sends alerts to each Alertmanager. One that does not answer does not hold up the others. */
export class Alertmanagers {
  readonly #deps: AlertmanagerDeps;
  readonly #queues = new Map<string, AlertQueue>();
  readonly #abort = new AbortController();
  readonly #counts: Counts;
  #discovery: Promise<void> = Promise.resolve();

  constructor(deps: AlertmanagerDeps) {
    const { metrics, options } = deps;
    const labels = ["alertmanager"];
    this.#deps = deps;
    this.#counts = {
      sent: metrics.counter("prometheus_notifications_sent_total", "Alerts sent.", labels),
      errors: metrics.counter(
        "prometheus_notifications_errors_total",
        "Alerts that could not be sent.",
        labels,
      ),
      dropped: metrics.counter(
        "prometheus_notifications_dropped_total",
        "Alerts dropped for want of room or of an answer.",
      ),
      latency: metrics.histogram(
        "prometheus_notifications_latency_seconds",
        "Time to send alerts.",
        labels,
      ),
    };
    const sum = () => [...this.#queues.values()].reduce((all, { length }) => all + length, 0);
    metrics.gaugeOf("prometheus_notifications_queue_length", "Alerts that wait.", sum);
    metrics.gaugeOf(
      "prometheus_notifications_queue_capacity",
      "Alerts that may wait.",
      () => options.capacity,
    );
    metrics.gaugeOf(
      "prometheus_notifications_alertmanagers_discovered",
      "Alertmanagers known.",
      () => this.#queues.size,
    );
  }

  async start(): Promise<void> {
    const { options } = this.#deps;
    if (!options.discovers) {
      this.#setUrls(options.urls);
      return;
    }
    this.#discovery = this.#discover();
  }

  /** Stops, after waiting a moment for alerts to go out. */
  async stop(): Promise<void> {
    const left = [...this.#queues.values()].map((queue) => queue.idle());
    await Promise.race([Promise.all(left), sleep(maxStopMs, this.#abort.signal)]);
    this.#abort.abort();
    await Promise.all([...this.#queues.values()].map((queue) => queue.idle()));
    await this.#discovery;
  }

  /** Puts alerts of a rule into the queues and returns at once. */
  send(expr: string, alerts: readonly Alert[]): void {
    const { options } = this.#deps;
    const made: SentAlert[] = [];
    for (const alert of alerts) {
      const labels = options.relabel(this.#labelsOf(alert.labels));
      if (labels !== undefined) made.push(sentAlert(alert, labels, linkOf(expr, options)));
    }
    if (this.#queues.size === 0 && options.urls.length > 0) this.#counts.dropped.inc(made.length);
    for (const queue of this.#queues.values()) queue.add(made);
  }

  /** The labels of an alert over the labels of all alerts. */
  #labelsOf(labels: Labels): Labels {
    return makeLabels([...Object.entries(this.#deps.options.externalLabels), ...pairsOf(labels)]);
  }

  #setUrls(urls: readonly string[]): void {
    const { log, options } = this.#deps;
    const wanted = new Set(urls.map((url) => url.replace(/\/+$/, "") + path));
    for (const [url, queue] of this.#queues) {
      if (wanted.has(url)) continue;
      queue.close();
      this.#queues.delete(url);
    }
    for (const url of wanted) {
      if (this.#queues.has(url)) continue;
      this.#queues.set(
        url,
        new AlertQueue(url, {
          ...{ log, counts: this.#counts, signal: this.#abort.signal },
          ...options,
        }),
      );
    }
  }

  async #discover(): Promise<void> {
    const { log, options, resolve = resolveSrv } = this.#deps;
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        const found = await Promise.all(options.urls.map((url) => lookUp(url, resolve)));
        this.#setUrls(found.flat());
      } catch (error) {
        log.warn("alertmanagers cannot be looked up; those known stay", { error });
      }
      await sleep(options.refreshMs, signal).catch(() => undefined);
    }
  }
}

/** Resolves `http://_http._tcp.name/path` to addresses. */
async function lookUp(text: string, resolve: typeof resolveSrv): Promise<string[]> {
  const url = new URL(text);
  const found = await resolve(url.hostname);
  return found.map(({ name, port }) => {
    const one = new URL(url);
    one.hostname = name;
    one.port = String(port);
    return one.href;
  });
}

type Counts = Readonly<Record<"sent" | "errors" | "dropped", ReturnType<Metrics["counter"]>>> & {
  readonly latency: ReturnType<Metrics["histogram"]>;
};

interface QueueOptions {
  readonly capacity: number;
  readonly connection: Connection;
  readonly log: Logger;
  readonly counts: Counts;
  readonly signal: AbortSignal;
}

/** The alerts that wait for one Alertmanager. They go out in batches. */
class AlertQueue {
  readonly #url: string;
  readonly #name: string;
  readonly #options: QueueOptions;
  readonly #abort = new AbortController();
  #waiting: SentAlert[] = [];
  #sending: Promise<void> | undefined;

  constructor(url: string, options: QueueOptions) {
    const shown = new URL(url);
    shown.username = "";
    shown.password = "";
    this.#url = url;
    this.#name = shown.href;
    this.#options = options;
    options.signal.addEventListener("abort", () => this.close(), { once: true });
  }

  get length(): number {
    return this.#waiting.length;
  }

  add(alerts: readonly SentAlert[]): void {
    if (this.#abort.signal.aborted) return;
    this.#waiting.push(...alerts);
    const tooMany = this.#waiting.length - this.#options.capacity;
    if (tooMany > 0) {
      this.#waiting.splice(0, tooMany);
      this.#options.counts.dropped.inc(tooMany);
    }
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  close(): void {
    this.#waiting = [];
    this.#abort.abort();
  }

  async #send(): Promise<void> {
    const { counts, log } = this.#options;
    const { signal } = this.#abort;
    // The alerts of one evaluation come rule by rule: wait for all of them.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxBatch);
      const labels = { alertmanager: this.#name };
      const start = performance.now();
      try {
        await retry(() => this.#post(batch), { ...retries, signal, isRetriable });
        counts.sent.inc(labels, batch.length);
      } catch (error) {
        if (signal.aborted) return;
        counts.errors.inc(labels, batch.length);
        counts.dropped.inc(batch.length);
        log.error("alerts could not be sent", { ...labels, alerts: batch.length, error });
      }
      counts.latency.observe(labels, (performance.now() - start) / 1000);
    }
  }

  async #post(batch: readonly SentAlert[]): Promise<void> {
    const { connection } = this.#options;
    const headers = { ...connection.headers, "content-type": "application/json" };
    const body = Buffer.from(JSON.stringify(batch));
    await postOrRefuse(this.#url, body, { ...connection, headers }, this.#abort.signal);
  }
}

function isRetriable(error: unknown): boolean {
  return !(error instanceof Refused) || error.status >= 500 || error.status === 429;
}

function sentAlert(alert: Alert, labels: Labels, generatorURL: string): SentAlert {
  const endMs =
    alert.state === "inactive" ? (alert.resolvedAtMs ?? alert.validUntilMs) : alert.validUntilMs;
  return {
    startsAt: timeText(alert.firedAtMs ?? alert.activeAtMs),
    endsAt: timeText(endMs),
    generatorURL,
    labels: labelsToObject(labels),
    annotations: labelsToObject(alert.annotations),
  };
}

function timeText(ms: number): string {
  return formatRfc3339(BigInt(ms) * 1_000_000n);
}

/** A link that shows the expression in Grafana. */
function linkOf(expr: string, { externalUrl, datasourceUid }: AlertmanagerOptions): string {
  const uid = datasourceUid === "" ? {} : { uid: datasourceUid };
  const datasource = { type: "loki", ...uid };
  const left = { queries: [{ expr, queryType: "range", datasource }] };
  return `${externalUrl.replace(/\/+$/, "")}/explore?left=${encodeURIComponent(JSON.stringify(left))}`;
}

/** Says what is wrong with a URL; undefined when nothing is. */
export function urlProblem(text: string): string | undefined {
  try {
    const { protocol } = new URL(text);
    return protocol === "http:" || protocol === "https:"
      ? undefined
      : `${protocol} is not http or https`;
  } catch (error) {
    return messageWithCauses(error);
  }
}
