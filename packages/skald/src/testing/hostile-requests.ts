import { mutate, type Random } from "@skald/testkit";
import type { EndpointDocs, ParamDocs, ParamType } from "@skald/transport";
import type { Endpoint } from "../process/process.js";

/** A request to send, and what is known of its answer before. */
export interface HostileRequest {
  readonly method: string;
  /** With the query string. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  /** Absent where nobody serves the path. */
  readonly endpoint: Endpoint | undefined;
  /** Methods that the path is served by. */
  readonly allowed: ReadonlySet<string>;
  readonly isOverLimit: boolean;
}

export interface HostileOptions {
  readonly api: readonly Endpoint[];
  readonly random: Random;
  /** Of forms; longer bodies are sent now and then. */
  readonly maxBodyBytes: number;
  readonly nowMs: number;
}

const otherMethods = ["PUT", "DELETE", "PATCH", "OPTIONS", "GET", "POST", "PROPFIND"];

/** Makes requests to all endpoints of a process, some good, most bad in some part. */
export function hostileRequests(options: HostileOptions): () => HostileRequest {
  const { api, random } = options;
  const allowedBy = new Map<string, Set<string>>();
  for (const { paths, methods } of api)
    for (const path of paths)
      allowedBy.set(path, new Set([...(allowedBy.get(path) ?? []), ...methods]));
  const of = <T>(all: readonly T[]): T => all[random(all.length)] as T;
  return () => {
    const endpoint = of(api);
    const path = of(endpoint.paths);
    const allowed = allowedBy.get(path) as Set<string>;
    if (random(25) === 0) return strayRequest(options, path);
    const wrong = otherMethods.filter((method) => !allowed.has(method));
    // What ends the process, or takes its time, is asked for by no method that it is served by.
    const isWrong = random(12) === 0 || isDear(endpoint);
    const method = isWrong ? of(wrong) : of(endpoint.methods);
    const filled = path.replace(/:\w+/g, () => encodeURIComponent(textOf(random)));
    const pairs = pairsOf(endpoint.docs, options);
    const isLong = !isWrong && method === "POST" && random(60) === 0;
    const isOverLimit = isLong && endpoint.docs?.isStreamed !== true;
    const sent = isOverLimit
      ? tooLong(endpoint, options)
      : bodyOf(endpoint, method, pairs, options);
    const url = sent.isForm ? filled : `${filled}?${queryString(pairs, random)}`;
    const headers = { ...headersOf(random), ...sent.headers };
    return { method, url, headers, body: sent.body, endpoint, allowed, isOverLimit };
  };
}

function isDear({ docs, paths }: Endpoint): boolean {
  return docs?.ends === true || paths.some((path) => path.startsWith("/debug/"));
}

/** A path that nobody serves, whatever is done with it. */
function strayRequest({ random }: HostileOptions, path: string): HostileRequest {
  const strays = [
    `${path}/x/y/z`,
    `/nowhere${path}`,
    path.replace("/v1/", "/v9/").replace(/^\/(?!.*\/v9\/)/, "/none/"),
    "/%2e%2e/%2e%2e/etc/passwd",
    "/favicon.ico",
    "/__proto__",
    "/constructor/prototype",
    `/${"a/".repeat(500)}`,
    `/${"%41".repeat(2000)}`,
    "/service/api/v1/label//values/none",
  ];
  const url = strays[random(strays.length)]!.replace(/:\w+/g, "a");
  const method = otherMethods[random(otherMethods.length)] as string;
  const headers = headersOf(random);
  const none = new Set<string>();
  return {
    method,
    url,
    headers,
    body: undefined,
    endpoint: undefined,
    allowed: none,
    isOverLimit: false,
  };
}

const words = [
  "app",
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "",
  " ",
  "é\u0000\u202e",
  "\ud83d\ude00".repeat(50),
  "../../../etc/passwd",
  "..",
  "a/b%2Fc",
  "<script>alert(1)</script>",
  "'; drop table x; --",
  "%00%ff",
  "\r\nX-Injected: 1",
  `${"9".repeat(400)}`,
  "x".repeat(5000),
  "{{.}}",
  `$\{jndi:ldap://x}`,
];

function textOf(random: Random): string {
  return words[random(words.length)] as string;
}

const times = [
  ...["0", "-1", "1", "10000000000", "-9223372036854775808", "9223372036854775807", "1e9", "1.5"],
  ...["NaN", "Infinity", "1e308", "-1e308", "0x10", "2024-13-45T99:99:99Z", "now", "1970-01-01"],
  ...["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2024-02-30T00:00:00+99:99", "1."],
];
const spans = [
  ...["0", "-1", "1s", "1ms", "1ns", "5m", "1h30m", "999999999y", "1d1y", "1e400", "-5m", "1e-9"],
  ...["0.0000001", "m", "1 h", "١s", "99999999999999999999s", "30d", "1w"],
];
const integers = [
  ...["0", "-1", "1", "5", "1000", "5000", "4294967295", "4294967296", "9223372036854775808"],
  ...["1e3", "0x1F", "1_000", "NaN", "Infinity", "1.5", "+7", "００", "-0"],
];
const booleans = ["true", "false", "1", "0", "TRUE", "maybe", "null"];
const sizes = ["1", "0", "-1", "600MB", "1e400GB", "9999999999TB", "1.5KB", "KB", "1 MB"];

const selectors = [
  '{app="shop"}',
  '{app=~".+"}',
  '{app=~"(a+)+$"}',
  `{app=~"${"(".repeat(200)}a${")".repeat(200)}"}`,
  `{app=~"${"a?".repeat(200)}${"a".repeat(200)}"}`,
  '{app=~"("}',
  "{}",
  '{app!="x"}',
  `{${'a="b",'.repeat(300)}c="d"}`,
  '{__proto__="x", constructor=~".*"}',
  '{__tenant_id__="shop"}',
  "{app=`x`}",
  '{app="\\xff\\u0000"}',
  "{",
  '"app"',
  "",
];
const stages = [
  ' |= "paid"',
  ' |~ "(x+x+)+y"',
  " | json",
  " | logfmt | status >= 500",
  ' | regexp "(?P<a>.*)(?P<b>.*)(?P<c>.*)"',
  ' | pattern "<_> <a> <_>"',
  ' | line_format "{{ .app | repeat 1000000000 }}"',
  ' | line_format "{{ range $i, $e := .x }}{{ end }}"',
  ' | line_format "{{ printf \\"%999999999d\\" 1 }}"',
  ' | label_format a="{{ . }}", b=a',
  " | decolorize | unpack | drop app | keep none",
  ' | json x="a.b[99999999999].c"',
  ' | ip("300.1.1.1/99")',
  ' |> "<_>"',
  " | unwrap bytes(x)",
  " | line_format",
  " |",
];
const wrappers: readonly ((log: string) => string)[] = [
  (log) => log,
  (log) => `rate(${log}[5m])`,
  (log) => `count_over_time(${log}[1s])`,
  (log) => `sum by (app) (bytes_over_time(${log}[99999d]))`,
  (log) => `topk(99999999999999999999, rate(${log}[1m]))`,
  (log) => `quantile_over_time(0.99, ${log} | unwrap x [5m]) by (app)`,
  (log) => `${"(".repeat(500)}rate(${log}[1m])${")".repeat(500)}`,
  (log) => `rate(${log}[1m])${" + 1 / 0 % 0 ^ 2".repeat(50)}`,
  (log) => `label_replace(rate(${log}[1m]), "a", "$1", "b", "(.*)+")`,
  (log) => `absent_over_time(${log}[1m] offset -999999h)`,
  (log) => `rate(${log}[1m]) and on() vector(1) unless ignoring(a) vector(2) > bool 1`,
  (log) => `sort_desc(rate(${log}[0s]))`,
  (log) => `${"sum(".repeat(3000)}${log}`,
  () => "vector(1)+vector(1)",
  () => "1/0",
  () => "-".repeat(2000),
  () => `"${"\\".repeat(501)}`,
];

const goodQueries = [
  '{app="shop"}',
  '{app=~".+"} |= "paid" | json | line_format "{{.app}}"',
  '{app="shop"} | logfmt | label_format a=app | drop app',
  '{app="shop"} | pattern "<a> <_>" | a != ""',
  'sum by (app) (rate({app=~".+"}[5m]))',
  'count_over_time({app="shop"} |~ "(x+x+)+y" [1m])',
  'topk(3, bytes_rate({app=~".+"}[1m])) > 0 or vector(1)',
  'quantile_over_time(0.9, {app="shop"} | logfmt | unwrap x [5m]) by (app)',
];

/** A query, whole or damaged. */
function queryOf(random: Random): string {
  let log = selectors[random(random(2) === 0 ? 2 : selectors.length)] as string;
  for (let count = random(4); count > 0; count--) log += stages[random(stages.length)];
  const query = wrappers[random(wrappers.length)]!(log);
  return random(4) > 0 ? query : Buffer.from(mutate(Buffer.from(query), random)).toString();
}

/** A value that is taken, by itself. */
function goodText({ type, values }: ParamDocs, { random, nowMs }: HostileOptions): string {
  const of = (all: readonly string[]) => all[random(all.length)] as string;
  if (values !== undefined) return of(values);
  const seconds = Math.floor(nowMs / 1000) - random(7200);
  const byType: Readonly<Record<ParamType, () => string>> = {
    logql: () => of(goodQueries),
    selector: () => of(selectors.slice(0, 3)),
    time: () => of([`${seconds}`, `${seconds}000000000`, new Date(seconds * 1000).toISOString()]),
    duration: () => of(["5m", "1h30m"]),
    span: () => of(["15", "30s", "1m"]),
    integer: () => of(["1", "10", "1000"]),
    boolean: () => of(["true", "false"]),
    size: () => of(["600MB", "1KB"]),
    text: () => of(["app", "shop"]),
    names: () => of(["app", "app,service_name"]),
  };
  return byType[type]();
}

/** A value that is hardly ever taken. */
function badText({ type }: ParamDocs, { random }: HostileOptions): string {
  if (random(8) === 0) return textOf(random);
  const of = (all: readonly string[]) => all[random(all.length)] as string;
  const byType: Readonly<Record<ParamType, () => string>> = {
    logql: () => queryOf(random),
    selector: () => (random(4) === 0 ? queryOf(random) : of(selectors)),
    time: () => of(times),
    duration: () => of(spans),
    span: () => of(spans),
    integer: () => of(integers),
    boolean: () => of(booleans),
    size: () => of(sizes),
    text: () => textOf(random),
    names: () => Array.from({ length: 1 + random(5) }, () => textOf(random)).join(","),
  };
  return byType[type]();
}

type Pair = [string, string];

/** Parameters that are all good, of which one is bad, or many: each bad one hides what those behind it would do. */
function pairsOf(docs: EndpointDocs | undefined, options: HostileOptions): Pair[] {
  const { random } = options;
  const params = docs?.params ?? [];
  const pairs: Pair[] = [];
  const kind = random(3);
  const bad = random(params.length || 1);
  for (const [place, param] of params.entries()) {
    if (random(param.required ? 25 : 2) === 0) continue;
    const isBad = kind === 2 ? random(2) === 0 : kind === 1 && place === bad;
    const text = () => (isBad ? badText(param, options) : goodText(param, options));
    const repeats = random(10) === 0 ? 1 + random(30) : 1;
    for (let count = 0; count < repeats; count++) pairs.push([param.name, text()]);
  }
  if (random(10) === 0) pairs.push([textOf(random), textOf(random)]);
  return pairs;
}

function queryString(pairs: readonly Pair[], random: Random): string {
  const text = new URLSearchParams([...pairs]).toString();
  const damages = ["%", "%zz", "%ff%fe", "&&&", "=", "&=&", "#", "?", "%00", ";"];
  return random(12) > 0 ? text : `${text}${damages[random(damages.length)]}`;
}

interface SentBody {
  readonly body: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly isForm: boolean;
}

const types = [
  "application/json",
  "application/x-protobuf",
  "application/yaml",
  "application/x-www-form-urlencoded",
  "text/plain; charset=utf-8",
  "multipart/form-data; boundary=x",
  ";;;",
];
const encodings = ["gzip", "deflate", "snappy", "zstd", "lz4", "br", "identity", "gzip, gzip"];
const formType = { "content-type": "application/x-www-form-urlencoded" };

function bodyOf(
  { docs }: Endpoint,
  method: string,
  pairs: readonly Pair[],
  { random, nowMs }: HostileOptions,
): SentBody {
  const none = { body: undefined, headers: {}, isForm: false };
  if (method === "GET" && random(20) > 0) return none;
  if (docs?.bodies === undefined) {
    if (random(2) === 0 || method !== "POST") return none;
    return { body: Buffer.from(queryString(pairs, random)), headers: formType, isForm: true };
  }
  const now = `${nowMs - random(3_600_000)}000000`;
  const good = Buffer.from((docs.example.body ?? "").replaceAll("$NOW", now));
  const body = random(3) === 0 ? good : mutate(good, random);
  const usual = docs.example.headers?.["content-type"] ?? "application/json";
  const type = random(4) > 0 ? usual : (types[random(types.length)] as string);
  const encoding = encodings[random(encodings.length)] as string;
  return {
    body,
    headers: { "content-type": type, ...(random(6) > 0 ? {} : { "content-encoding": encoding }) },
    isForm: false,
  };
}

/** A body above the limit of its endpoint. */
function tooLong({ docs }: Endpoint, { maxBodyBytes }: HostileOptions): SentBody {
  const body = Buffer.alloc(maxBodyBytes + 1, "a");
  const type = docs?.bodies === undefined ? formType : { "content-type": "application/json" };
  return { body, headers: type, isForm: true };
}

function headersOf(random: Random): Record<string, string> {
  const headers: Record<string, string> = {};
  const tenants = [
    "a|b",
    "..",
    "a".repeat(151),
    "a b",
    "a:k=v",
    "|",
    "a|a",
    "",
    "ü",
    "a|b|".repeat(400),
  ];
  if (random(20) > 0)
    headers["x-scope-orgid"] = random(8) > 0 ? "shop" : tenants[random(tenants.length)]!;
  const choices: readonly (readonly [string, readonly string[]])[] = [
    [
      "accept",
      [
        "application/vnd.apache.parquet",
        "application/json",
        "*/*;q=x",
        "application/openmetrics-text",
      ],
    ],
    ["accept-encoding", ["gzip", "br", "gzip;q=0", "*", "identity, gzip"]],
    ["x-loki-response-encoding-flags", ["categorize-labels", ",,,", "none"]],
    ["x-query-tags", ["Source=grafana-lokiexplore-app", "=,=", "a".repeat(3000)]],
    ["x-service-actor-path", ["a|b", "|||", "a|".repeat(1000)]],
    ["x-loki-query-limits", ['{"maxQueryLength":"1h"}', "{", '{"maxQueryLength":-1}', "null"]],
    ["x-loki-backfill-shard", ["7", "x".repeat(200), ""]],
    ["cache-control", ["no-cache", "max-age=x"]],
    ["range", ["bytes=0-1", "bytes=9999999999-"]],
    ["if-none-match", ["*", '"x"']],
    ["expect", ["100-continue"]],
  ];
  for (const [name, values] of choices)
    if (random(12) === 0) headers[name] = values[random(values.length)] as string;
  return headers;
}
