import { deflateSync, gzipSync } from "node:zlib";

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
      path: "/elasticsearch/_bulk?_stream_fields=host.name,agent.type&_msg_field=message&_time_field=@timestamp",
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
      path: "/elasticsearch/_bulk?filter_path=errors,items.*.error,items.*.status&labels=host.hostname",
      headers: json,
      body: (now) =>
        bulkOf(
          { index: { _id: null, _index: "logs-generic-default", routing: null } },
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
  query: '{host_hostname="ls"} | json message | line_format "{{.message}}" | drop message',
  stored: [
    {
      stream: {
        host_hostname: "ls",
        service_name,
        _index: "logs-generic-default",
        detected_level: "unknown",
      },
      lines: ["from logstash"],
    },
  ],
};

/** Vector's elasticsearch sink checks the health of the cluster first. */
const vector: RecordedAgent = {
  agent: "Vector",
  requests: [
    get("/_cluster/health", /"status":"green"/),
    {
      method: "POST",
      path: "/elasticsearch/_bulk",
      headers: {
        ...ndjson,
        "content-encoding": "gzip",
        "x-skald-labels": "source_type",
        "x-skald-message-field": "message",
        "x-skald-time-field": "timestamp",
      },
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
  ],
  query: '{source_type="demo_logs"}',
  stored: [
    {
      stream: {
        source_type: "demo_logs",
        service_name,
        _index: "vector-2026.11.28",
        host: "v",
        detected_level: "unknown",
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
      path: "/elasticsearch/_bulk?_stream_fields=fb&_msg_field=log",
      headers: { ...ndjson, "user-agent": "Fluent-Bit" },
      body: (now) =>
        bulkOf(
          { create: { _index: "fluent-bit" } },
          { "@timestamp": new Date(now).toISOString(), log: "by es", fb: "x" },
        ),
      status: 200,
      answer: /"errors":false/,
    },
    {
      method: "POST",
      path: "/insert/jsonline?_stream_fields=fb&_msg_field=log&_time_field=date",
      headers: { ...json, "content-encoding": "gzip", "user-agent": "Fluent-Bit" },
      body: (now) =>
        gzipSync(bulkOf({ date: (now + 1) / 1000, log: "by http", fb: "x", stream: "stdout" })),
      status: 204,
    },
  ],
  query: '{fb="x"} | drop detected_level | keep fb, stream, _index',
  stored: [
    { stream: { fb: "x", _index: "fluent-bit" }, lines: ["by es"] },
    { stream: { fb: "x", stream: "stdout" }, lines: ["by http"] },
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
      ],
    },
  ],
};

/** An agent of Datadog of version 7 (gzip), and an older one (deflate). */
const datadog: RecordedAgent = {
  agent: "Datadog's agent",
  requests: [
    {
      method: "POST",
      path: "/api/v2/logs",
      headers: {
        ...json,
        "content-encoding": "gzip",
        "dd-api-key": "0123456789abcdef0123456789abcdef",
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
