import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { BuildInfo } from "./buildinfo.js";

/** Seconds; the buckets that dashboards of request durations expect. */
const durationBucketsSeconds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100,
];

/** Pause between two looks at how late the event loop is. */
const eventLoopLookMs = 100;

/**
 * The registry of one process. Names are given without the namespace: `metrics.counter("distributor_lines_received_total", ...)`
 * is `loki_distributor_lines_received_total`. Asking again for a name gives the same metric, because several services
 * count into one (`discarded_samples_total`). Count per batch, not per line.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #namespace: string;
  readonly #tenants: TenantFolder;
  readonly #known = new Map<string, { kind: string; labels: string; metric: unknown }>();

  constructor(options: { readonly namespace?: string; readonly maxTenants?: number } = {}) {
    this.#namespace = options.namespace ?? "loki";
    this.#tenants = new TenantFolder(options.maxTenants ?? 0);
  }

  counter(name: string, help: string, labels: readonly string[] = []): Counter<string> {
    return this.#once(
      "counter",
      name,
      labels,
      () => new Counter(this.#settings(name, help, labels)),
    );
  }

  gauge(name: string, help: string, labels: readonly string[] = []): Gauge<string> {
    return this.#once("gauge", name, labels, () => new Gauge(this.#settings(name, help, labels)));
  }

  /**
   * The counters of one name by their labels, for what is counted with each push: adding to one costs no more than that, and
   * shows when the metrics are read.
   */
  tallies(name: string, help: string, labels: readonly string[]): Tallies {
    return this.#once("tallies", name, labels, () => {
      const changed: Tally[] = [];
      new Counter({
        ...this.#settings(name, help, labels),
        collect() {
          for (const tally of changed.splice(0))
            tally.tell((value) => this.inc(tally.labels, value));
        },
      });
      return (of) => new Tally(of, changed);
    });
  }

  /** A gauge that is asked for its value when the metrics are read, with labels that never change. */
  gaugeOf(
    name: string,
    help: string,
    read: () => number,
    labels: Readonly<Record<string, string>> = {},
  ): void {
    const names = Object.keys(labels);
    const settings = this.#settings(name, help, names);
    this.#once("read gauge", name, names, () => {
      return new Gauge({
        ...settings,
        collect() {
          this.set(labels, read());
        },
      });
    });
  }

  /** Gauges that are asked for their values when the metrics are read. */
  gaugesOf<Label extends string>(
    name: string,
    help: string,
    labels: readonly Label[],
    read: () => Iterable<Readonly<Record<Label, string>> & { readonly value: number }>,
  ): void {
    const settings = this.#settings(name, help, labels);
    this.#once("read gauges", name, labels, () => {
      return new Gauge({
        ...settings,
        collect() {
          this.reset();
          for (const of of read()) {
            const named = labels.map((label) => [label, of[label]] as const);
            this.set(Object.fromEntries(named), of.value);
          }
        },
      });
    });
  }

  /** A histogram; buckets default to those of request durations in seconds. */
  histogram(
    name: string,
    help: string,
    labels: readonly string[] = [],
    buckets: readonly number[] = durationBucketsSeconds,
  ): Histogram<string> {
    const settings = { ...this.#settings(name, help, labels), buckets: [...buckets] };
    return this.#once("histogram", name, labels, () => new Histogram(settings));
  }

  /** Adds the metrics of the process and `<namespace>_build_info`. Call once, for the process that is served. */
  collectProcess(build: BuildInfo): void {
    collectDefaultMetrics({
      register: this.#registry,
      // Each look at the event loop wakes the process, an idle one too.
      eventLoopMonitoringPrecision: eventLoopLookMs,
    });
    // Gauges with the names of counters; those without `_total` tell the same by kind.
    for (const kind of ["handles", "requests", "resources"])
      this.#registry.removeSingleMetric(`nodejs_active_${kind}_total`);
    const labels = { version: build.version, revision: build.revision, branch: build.branch };
    const named = { ...labels, goversion: build.goVersion };
    this.gauge("build_info", "What runs: always 1, told by its labels.", Object.keys(named)).set(
      named,
      1,
    );
  }

  /** What `GET /metrics` answers: OpenMetrics when the client's Accept header names it, else Prometheus text. */
  async read(accept = ""): Promise<{ contentType: string; text: string }> {
    const text = this.#tenants.fold(await this.#registry.metrics());
    if (!accept.includes("application/openmetrics-text"))
      return { contentType: Registry.PROMETHEUS_CONTENT_TYPE, text };
    return { contentType: Registry.OPENMETRICS_CONTENT_TYPE, text: toOpenMetrics(text) };
  }

  /** Values of a counter or gauge that was made, added up by one of its labels. */
  async sums(name: string, label: string): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    const metric = this.#registry.getSingleMetric(`${this.#namespace}_${name}`);
    for (const { labels, value } of (await metric?.get())?.values ?? []) {
      const key = String((labels as Readonly<Record<string, string | number>>)[label] ?? "");
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
  }

  #settings(name: string, help: string, labels: readonly string[]) {
    const labelNames = [...labels];
    return { name: `${this.#namespace}_${name}`, help, labelNames, registers: [this.#registry] };
  }

  #once<M>(kind: string, name: string, labels: readonly string[], create: () => M): M {
    const wanted = [...labels].sort().join(",");
    const known = this.#known.get(name);
    if (known === undefined) {
      const metric = create();
      this.#known.set(name, { kind, labels: wanted, metric });
      return metric;
    }
    if (known.kind !== kind || known.labels !== wanted)
      throw new Error(`metric ${name} is already a ${known.kind} with labels ${known.labels}`);
    return known.metric as M;
  }
}

export type Tallies = (labels: Readonly<Record<string, string>>) => Tally;

/** A counter with its labels. Several may have the same ones. */
export class Tally {
  readonly labels: Record<string, string>;
  readonly #changed: Tally[];
  #value = 0;
  #isChanged = false;

  constructor(labels: Readonly<Record<string, string>>, changed: Tally[]) {
    this.labels = labels;
    this.#changed = changed;
  }

  add(value: number): void {
    this.#value += value;
    if (this.#isChanged) return;
    this.#isChanged = true;
    this.#changed.push(this);
  }

  /** Hands over what was added since the last time. */
  tell(take: (value: number) => void): void {
    take(this.#value);
    this.#value = 0;
    this.#isChanged = false;
  }
}

// prom-client's own OpenMetrics mode renames the counters of the registry for good, so the text is rewritten instead.
function toOpenMetrics(text: string): string {
  const counters = new Set<string>();
  for (const match of text.matchAll(/^# TYPE (\S+) counter$/gm)) counters.add(match[1] as string);
  const lines = text.split("\n").filter((line) => line !== "");
  const rewritten = lines.map((line) => {
    const head = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
    if (head === null || !counters.has(head[2] as string)) return line;
    const [, word, name = "", rest] = head;
    if (name.endsWith("_total")) return `# ${word} ${name.slice(0, -"_total".length)} ${rest}`;
    return word === "TYPE" ? `# TYPE ${name} unknown` : line;
  });
  return `${rewritten.join("\n")}\n# EOF\n`;
}

/** The tenant under which all others are counted together; no real id has a space. */
const others = "other tenants";
const tenantLabel = /([{,](?:tenant|user)=")([^"]*)"/;

/**
 * Keeps the lines of the tenants that it saw first in a text of metrics, and adds up those of all others: many tenants would
 * otherwise make a page that is slow to write, send and store.
 */
class TenantFolder {
  readonly #max: number;
  readonly #kept = new Set<string>();

  /** 0 means that all are kept. */
  constructor(max: number) {
    this.#max = max;
  }

  fold(text: string): string {
    if (this.#max === 0) return text;
    const lines: string[] = [];
    /** Sums by name and labels, each with its place among the lines. */
    const sums = new Map<string, { at: number; value: number }>();
    for (const line of text.split("\n")) {
      const match = line.startsWith("#") ? null : tenantLabel.exec(line);
      if (match === null || this.#keeps(match[2] as string)) {
        lines.push(line);
        continue;
      }
      const end = line.lastIndexOf(" ");
      const key = line.slice(0, end).replace(tenantLabel, `$1${others}"`);
      const value = Number(line.slice(end + 1));
      const sum = sums.get(key);
      if (sum !== undefined) sum.value += value;
      else sums.set(key, { at: lines.push(key) - 1, value });
    }
    for (const [key, { at, value }] of sums) lines[at] = `${key} ${value}`;
    return lines.join("\n");
  }

  #keeps(tenant: string): boolean {
    if (tenant === "" || this.#kept.has(tenant)) return true;
    if (this.#kept.size >= this.#max) return false;
    this.#kept.add(tenant);
    return true;
  }
}
