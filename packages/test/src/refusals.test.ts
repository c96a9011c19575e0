import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { formatRfc3339 } from "@skald/model";
import { nowNs } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";

let server: TestServer;

/** The tenants, each with one low limit. Agents and dashboards know the texts of these errors. */
const overrides = {
  rate: { ingestion_rate_mb: 0.00001, ingestion_burst_size_mb: 0.00001 },
  stream_rate: { per_stream_rate_limit: "10B", per_stream_rate_limit_burst: "10B" },
  streams: { max_global_streams_per_user: 1 },
  no_metadata: { allow_structured_metadata: false },
  small_metadata: { max_structured_metadata_size: "10B" },
  few_metadata: { max_structured_metadata_entries_count: 1 },
  short_lines: { max_line_size: "10B" },
  few_labels: { max_label_names_per_series: 1 },
  short_names: { max_label_name_length: 10 },
  short_values: { max_label_value_length: 3 },
  enforced: { enforced_labels: ["team", "env"] },
  blocked: { block_ingestion_until: "2100-01-02T03:04:05Z" },
} as const;

beforeAll(async () => {
  const folder = makeFolder();
  const file = join(folder, "overrides.yaml");
  // A JSON text is also YAML.
  writeFileSync(file, JSON.stringify({ overrides }));
  server = await startServer(folder, ["-auth.enabled=true", `-runtime-config.file=${file}`]);
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const now = BigInt(nowNs());
const time = `${now}`;
const goTime = formatRfc3339(now).replace("T", " ").replace("Z", " +0000 UTC");
const stream = '{app="a", service_name="a"}';
const advice = (key: string) =>
  `Please see \`limits_config.${key}\` or contact your Loki administrator to increase it.`;
const raise = "or contact your Loki administrator to see if the limit can be increased";

async function push(tenant: string, streams: readonly object[]) {
  const response = await fetch(`${server.url}/loki/api/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-scope-orgid": tenant },
    body: JSON.stringify({ streams }),
  });
  return { status: response.status, text: await response.text() };
}

const line = "0123456789abcdef";
const one = (labels: object, ...more: readonly unknown[]) => [
  { stream: labels, values: [[time, line, ...more]] },
];

describe("a push beyond a limit is told", () => {
  it.each<[keyof typeof overrides, readonly object[], number, string]>([
    [
      "rate",
      one({ app: "a" }),
      429,
      `ingestion rate limit exceeded for user rate (limit: 10 bytes/sec) while attempting to ingest '1' lines totaling '16' bytes, reduce log volume ${raise}`,
    ],
    [
      "stream_rate",
      one({ app: "a" }),
      429,
      `entry with timestamp ${goTime} ignored, reason: 'Per stream rate limit exceeded (limit: 10B/sec) while attempting to ingest for stream '${stream}' totaling 16B, consider splitting a stream via additional labels ${raise}',\nuser 'stream_rate', total ignored: 1 out of 1 for stream: ${stream}`,
    ],
    [
      "streams",
      [...one({ app: "a" }), ...one({ app: "b" })],
      429,
      `maximum active stream limit exceeded when trying to create stream {app="b", service_name="b"}, reduce the number of active streams (reduce labels or reduce label values), ${raise}, user: 'streams'`,
    ],
    [
      "no_metadata",
      one({ app: "a" }, { a: "b" }),
      400,
      `stream '${stream}' includes structured metadata, but this feature is disallowed. Please see \`limits_config.allow_structured_metadata\` or contact your Loki administrator to enable it.`,
    ],
    [
      "small_metadata",
      one({ app: "a" }, { long_name: "value" }),
      400,
      `stream '${stream}' has structured metadata too large: '14' bytes, limit: '10' bytes. ${advice("max_structured_metadata_size")}`,
    ],
    [
      "few_metadata",
      one({ app: "a" }, { a: "1", b: "2" }),
      400,
      `stream '${stream}' has too many structured metadata labels: '2', limit: '1'. ${advice("max_structured_metadata_entries_count")}`,
    ],
    [
      "short_lines",
      one({ app: "a" }),
      400,
      `max entry size '10' bytes exceeded for stream '${stream}' while adding an entry with length '16' bytes`,
    ],
    [
      "few_labels",
      one({ app: "a", x: "y" }),
      400,
      `entry for stream '{app="a", service_name="a", x="y"}' has 2 label names; limit 1`,
    ],
    [
      "short_names",
      one({ app: "a", a_long_name: "y" }),
      400,
      `stream '{a_long_name="y", app="a", service_name="a"}' has label name too long: 'a_long_name'`,
    ],
    [
      "short_values",
      one({ app: "abcd" }),
      400,
      `stream '{app="abcd", service_name="abcd"}' has label value too long: 'abcd'`,
    ],
    [
      "enforced",
      one({ app: "a" }),
      400,
      `missing required labels 'team,env' for user 'enforced' for stream '${stream}' (policy: '')`,
    ],
    [
      "blocked",
      one({ app: "a" }),
      260,
      "ingestion blocked for user 'blocked' until '2100-01-02T03:04:05Z' with status code '260'",
    ],
  ])("which one: %s", async (tenant, streams, status, text) => {
    expect(await push(tenant, streams)).toEqual({ status, text: `${text}\n` });
  });
});
