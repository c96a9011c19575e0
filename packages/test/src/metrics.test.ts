import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import { getJson, nowNs, pushJson, queryLines } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";

let server: TestServer;
let text = "";

beforeAll(async () => {
  server = await startServer(makeFolder(), [
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
  ]);
  const { url } = server;
  const values = [[nowNs(), "level=info v=1"]] as const;
  expect(await pushJson(url, { app: "a" }, values)).toBe(204);
  expect(await pushJson(url, { app: "a" }, [["1", "too old"]])).toBe(400);
  expect((await fetch(`${url}/flush`, { method: "POST" })).status).toBe(204);
  expect(await queryLines(url, '{app="a"}')).toEqual(["level=info v=1"]);
  expect(await queryLines(url, '{app="a"} | logfmt | v > 0')).toEqual(["level=info v=1"]);
  await getJson(url, "/loki/api/v1/query", { query: 'sum(count_over_time({app="a"}[5m]))' });
  const deletion = `${url}/loki/api/v1/delete?query={app="b"}&start=1700000000`;
  expect((await fetch(deletion, { method: "POST" })).status).toBe(204);
  text = await (await fetch(`${url}/metrics`)).text();
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

/** Metrics that public dashboards and alerts read, with the labels that they group by. */
it.each([
  ["build_info", "version"],
  ["request_duration_seconds_count", "method route status_code ws"],
  ["inflight_requests", "method route"],
  ["request_message_bytes_count", "method route"],
  ["response_message_bytes_count", "method route"],
  ["tcp_connections", "protocol"],
  ["panic_total", ""],
  ["connections_cut_total", "protocol reason"],
  ["runtime_config_last_reload_successful", ""],
  ["distributor_bytes_received_total", "tenant retention_hours is_internal_stream policy format"],
  ["distributor_lines_received_total", "tenant is_internal_stream policy format"],
  ["distributor_ingester_appends_total", "ingester"],
  ["discarded_samples_total", "reason tenant retention_hours policy format"],
  ["discarded_bytes_total", "reason tenant retention_hours policy format"],
  ["distributor_ingester_append_failures_total", "ingester"],
  ["distributor_ingester_append_timeouts_total", "ingester"],
  ["distributor_replication_factor", ""],
  ["internal_log_messages_total", "level"],
  ["querier_tail_active", ""],
  ["query_frontend_queries_in_progress", ""],
  ["query_frontend_partitions_count", ""],
  ["compactor_apply_retention_operation_total", "status"],
  ["compactor_apply_retention_operation_duration_seconds", ""],
  ["compactor_apply_retention_last_successful_run_timestamp_seconds", ""],
  ["ingester_memory_streams", "tenant"],
  ["ingester_memory_chunks", ""],
  ["ingester_flush_queue_length", ""],
  ["ingester_streams_created_total", "tenant"],
  ["ingester_chunks_created_total", ""],
  ["ingester_chunks_flushed_total", "reason"],
  ["ingester_chunks_stored_total", "tenant"],
  ["ingester_chunk_stored_bytes_total", "tenant"],
  ["ingester_chunk_size_bytes_count", ""],
  ["ingester_chunk_entries_count", ""],
  ["ingester_chunk_utilization_count", ""],
  ["ingester_chunk_age_seconds_count", ""],
  ["ingester_chunk_bounds_hours_count", ""],
  ["ingester_chunk_compression_ratio_count", ""],
  ["ingester_wal_records_logged_total", ""],
  ["ingester_wal_replay_active", ""],
  ["objstore_bucket_operations_total", "bucket operation"],
  ["objstore_bucket_operation_duration_seconds_count", "bucket operation"],
  ["objstore_bucket_operation_failures_total", "bucket operation"],
  ["objstore_bucket_last_successful_upload_time", "bucket"],
  ["chunk_store_deduped_chunks_total", ""],
  ["index_request_duration_seconds_count", "operation status_code"],
  ["logql_querystats_latency_seconds_count", "status_code type range"],
  ["logql_querystats_bytes_processed_per_seconds_count", "status_code type range latency_type"],
  ["logql_querystats_downloaded_chunk_total", "status_code type range"],
  ["logql_querystats_duplicates_total", ""],
  ["logql_querystats_ingester_sent_lines_total", ""],
  ["compactor_delete_requests_received_total", "user"],
  ["compactor_pending_delete_requests_count", ""],
  ["compactor_oldest_pending_delete_request_age_seconds", ""],
])("a process tells loki_%s", (name, labels) => {
  const line = text.split("\n").find((found) => found.startsWith(`loki_${name}`)) ?? "";
  const [, shown, rest = ""] = /^(\w+)(.*)$/.exec(line) ?? [];
  expect(shown).toBe(`loki_${name}`);
  for (const label of labels.split(" ").filter((found) => found !== ""))
    expect(rest).toContain(`${label}="`);
});

it("each kind of query is counted once", () => {
  const count = (type: string, range: string) =>
    `loki_logql_querystats_latency_seconds_count{status_code="200",type="${type}",range="${range}"} 1\n`;
  expect(text).toContain(count("limited", "range"));
  expect(text).toContain(count("filter", "range"));
  expect(text).toContain(count("metric", "instant"));
});

needs("promtool")("names are those that promtool takes", () => {
  const { stdout, stderr } = spawnSync("promtool", ["check", "metrics"], { input: text });
  // Dashboards use these names.
  expect(`${stdout}${stderr}`.trim().split("\n").sort()).toEqual([
    'loki_compactor_pending_delete_requests_count non-histogram and non-summary metrics should not have "_count" suffix',
    'loki_ingester_chunk_bounds_hours use base unit "seconds" instead of "hours"',
  ]);
});
