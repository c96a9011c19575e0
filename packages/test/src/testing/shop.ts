/**
 * One hour of the logs of five applications of a shop, two files each: JSON, logfmt, nginx and dated lines that carry their
 * times, so that a plain file of them is as good as a push. 1,800 lines of ASCII; no two have one time.
 */
export const startMs = Date.UTC(2026, 10, 20, 10);
export const endMs = startMs + 3_600_000;
/** A word of one line. */
export const needle = "needle-51c0ffee";

export interface ShopRow {
  readonly app: string;
  readonly isProd: boolean;
  readonly labels: Readonly<Record<string, string>> & { readonly filename: string };
  readonly metadata: Readonly<Record<string, string>>;
  readonly ms: number;
  readonly line: string;
  /** Bytes of the line and its structured metadata, also that which the server adds. */
  readonly size: number;
  readonly method: string;
  readonly status: number;
  /** In ms. */
  readonly duration: number;
}

const apps = ["checkout", "payments", "gateway", "nginx-edge", "kafka"];

export const rows: readonly ShopRow[] = Array.from({ length: 1800 }, (_, i) => rowOf(i));

/** How many rows are as wanted. */
export function count(isWanted: (row: ShopRow) => boolean): number {
  return rows.filter(isWanted).length;
}

export function sum(of: (row: ShopRow) => number): number {
  return rows.reduce((total, row) => total + of(row), 0);
}

/** The sum over windows of five minutes of a quantile of an application's durations. */
export function quantiles(app: string, quantile: number): number {
  const wanted = rows.filter((row) => row.app === app);
  const windows = grouped(wanted, ({ ms }) => Math.ceil((ms - startMs) / 300_000));
  return [...windows.values()].reduce((total, found) => {
    const sorted = found.map(({ duration }) => duration).sort((a, b) => a - b);
    const rank = quantile * (sorted.length - 1);
    const [low = 0, high = low] = sorted.slice(Math.floor(rank));
    return total + low + (high - low) * (rank % 1);
  }, 0);
}

/** The rows by a key, in their order. */
export function grouped<K>(
  of: readonly ShopRow[],
  key: (row: ShopRow) => K,
): ReadonlyMap<K, readonly ShopRow[]> {
  const groups = new Map<K, ShopRow[]>();
  for (const row of of) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

function rowOf(i: number): ShopRow {
  const app = apps[i % 5]!;
  const n = Math.floor(i / 5);
  const level = n % 9 === 0 ? "error" : n % 5 === 0 ? "warn" : "info";
  const status = level === "error" ? 500 + (n % 4) : level === "warn" ? 404 : 200;
  const method = n % 2 === 0 ? "GET" : "POST";
  const duration = (n * 373) % 1000;
  const message = [messageOf(level, n), i === 615 ? needle : "", extraOf(i)]
    .filter(Boolean)
    .join(" ");
  const ms = startMs + 1000 + i * 2000;
  const given = {
    app,
    n,
    level,
    status,
    method,
    duration,
    message,
    iso: new Date(ms).toISOString(),
  };
  const isProd = app !== "kafka";
  const pod = `${app}-${n % 2}`;
  const line = lineOf(given);
  return {
    ...{ app, isProd, ms, method, status, duration, line },
    size: line.length + "detected_level".length + level.length,
    labels: {
      ...{ cluster: "eu-1", namespace: isProd ? "prod" : "infra", app, pod },
      filename: `${pod}.log`,
    },
    metadata: app === "payments" ? { trace_id: `trace-${n}`, user: `u${n % 50}` } : {},
  };
}

function messageOf(level: string, n: number): string {
  if (level === "info") return "request completed";
  if (level === "warn") return "slow query detected";
  return ["upstream returned error", "error: timeout", "upstream error, will retry"][n % 3]!;
}

/** Rare texts. */
function extraOf(i: number): string {
  if (i % 257 === 3) return "circuit breaker opened for upstream ledger-db";
  return i % 100 === 17 ? ["connection reset by peer", "Connection RESET by Peer"][i % 2]! : "";
}

interface Given {
  readonly app: string;
  readonly n: number;
  readonly level: string;
  readonly status: number;
  readonly method: string;
  readonly duration: number;
  readonly message: string;
  readonly iso: string;
}

function lineOf({ app, n, level, status, method, duration, message, iso }: Given): string {
  const path = `/api/v${1 + (n % 2)}/orders/${n}`;
  switch (app) {
    case "gateway":
      return `ts=${iso} level=${level} msg="${message}" method=${method} path=${path} status=${status} duration=${duration}ms`;
    case "nginx-edge": {
      const [, year, , day, time] = /^(\d+)-(\d+)-(\d+)T([\d:]+)/.exec(iso)!;
      return `10.0.0.${n % 200} - - [${day}/Nov/${year}:${time} +0000] "${method} ${path} HTTP/1.1" ${status} ${n} "-" "${message}"`;
    }
    case "kafka":
      return `${iso.replace("T", " ").replace(".", ",").replace("Z", "")} ${level.toUpperCase()} [handler-${n % 8}] ${message}`;
    default:
      return JSON.stringify({
        ...{ ts: iso, level, msg: message, status, duration_ms: duration },
        ...{ http: { method, path }, user: `u${n % 50}` },
      });
  }
}
