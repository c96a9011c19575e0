import { connect } from "node:tls";

/** `wrong` hurts now, `soon` will, and `next` is the next fault that would hurt. */
export interface Finding {
  readonly kind: "wrong" | "unreachable" | "soon" | "next" | "note";
  /** The address of the service, or the ring. */
  readonly service: string;
  readonly says: string;
  /** What to do. */
  readonly advice?: string;
}

export interface DoctorOptions {
  readonly urls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** The HTTP port of ring members; 0: they are not asked; undefined: that of the first service. */
  readonly httpPort: number | undefined;
}

export interface Diagnosis {
  /** The services that answered. */
  readonly services: readonly string[];
  /** The gravest first. */
  readonly findings: readonly Finding[];
}

const requestTimeoutMs = 10_000;
/** Clocks may differ by this much; answers carry their time in seconds. */
const clockSoonMs = 2000;
/** Ingesters stand a difference of a minute. */
const clockWrongMs = 60_000;
const certificateSoonDays = 30;
/** The part of a disk that should be free. */
const diskSoonPart = 0.1;

const ringPaths = {
  ingester: "/ring",
  distributor: "/distributor/ring",
  scheduler: "/scheduler/ring",
  "index-gateway": "/indexgateway/ring",
  compactor: "/compactor/ring",
  ruler: "/ruler/ring",
  "pattern-ingester": "/pattern/ring",
} as const;
type RingName = keyof typeof ringPaths;

/** What stops while the only member of a ring is away. */
const stopsWithout: Partial<Record<RingName, string>> = {
  distributor: "pushes",
  scheduler: "queries",
  "index-gateway": "queries for rows in the store",
  compactor: "compaction, retention and deletes",
  ruler: "rules and alerts",
};

interface Member {
  readonly id: string;
  /** UNHEALTHY, or its state in the ring. */
  readonly state: string;
  /** Host and port of gRPC. */
  readonly address: string;
  /** The time of its last heartbeat. */
  readonly timestamp: string;
}

interface Asked {
  readonly url: string;
  /** Empty if it is ready. */
  readonly unready: string;
  readonly rings: ReadonlyMap<RingName, readonly Member[]>;
  /** Its clock against the one of this machine. */
  readonly clockMs: number;
  readonly metrics: string;
  readonly config: string;
}

/** Asks services, and the members of their rings, and says what hurts and what will. */
export async function diagnose(options: DoctorOptions): Promise<Diagnosis> {
  const findings: Finding[] = [];
  const asked = await askAll(options.urls, options.headers, findings);
  const members = await askMembers(asked, options, findings);
  const all = [...asked, ...members];
  for (const one of all) {
    const { url: service, unready } = one;
    if (unready !== "") findings.push({ kind: "wrong", service, says: `is not ready: ${unready}` });
    findings.push(...diskFindings(one), ...bucketFindings(one));
  }
  findings.push(...clockFindings(all), ...ringFindings(all), ...nextFaults(all));
  const checks = await Promise.all(all.map(({ url }) => certificateFindings(url)));
  findings.push(...checks.flat());
  const order = ["wrong", "unreachable", "soon", "next", "note"];
  findings.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return { services: all.map(({ url }) => url), findings };
}

async function askAll(
  urls: readonly string[],
  headers: DoctorOptions["headers"],
  findings: Finding[],
): Promise<Asked[]> {
  const answers = await Promise.all(
    urls.map((url) =>
      ask(url, headers).catch((error: Error) => {
        const why = error.cause instanceof Error ? error.cause.message : error.message;
        findings.push({ kind: "unreachable", service: url, says: why });
        return undefined;
      }),
    ),
  );
  return answers.filter((one) => one !== undefined);
}

/** Asks the members of the rings that no URL names. */
async function askMembers(
  asked: readonly Asked[],
  { headers, httpPort }: DoctorOptions,
  findings: Finding[],
): Promise<Asked[]> {
  const [first] = asked;
  const alive = asked.flatMap(({ rings }) => [...rings.values()].flat().filter(isHealthy));
  const hosts = new Set(alive.map(({ address }) => address.replace(/:\d+$/, "")));
  const addresses = new Set(alive.map(({ address }) => address));
  const port = httpPort ?? Number(first && settingOf(first.config, "server.http_listen_port"));
  // The members of a single process are the process that was asked.
  if (first === undefined || addresses.size < 2 || !(port > 0)) return [];
  const { protocol } = new URL(first.url);
  const known = new Set(asked.map(({ url }) => url));
  const urls = [...hosts].map((host) => `${protocol}//${host}:${port}`);
  const unreached: Finding[] = [];
  const found = await askAll(...[urls.filter((url) => !known.has(url)), headers, unreached]);
  if (found.length > 0 || unreached.length === 0) findings.push(...unreached);
  else
    findings.push({
      ...{ kind: "note", service: first.url, says: "the members of its rings do not answer here" },
      advice: "run it in their network, or name the URL of each service",
    });
  return found;
}

/** Rejects if the service does not answer. */
async function ask(url: string, headers: DoctorOptions["headers"]): Promise<Asked> {
  const get = async (path: string, accept = "*/*") => {
    const signal = AbortSignal.timeout(requestTimeoutMs);
    const sentMs = Date.now();
    const answer = await fetch(`${url}${path}`, { headers: { ...headers, accept }, signal });
    const text = await answer.text();
    const middleMs = (sentMs + Date.now()) / 2;
    return {
      isOk: answer.ok,
      status: answer.status,
      text,
      middleMs,
      date: answer.headers.get("date"),
    };
  };
  const ready = await get("/ready");
  // The date is cut to seconds.
  let clockMs = ready.date === null ? 0 : Date.parse(ready.date) + 500 - ready.middleMs;
  const rings = new Map<RingName, readonly Member[]>();
  for (const [name, path] of Object.entries(ringPaths)) {
    const { isOk, text, middleMs } = await get(path, "application/json");
    if (!isOk || !text.startsWith("{")) continue;
    const page = JSON.parse(text) as { readonly shards: readonly Member[]; readonly now: string };
    rings.set(name as RingName, page.shards);
    clockMs = Date.parse(page.now) - middleMs;
  }
  const [metrics, config] = [await get("/metrics"), await get("/config")];
  return {
    ...{ url, rings, clockMs },
    unready: ready.isOk ? "" : `${ready.status} ${ready.text.trim()}`,
    metrics: metrics.isOk ? metrics.text : "",
    config: config.isOk ? config.text : "",
  };
}

function diskFindings({ url: service, metrics }: Asked): Finding[] {
  const spare = metricOf(metrics, "ingester_disk_spare_bytes");
  const size = metricOf(metrics, "ingester_disk_size_bytes");
  if (spare === undefined || size === undefined || size === 0) return [];
  const mib = Math.floor(spare / 1024 / 1024);
  const advice = "use a larger disk, or find out why uploads wait; do not delete files by hand";
  if (spare <= 0)
    return [{ kind: "wrong", service, says: "the disk is full: pushes are refused", advice }];
  if (spare > size * diskSoonPart) return [];
  return [
    {
      kind: "soon",
      service,
      says: `${mib} MiB of disk are left before pushes are refused`,
      advice,
    },
  ];
}

function bucketFindings({ url: service, metrics }: Asked): Finding[] {
  if (metricOf(metrics, "objstore_bucket_unconditional_puts") !== 1) return [];
  const says = "the bucket has no conditional writes: of two writers of one key the last one wins";
  return [
    { kind: "soon", service, says, advice: "run one compactor, or use a store with If-None-Match" },
  ];
}

/** Compares clocks with the middle one of all. */
function clockFindings(all: readonly Asked[]): Finding[] {
  const sorted = all.map(({ clockMs }) => clockMs).sort((a, b) => a - b);
  const middleMs = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const findings: Finding[] = [];
  const tell = (service: string, ms: number, than: string) => {
    if (Math.abs(ms) < clockSoonMs) return;
    const kind = Math.abs(ms) < clockWrongMs ? "soon" : "wrong";
    const says = `the clock is ${(Math.abs(ms) / 1000).toFixed(1)} s ${ms < 0 ? "behind" : "ahead of"} ${than}`;
    findings.push({ kind, service, says, advice: "correct the clock; keep NTP running" });
  };
  for (const { url, clockMs } of all) tell(url, clockMs - middleMs, "the others");
  tell("this machine", -middleMs, "the services");
  return findings;
}

function ringFindings(all: readonly Asked[]): Finding[] {
  const findings: Finding[] = [];
  for (const name of Object.keys(ringPaths) as RingName[]) {
    const views = all.flatMap(({ url, rings }) => {
      const members = rings.get(name);
      return members === undefined ? [] : [{ url, members }];
    });
    const service = `ring ${name}`;
    const members = membersOf(all, name);
    for (const { id, state, address, timestamp } of members.values()) {
      if (state === "ACTIVE") continue;
      const isLost = state === "UNHEALTHY";
      const says = `${id} (${address}) is ${state}, its last heartbeat was at ${timestamp}`;
      const advice = `start it again; if it is gone for good, forget it on ${ringPaths[name]}`;
      findings.push({
        kind: isLost ? "wrong" : "soon",
        service,
        says,
        ...(isLost ? { advice } : {}),
      });
    }
    for (const { url, members: seen } of views) {
      const missing = [...members.keys()].filter((id) => !seen.some((one) => one.id === id));
      if (missing.length === 0) continue;
      const says = `${url} does not see ${missing.join(", ")}`;
      const advice = "compare the kvstore settings, and whether it reaches Redis";
      findings.push({ kind: "wrong", service, says, advice });
    }
  }
  return findings;
}

/** Names what the loss of one more process would stop. */
function nextFaults(all: readonly Asked[]): Finding[] {
  const findings: Finding[] = [];
  const addresses = new Set(
    all.flatMap(({ rings }) => [...rings.values()].flat().map(({ address }) => address)),
  );
  if (all.length > 0 && addresses.size === 1) {
    const says = "one process does everything: without it, pushes and queries stop";
    const advice = "agents must retry, and its disk needs a backup";
    return [{ kind: "next", service: [...addresses][0]!, says, advice }];
  }
  const copies = all.map(({ config }) =>
    Number(settingOf(config, "ingester.lifecycler.ring.replication_factor")),
  );
  const factor = copies.find((one) => one > 0);
  const ingesters = [...membersOf(all, "ingester").values()];
  if (factor !== undefined && ingesters.length > 0) {
    const lost = ingesters.filter((one) => !isHealthy(one)).length;
    const absent = Math.max(0, factor - ingesters.length);
    findings.push(quorumFinding(factor, lost + absent));
  }
  for (const [name, stops] of Object.entries(stopsWithout)) {
    const alive = [...membersOf(all, name as RingName).values()].filter(isHealthy);
    if (alive.length !== 1) continue;
    const says = `${alive[0]!.id} is alone: ${stops} stop while it is away`;
    findings.push({ kind: "next", service: `ring ${name}`, says, advice: "run a second one" });
  }
  return findings;
}

/** `lost` ingesters of the copies of a stream are away, in the worst case. */
function quorumFinding(factor: number, lost: number): Finding {
  const service = "ring ingester";
  const left = factor - (Math.floor(factor / 2) + 1) - lost;
  const advice = "bring ingesters back before anything else";
  if (left < 0)
    return { kind: "wrong", service, says: "some streams have no quorum: pushes get 503", advice };
  if (left === 0) {
    const says = `the next ingester that is lost stops pushes: streams have ${factor} copies, ${lost} may be away already`;
    return { kind: "next", service, says, advice: factor < 3 ? "use 3 copies" : advice };
  }
  const says = `pushes and queries survive the loss of ${left} of the ingesters, not of ${left + 1}`;
  return { kind: "next", service, says };
}

async function certificateFindings(url: string): Promise<Finding[]> {
  const { protocol, hostname, port } = new URL(url);
  if (protocol !== "https:") return [];
  const until = await new Promise<number>((resolve) => {
    // Only the date is read: the requests before have checked the certificate, and failed if it has expired.
    const settings = { host: hostname, port: Number(port || 443), rejectUnauthorized: false };
    const socket = connect({ ...settings, timeout: requestTimeoutMs }, () => {
      resolve(Date.parse(socket.getPeerCertificate().valid_to));
      socket.destroy();
    });
    socket.once("error", () => resolve(Number.POSITIVE_INFINITY));
    socket.once("timeout", () => socket.destroy(new Error("the TLS handshake takes too long")));
  });
  const days = Math.floor((until - Date.now()) / 86_400_000);
  if (days >= certificateSoonDays) return [];
  const says = `the certificate expires in ${days} days`;
  return [{ kind: "soon", service: url, says, advice: "replace its file; no restart is needed" }];
}

/** The members that anyone sees, by their id; where views differ the worse state counts. */
function membersOf(all: readonly Asked[], name: RingName): Map<string, Member> {
  const members = new Map<string, Member>();
  for (const { rings } of all)
    for (const one of rings.get(name) ?? [])
      if (!members.has(one.id) || !isHealthy(one)) members.set(one.id, one);
  return members;
}

function isHealthy({ state }: Member): boolean {
  return state !== "UNHEALTHY";
}

/** The value of a metric without labels, or with any, in whatever namespace. */
function metricOf(text: string, name: string): number | undefined {
  const [, value] = new RegExp(`^\\w*?_${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text) ?? [];
  return value === undefined ? undefined : Number(value);
}

/** A value of the YAML of `/config`, where each level is indented by two spaces. */
function settingOf(yaml: string, path: string): string | undefined {
  let block = yaml;
  for (const [depth, key] of path.split(".").entries()) {
    const indent = "  ".repeat(depth);
    const start = new RegExp(`^${indent}${key}:(.*)$`, "m").exec(block);
    if (start === null) return undefined;
    const rest = block.slice(start.index + start[0].length);
    const end = new RegExp(`\\n {0,${depth * 2}}\\S`).exec(rest);
    block = `${start[1]!.trim()}${end === null ? rest : rest.slice(0, end.index)}`;
  }
  return block;
}
