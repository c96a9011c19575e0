import { ApiError, call, callJson } from "./client.js";

/** An answer of the server, or undefined where another process has it. */
export async function optional<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 405))
      return undefined;
    throw error;
  }
}

async function text(path: string): Promise<string> {
  return (await call(path, { headers: { accept: "text/plain, */*" } })).text();
}

export interface Service {
  readonly name: string;
  readonly state: string;
}

export async function fetchServices(): Promise<readonly Service[] | undefined> {
  const found = await optional(text("services"));
  return found
    ?.split("\n")
    .map((line) => line.split(" => "))
    .flatMap(([name, state]) => (name && state ? [{ name, state }] : []));
}

export interface Member {
  readonly id: string;
  readonly state: string;
  readonly address: string;
  readonly timestamp: string;
  readonly zone: string;
  readonly tokens: readonly number[];
}

/** The rings of a cluster: their name, the path of their page, and the targets beside `all` that have it. */
export const rings = [
  ["ingester", "ring", "ingester or write"],
  ["distributor", "distributor/ring", "distributor or write"],
  ["compactor", "compactor/ring", "compactor or backend"],
  ["ruler", "ruler/ring", "ruler or backend"],
  ["scheduler", "scheduler/ring", "query-scheduler or backend"],
  ["index gateway", "indexgateway/ring", "index-gateway or backend"],
  ["pattern ingester", "pattern/ring", "pattern-ingester or backend"],
] as const;

export async function fetchRing(path: string): Promise<readonly Member[] | undefined> {
  const found = await optional(
    callJson<{ shards?: Member[] }>(path, { params: { tokens: "true" } }),
  );
  return found?.shards;
}

/** Ends the membership of an instance that cannot do so itself. */
export async function forgetMember(path: string, id: string): Promise<void> {
  await call(path, { method: "POST", params: { forget: id } });
}

export async function fetchLimits(): Promise<string | undefined> {
  return optional(text("config/tenant/v1/limits"));
}

/** What the configuration has beside the defaults. */
export async function fetchConfigDiff(): Promise<string | undefined> {
  return optional(call("config", { params: { mode: "diff" } }).then((response) => response.text()));
}

export async function fetchBuild(): Promise<Readonly<Record<string, string>> | undefined> {
  return optional(callJson<Record<string, string>>("loki/api/v1/status/buildinfo"));
}

export async function fetchTenants(): Promise<readonly string[]> {
  const found = await optional(callJson<{ userID: string }[]>("distributor/all_user_stats"));
  return (found ?? []).map(({ userID }) => userID);
}

/** Sums of counters and gauges over all their labels, or over those that a name has behind it: `requests{status_code="5`. */
export async function fetchMetrics(names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  const wanted = names.map((name) => [name, ...name.split("{")] as const);
  for (const line of (await text("metrics")).split("\n")) {
    if (line.startsWith("#")) continue;
    const end = line.search(/[ {]/);
    const found = line.slice(0, end).replace(/^[a-z0-9]+_/, "");
    for (const [name, metric, label = ""] of wanted) {
      if (metric !== found || !line.includes(label, end)) continue;
      const value = Number(line.slice(line.lastIndexOf(" ") + 1));
      sums.set(name, (sums.get(name) ?? 0) + value);
    }
  }
  return sums;
}
