import { deflateSync, gzipSync } from "node:zlib";
import { docsCode } from "./docs-page.js";

/** Requests as an agent sends them that tests cannot run, with what must come of them. */
export interface RecordedAgent {
  readonly agent: string;
  readonly requests: readonly RecordedRequest[];
  readonly query: string;
  readonly stored: readonly {
    readonly stream: Readonly<Record<string, string>>;
    readonly lines: readonly string[];
  }[];
}

interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: (nowMs: number) => Buffer<ArrayBuffer>;
  readonly status: number;
  readonly answer?: RegExp;
}

const json = { "content-type": "application/json" };
const ndjson = { "content-type": "application/x-ndjson" };
const service_name = "unknown_service";

/** Names and values of an agent's configuration in the documents, as a pattern with two groups finds them. */
function settingsOf(page: string, agent: string, pattern: RegExp): Record<string, string> {
  const code = docsCode(`doors/${page}.md`, `## ${agent}`);
  const found = [...code.matchAll(pattern)].map(([, name = "", value = ""]) => [name, value]);
  if (found.length === 0) throw new Error(`docs/doors/${page}.md: nothing of ${agent} is found`);
  return Object.fromEntries(found);
}

/** The path and query of an address of Skald in such a configuration. */
function pathIn(page: string, agent: string, pattern: RegExp): string {
  const [address = ""] = Object.keys(settingsOf(page, agent, pattern));
  const { pathname, search } = new URL(address, "http://skald:3100");
  return pathname + search;
}

function bulkOf(...lines: readonly object[]): Buffer<ArrayBuffer> {
  return Buffer.from(`${lines.map((line) => JSON.stringify(line)).join("\n")}\n`);
}

const get = (path: string, answer: RegExp, headers = {}): RecordedRequest => {
  return { method: "GET", path: `/elasticsearch${path}`, headers, status: 200, answer };
};

/** What Filebeat 8 asks at its start, and a bulk of a data stream. */
const filebeat: RecordedAgent = {
  agent: "Filebeat",
  requests: [
    get("/", /"number":"8\..*You Know, for Search/),
    get("/_license?human=false", /"status":"active"/),
    get("/_xpack", /"features"/),
    get("/_ilm/policy/filebeat", /acknowledged/),
    get("/_index_template/filebeat-8.17.0", /acknowledged/),
    {
      method: "PUT",
      path: "/elasticsearch/_index_template/filebeat-8.17.0",
      headers: json,
      body: () => Buffer.from('{"index_patterns":["filebeat-8.17.0"],"data_stream":{}}'),
      status: 200,
    },
    get("/_ingest/pipeline/filebeat-8.17.0-nginx-access-pipeline", /acknowledged/),
    {
      method: "POST",
      path: `/elasticsearch/_bulk?${new URLSearchParams(
        settingsOf("elasticsearch", "Filebeat", /^ {4}(\w+): (.*)$/gm),
      )}`,
      headers: { ...ndjson, "content-encoding": "gzip", "user-agent": "Elastic-filebeat/8.17.0" },
      body: (now) =>
        gzipSync(
          bulkOf(
            { create: { _index: "filebeat-8.17.0" } },
            {
              "@timestamp": new Date(now).toISOString(),
              message: "GET / 200",
              log: { offset: 4711, file: { path: "/var/log/a.log" } },
              agent: { type: "filebeat", version: "8.17.0" },
              host: { name: "web-1" },
              tags: ["a"],
            },
          ),
        ),
      status: 200,
      answer: /"errors":false,"items":\[\{"create":\{"status":201\}\}\]/,
    },
  ],
  query: '{agent_type="filebeat"}',
  stored: [
    {
      stream: {
        agent_type: "filebeat",
        host_name: "web-1",
        service_name,
        _index: "filebeat-8.17.0",
        agent_version: "8.17.0",
        log_file_path: "/var/log/a.log",
        log_offset: "4711",
        tags: '["a"]',
        detected_level: "unknown",
      },
      lines: ["GET / 200"],
    },
  ],
};

/** Logstash's output asks for the version and the license, then sends to a data stream. */
const logstash: RecordedAgent = {
  agent: "Logstash",
  requests: [
    { method: "HEAD", path: "/elasticsearch/", headers: {}, status: 200 },
    get("/", /"build_flavor":"default"/),
    get("/_license", /"type":"basic"/),
    get("/_nodes/http", /"nodes"/),
    {
      method: "POST",
      path: "/elasticsearch/_bulk?filter_path=errors,items.*.error,items.*.status",
      headers: { ...json, ...settingsOf("elasticsearch", "Logstash", /"(X-\S+)" => "(.*?)"/g) },
      body: (now) =>
        bulkOf(
          { index: { _id: null, _index: "logs", routing: null } },
          {
            "@timestamp": new Date(now).toISOString(),
            "@version": "1",
            message: "from logstash",
            host: { hostname: "ls" },
          },
        ),
      status: 200,
      answer: /"errors":false/,
    },
  ],
  query: '{host_hostname="ls"}',
  stored: [
    {
      stream: {
        ...{ host_hostname: "ls", service_name },
        ...{ _index: "logs", _version: "1", detected_level: "unknown" },
      },
      lines: ["from logstash"],
    },
  ],
};

/** Vector's elasticsearch sink checks the health of the cluster first; its http sink sends JSON lines. */
const vector: RecordedAgent = {
  agent: "Vector",
  requests: [
    get("/_cluster/health", /"status":"green"/),
    {
      method: "POST",
      path: `/elasticsearch/_bulk?${new URLSearchParams(
        settingsOf("elasticsearch", "Vector", /^(labels|\w+_field) = "(.*)"$/gm),
      )}`,
      headers: { ...ndjson, "content-encoding": "gzip" },
      body: (now) =>
        gzipSync(
          bulkOf(
            { create: { _index: "vector-2026.11.28", _type: "_doc" } },
            {
              timestamp: new Date(now).toISOString(),
              source_type: "demo_logs",
              message: "from vector",
              host: "v",
            },
          ),
        ),
      status: 200,
      answer: /"errors":false/,
    },
    {
      method: "POST",
      path: pathIn("json-lines", "Vector", /^uri = "(.*)"$/gm),
      headers: { ...ndjson, "content-encoding": "gzip" },
      body: (now) =>
        gzipSync(
          bulkOf({
            timestamp: new Date(now + 1).toISOString(),
            ...{ source_type: "demo_logs", message: "by http", host: "v" },
          }),
        ),
      status: 204,
    },
  ],
  query: '{host="v"}',
  stored: [
    {
      stream: {
        ...{ host: "v", service_name, source_type: "demo_logs", detected_level: "unknown" },
      },
      lines: ["by http"],
    },
    {
      stream: {
        ...{ host: "v", service_name, source_type: "demo_logs", detected_level: "unknown" },
        _index: "vector-2026.11.28",
      },
      lines: ["from vector"],
    },
  ],
};

/** The `es` and the `http` output of Fluent Bit. */
const fluentBit: RecordedAgent = {
  agent: "Fluent Bit",
  requests: [
    {
      method: "POST",
      path: `${pathIn("elasticsearch", "Fluent Bit", /^ *Path +(\S+)$/gm)}/_bulk`,
      headers: {
        ...{ ...ndjson, "user-agent": "Fluent-Bit" },
        ...settingsOf("elasticsearch", "Fluent Bit", /^ *Header +(X-\S+) (\S+)$/gm),
      },
      body: (now) =>
        bulkOf(
          { create: { _index: "fluent-bit" } },
          { "@timestamp": new Date(now).toISOString(), log: "by es", app: "fb" },
        ),
      status: 200,
      answer: /"errors":false/,
    },
    {
      method: "POST",
      path: pathIn("json-lines", "Fluent Bit", /^ *URI +(\S+)$/gm),
      headers: { ...json, "content-encoding": "gzip", "user-agent": "Fluent-Bit" },
      body: (now) =>
        gzipSync(bulkOf({ date: (now + 1) / 1000, log: "by http", app: "fb", stream: "stdout" })),
      status: 204,
    },
  ],
  query:
    '{app="fb"} | json log | line_format "{{or .log __line__}}" | drop __error__, __error_details__ | keep app, stream, _index',
  stored: [
    { stream: { app: "fb", _index: "fluent-bit" }, lines: ["by es"] },
    { stream: { app: "fb", stream: "stdout" }, lines: ["by http"] },
  ],
};

/** Docker's splunk driver asks by OPTIONS, then sends objects one behind the other, packed if told so. */
const docker: RecordedAgent = {
  agent: "Docker's splunk driver",
  requests: [
    {
      method: "OPTIONS",
      path: "/services/collector/event/1.0",
      headers: { authorization: "Splunk 176FCEBF-4CF5-4EDF-91BC-703796522D20" },
      status: 200,
    },
    {
      method: "POST",
      path: "/services/collector/event/1.0",
      headers: {
        authorization: "Splunk 176FCEBF-4CF5-4EDF-91BC-703796522D20",
        "content-encoding": "gzip",
      },
      body: (now) => {
        const event = (line: string, ms: number) =>
          JSON.stringify({
            event: { line, source: "stdout", tag: "2e1e1a2b3c4d", attrs: { image: "shop:1" } },
            time: `${((now + ms) / 1000).toFixed(6)}`,
            host: "docker-1",
            source: "docker",
            sourcetype: "container",
          });
        return gzipSync(`${event("one", 1)}${event("two", 0)}`);
      },
      status: 200,
      answer: /"code":0/,
    },
    {
      method: "POST",
      path: `${pathIn("splunk", "Docker", /splunk-url=(\S+)/g)}services/collector/event/1.0`,
      headers: { authorization: "Splunk tenant1", "content-encoding": "gzip" },
      body: (now) => {
        const rest = { host: "docker-1", source: "docker", sourcetype: "container" };
        return gzipSync(
          JSON.stringify({ event: "shop three", time: `${(now - 5000) / 1000}`, ...rest }),
        );
      },
      status: 200,
    },
    {
      method: "GET",
      path: "/services/collector/health",
      headers: {},
      status: 200,
      answer: /HEC is healthy/,
    },
    {
      method: "POST",
      path: "/services/collector/ack?channel=1",
      headers: json,
      body: () => Buffer.from('{"acks":[1]}'),
      status: 400,
      answer: /"code":14/,
    },
  ],
  query: '{sourcetype="container"}',
  stored: [
    {
      stream: {
        host: "docker-1",
        sourcetype: "container",
        service_name,
        source: "docker",
        detected_level: "unknown",
      },
      lines: [
        '{"line":"one","source":"stdout","tag":"2e1e1a2b3c4d","attrs":{"image":"shop:1"}}',
        '{"line":"two","source":"stdout","tag":"2e1e1a2b3c4d","attrs":{"image":"shop:1"}}',
        "shop three",
      ],
    },
  ],
};

const datadogSettings = settingsOf("datadog", "The agent", /^ *(\w+): (\S+)$/gm);

/** An agent of Datadog of version 7 (gzip), and an older one (deflate). */
const datadog: RecordedAgent = {
  agent: "Datadog's agent",
  requests: [
    {
      method: "POST",
      path: new URL("/api/v2/logs", datadogSettings.logs_dd_url).pathname,
      headers: {
        ...json,
        "content-encoding": "gzip",
        "dd-api-key": String(datadogSettings.api_key),
        "dd-protocol": "agent-json",
        "dd-evp-origin": "agent",
      },
      body: (now) =>
        gzipSync(
          JSON.stringify([
            {
              message: "new agent",
              status: "error",
              timestamp: now,
              hostname: "dd-1",
              service: "shop",
              ddsource: "java",
              ddtags: "env:prod,filename:shop.log",
            },
          ]),
        ),
      status: 202,
      answer: /^\{\}/,
    },
    {
      method: "POST",
      path: "/v1/input",
      headers: {
        ...json,
        "content-encoding": "deflate",
        "dd-api-key": "0123456789abcdef0123456789abcdef",
      },
      body: (now) =>
        deflateSync(
          JSON.stringify([{ message: "old agent", timestamp: now - 1, hostname: "dd-1" }]),
        ),
      status: 202,
    },
    {
      method: "POST",
      path: "/api/v2/logs",
      headers: json,
      body: () => Buffer.from("[]"),
      status: 202,
    },
  ],
  query: '{hostname="dd-1"}',
  stored: [
    {
      stream: {
        hostname: "dd-1",
        service: "shop",
        ddsource: "java",
        service_name: "shop",
        status: "error",
        level: "error",
        detected_level: "error",
        env: "prod",
        filename: "shop.log",
      },
      lines: ["new agent"],
    },
    {
      stream: { hostname: "dd-1", service_name, detected_level: "unknown" },
      lines: ["old agent"],
    },
  ],
};

/** Written after what the agents' documentation and their public sources say of their requests. */
export const recordedRequests = [filebeat, logstash, vector, fluentBit, docker, datadog];
