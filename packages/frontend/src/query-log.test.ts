import { expect, it } from "@jest/globals";
import { createLogger } from "@skald/runtime/log";
import type { QueryFacts } from "./query-context.js";
import { queryLogger } from "./query-log.js";
import { stats } from "./testing/api.js";

const facts: QueryFacts = {
  asked: {
    tenants: ["a", "b"],
    query: '{app="x"} |= "y z"',
    tags: "Source=dash board,org_id=evil,level=evil,=,b",
    lengthNs: 3_600_000_000_000n,
    stepNs: 15_000_000_000n,
    limit: 100,
  },
  status: 200,
  type: "filter",
  range: "range",
  seconds: 2,
  stats: { ...stats, queueSeconds: 0.5 },
};

function logged(options: { logsAll: boolean; longerThanMs: number }, ...all: QueryFacts[]) {
  const lines: string[] = [];
  const target = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ format: "logfmt", target });
  const tell = queryLogger({ log, ...options });
  for (const one of all) tell?.(one);
  return lines;
}

it("logs a query with the names that dashboards read, and the tags of the client", () => {
  const [line = ""] = logged({ logsAll: true, longerThanMs: 0 }, facts);
  for (const part of [
    "caller=metrics.go component=frontend org_id=a|b latency=fast",
    'query="{app=\\"x\\"} |= \\"y z\\""',
    "query_type=filter range_type=range length=1h0m0s step=15s limit=100 status=200 duration=2s",
    "total_bytes=30B",
    "throughput=15B",
    "total_lines=3",
    "queue_time=500ms",
    'source="dash board"',
  ]) {
    expect(line).toContain(part);
  }
  expect(line).not.toContain("evil");
});

it("logs a query that failed, without statistics", () => {
  const [line = ""] = logged(
    { logsAll: true, longerThanMs: 0 },
    { ...facts, seconds: 61, status: 504, stats: undefined },
  );
  expect(line).toContain("latency=slow");
  expect(line).toContain("status=504 duration=1m1s");
  expect(line).not.toContain("total_bytes");
});

it.each([
  ["nothing by default", { logsAll: false, longerThanMs: 0 }, 0],
  ["what takes longer", { logsAll: false, longerThanMs: 1000 }, 1],
  ["all, below zero", { logsAll: false, longerThanMs: -1 }, 2],
  ["each once", { logsAll: true, longerThanMs: 1000 }, 2],
])("logs %s", (_, options, count) => {
  expect(logged(options, facts, { ...facts, seconds: 0.1 })).toHaveLength(count);
});
