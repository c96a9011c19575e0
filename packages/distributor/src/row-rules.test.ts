import { describe, expect, it } from "@jest/globals";
import { makePushBody } from "@skald/testkit";
import type { PushLimits } from "./config.js";
import { jsonPush, makeHarness, testNowNs } from "./testing/harness.js";

const dayMs = 86_400_000;
const stream = `'{app="a", service_name="a"}'`;
const one = jsonPush({ app: "a" }, [[0, "x"]]);

function protobufPush(labels: string | Uint8Array) {
  const body = makePushBody([{ labels, rows: [{ ns: testNowNs, line: "x" }] }]);
  return { body, contentType: "application/x-protobuf" };
}

describe("what is refused of a push", () => {
  const many = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`l${i}`, "v"]));
  const big = "m".repeat(66_000);
  const hint = (key: string) =>
    `Please see \`limits_config.${key}\` or contact your Loki administrator to increase it.`;

  it.each<[string, object, [number | string, ...unknown[]], Partial<PushLimits>, string, string]>([
    [
      "greater_than_max_sample_age",
      { app: "a" },
      [-8 * dayMs, "x"],
      {},
      `entry for stream ${stream} has timestamp too old: 2026-11-12T10:00:00Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z`,
      "",
    ],
    [
      "greater_than_max_sample_age",
      { app: "a" },
      ["-1", "x"],
      {},
      `entry for stream ${stream} has timestamp too old: 1969-12-31T23:59:59Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z`,
      "",
    ],
    [
      "too_far_in_future",
      { app: "a" },
      [600_001, "x"],
      {},
      `entry for stream ${stream} has timestamp too new: 2026-11-20T10:10:00Z`,
      "",
    ],
    [
      "line_too_long",
      { app: "a" },
      [0, "y".repeat(262_145)],
      {},
      `max entry size '262144' bytes exceeded for stream ${stream} while adding an entry with length '262145' bytes`,
      "",
    ],
    [
      "disallowed_structured_metadata",
      { app: "a" },
      [0, "x", { k: "v" }],
      { allow_structured_metadata: false },
      `stream ${stream} includes structured metadata, but this feature is disallowed. Please see \`limits_config.allow_structured_metadata\` or contact your Loki administrator to enable it.`,
      "",
    ],
    [
      "structured_metadata_too_large",
      { app: "a" },
      [0, "x", { big }],
      {},
      `stream ${stream} has structured metadata too large: '66003' bytes, limit: '65536' bytes. ${hint("max_structured_metadata_size")}`,
      "",
    ],
    [
      "structured_metadata_too_many",
      { app: "a" },
      [0, "x", { a: "1", b: "2" }],
      { max_structured_metadata_entries_count: 1 },
      `stream ${stream} has too many structured metadata labels: '2', limit: '1'. ${hint("max_structured_metadata_entries_count")}`,
      "",
    ],
    [
      "max_label_names_per_series",
      { app: "a", ...many },
      [0, "x"],
      {},
      "' has 16 label names; limit 15",
      `entry for stream '{app="a", l0="v", l1="v", l10="v"`,
    ],
    [
      "label_name_too_long",
      { ["n".repeat(1025)]: "v" },
      [0, "x"],
      {},
      `="v", service_name="unknown_service"}' has label name too long: '${"n".repeat(1025)}'`,
      "stream '{nnn",
    ],
    [
      "label_value_too_long",
      { app: "é".repeat(1025) },
      [0, "x"],
      {},
      `"}' has label value too long: '${"é".repeat(1025)}'`,
      "stream '{app=",
    ],
    [
      "missing_labels",
      {},
      [0, "x"],
      { discover_service_name: [] },
      "error at least one label pair is required per stream",
      "",
    ],
    [
      "missing_enforced_labels",
      { app: "a" },
      [0, "x"],
      { enforced_labels: ["app", "env", "team"] },
      `missing required labels 'env,team' for user 't1' for stream ${stream} (policy: '')`,
      "",
    ],
    [
      "invalid_labels",
      { app: "a", __backfill__: "true" },
      [0, "x"],
      {},
      "has the reserved label '__backfill__'; send the header X-Loki-Backfill-Shard instead",
      "stream '{__backfill__=",
    ],
  ])("%s", async (reason, labels, value, limits, text, start) => {
    const { push, stored, counter } = makeHarness(limits);
    const bad = jsonPush(labels as Record<string, unknown>, [value]).streams;
    const fine = limits.enforced_labels === undefined ? one.streams : [];
    const answer = await push({ streams: [...bad, ...fine] });
    expect(answer.status).toBe(400);
    expect(answer.text?.endsWith(text)).toBe(true);
    expect(answer.text?.startsWith(start)).toBe(true);
    expect(stored().map((row) => row.line)).toEqual(fine.map(() => "x"));
    expect(await counter("loki_discarded_samples_total", { reason, tenant: "t1" })).toBe(1);
    expect(await counter("loki_discarded_samples_total")).toBe(1);
    expect(await counter("loki_discarded_bytes_total", { reason })).toBeGreaterThan(0);
  });

  it("names a label given twice", async () => {
    const { push } = makeHarness();
    const { body, contentType } = protobufPush('{app="a",app="b"}');
    expect(await push(body, { contentType })).toEqual({
      status: 400,
      text: `stream '{app="a", app="b", service_name="a"}' has duplicate label name: 'app'`,
    });
  });

  it.each([
    ["exactly a week old", -7 * dayMs, 204],
    ["a moment older", -7 * dayMs - 0.000001, 400],
    ["exactly ten minutes ahead", 600_000, 204],
    ["a moment further", 600_000.001, 400],
  ])("an entry %s", async (_, ms, status) => {
    const { push } = makeHarness();
    const time = String(
      testNowNs +
        BigInt(Math.floor(ms)) * 1_000_000n +
        BigInt(Math.round((ms - Math.floor(ms)) * 1e6)),
    );
    expect((await push(jsonPush({ app: "a" }, [[time, "x"]]))).status).toBe(status);
  });

  it("takes old entries where they are not rejected, but none that has no time", async () => {
    const { push } = makeHarness({ reject_old_samples: false });
    expect((await push(jsonPush({ app: "a" }, [["0", "x"]]))).status).toBe(204);
    const answer = await push({ streams: [{ stream: { app: "a" }, values: [[]] }] });
    expect(answer.text).toMatch(/has timestamp too old: 0001-01-01T00:00:00Z/);
  });

  it("joins kinds of errors and counts them, with the text of the first", async () => {
    const { push, stored, counter } = makeHarness();
    const answer = await push(
      jsonPush({ app: "a" }, [
        [-8 * dayMs, "old"],
        [7_200_000, "new"],
        [-9 * dayMs, "older"],
        [-5, "ok"],
      ]),
    );
    expect(answer).toEqual({
      status: 400,
      text:
        `2 errors like: entry for stream ${stream} has timestamp too old: 2026-11-12T10:00:00Z, oldest acceptable timestamp is: 2026-11-13T10:00:00Z; ` +
        `1 errors like: entry for stream ${stream} has timestamp too new: 2026-11-20T12:00:00Z`,
    });
    expect(stored().map((row) => row.line)).toEqual(["ok"]);
    expect(await counter("loki_discarded_samples_total")).toBe(3);
    expect(await counter("loki_discarded_bytes_total")).toBe("oldnewolder".length);
    expect(await counter("loki_distributor_lines_received_total", { tenant: "t1" })).toBe(4);
    expect(await counter("loki_distributor_bytes_received_total")).toBe("oldnewolderok".length);
  });

  it("counts what came, lines and metadata, and what was refused, by the labels of dashboards", async () => {
    const { push, text } = makeHarness();
    const [app] = jsonPush({ app: "a" }, [
      [0, "line", { k: "value" }],
      [dayMs, "new", { k: "v" }],
    ]).streams;
    const [own] = jsonPush({ __pattern__: "x" }, [
      [0, "own"],
      [dayMs, "own new"],
    ]).streams;
    await push({ streams: [app, own] });
    const lines = (await text()).split("\n").filter((line) => /_(received|discarded)_/.test(line));
    const sums = lines.filter((line) => !line.startsWith("#"));
    const external = 'is_internal_stream="false",policy="",format="loki"} ';
    const internal = 'is_internal_stream="true",policy="",format="loki"} ';
    expect(sums.sort()).toEqual([
      `loki_discarded_bytes_total{reason="too_far_in_future",tenant="t1",retention_hours="0",policy="",format="loki"} 12`,
      `loki_discarded_samples_total{reason="too_far_in_future",tenant="t1",retention_hours="0",policy="",format="loki"} 2`,
      `loki_distributor_bytes_received_total{tenant="t1",retention_hours="0",${external}15`,
      `loki_distributor_bytes_received_total{tenant="t1",retention_hours="0",${internal}10`,
      `loki_distributor_lines_received_total{tenant="t1",${external}2`,
      `loki_distributor_lines_received_total{tenant="t1",${internal}2`,
      `loki_distributor_structured_metadata_bytes_received_total{tenant="t1",retention_hours="0",${external}8`,
    ]);
  });

  it("answers 200000 bad entries with one short text", async () => {
    const { push } = makeHarness({}, { maxDecompressedBytes: 1 << 30 });
    const rows = Array.from({ length: 200_000 }, () => ["1", "x"] as const);
    const answer = await push(jsonPush({ app: "a" }, rows));
    expect(answer.text).toMatch(/^200000 errors like: entry for stream .* too old/);
    expect(answer.text!.length).toBeLessThan(300);
  });
});
