import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { nowNs, pushJson, queryLines } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";

let server: TestServer;
beforeAll(async () => {
  const flags = ["-compactor.retention-enabled=true", "-compactor.delete-request-store=filesystem"];
  server = await startServer(makeFolder(), flags);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const skald = (...argv: string[]) =>
  runProgram(binSkald, argv, { env: { SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent" } });

function file(name: string, text: string): string {
  const path = join(makeFolder(), name);
  writeFileSync(path, text);
  return path;
}

const group = (name: string, limit: number) =>
  `  - name: ${name}\n    interval: 1m\n    rules:\n      - alert: A\n        expr: sum(rate({app="x"}[1m])) > ${limit}\n        for: 5m\n`;

describe("rules", () => {
  it("check finds what is wrong, without a server: 1", async () => {
    const good = file("good.yaml", `groups:\n${group("g", 1)}`);
    const bad = file("bad.yaml", `groups:\n${group("g", 1).replace("rate", "rat")}`);
    expect(await skald("rules", "check", good, "--", good)).toMatchObject({ code: 0, stderr: "" });
    const found = await skald("rules", "check", good, bad);
    expect(found.code).toBe(1);
    expect(found.stdout).toBe(`${good}: 1 groups, 1 rules, all good\n`);
    expect(found.stderr).toMatch(
      /bad\.yaml: could not parse expression for alert 'A' in group 'g'/,
    );
  });

  it("test runs rules over lines: 0 where all comes out as said, else 1 with both", async () => {
    const rules = file(
      "rules.yaml",
      `groups:
  - name: g
    labels: {team: shop}
    rules:
      - alert: ManyErrors
        expr: sum by (app) (count_over_time({app=~".+"} |= "error" [1m])) > 3
        for: 2m
        labels: {severity: page}
        annotations: {summary: "{{ $value }} errors of {{ $labels.app }}"}
`,
    );
    const tests = (count: number, summary: string) =>
      file(
        "test.yaml",
        `rule_files: [${rules}]
evaluation_interval: 1m
tests:
  - name: errors
    input_streams:
      - labels: '{app="api", env="prod"}'
        lines:
          - {line: 'level=error msg="x"', at: 1s, every: 10s, times: 30}
          - level=info
      - {labels: {app: web}, lines: [{line: error, at: 90s, times: 4}]}
    logql_expr_test:
      - expr: sum by (app) (count_over_time({app=~".+"}[2m]))
        eval_time: 2m
        exp_samples: [{labels: '{app="web"}', value: 4}, {labels: {app: api}, value: ${count}}]
    alert_rule_test:
      - {alertname: ManyErrors, eval_time: 2m}
      - alertname: ManyErrors
        eval_time: 3m
        exp_alerts:
          - exp_labels: {app: api, severity: page, team: shop}
            exp_annotations: {summary: ${summary}}
      - {alertname: ManyErrors, eval_time: 7m}
  - name: nothing
    logql_expr_test: [{expr: 'sum(count_over_time({app="api"}[1h]))', eval_time: 5m}]
`,
      );
    const good = tests(12, "6 errors of api");
    expect(await skald("rules", "test", good)).toEqual({
      ...{ code: 0, stderr: "", stdout: `${good}: 2 tests, all good\n` },
    });
    const bad = tests(13, "7 errors of api");
    const { code, stderr } = await skald("rules", "test", bad);
    expect(code).toBe(1);
    expect(stderr.split("\n")).toEqual([
      expect.stringMatching(/errors: sum by .* at 2m: expected .*13.*, got .*12/),
      expect.stringMatching(/errors: ManyErrors at 3m: expected .*"7 errors.*, got .*"6 errors/),
      "",
    ]);
    const wrong = file("wrong.yaml", "tests: [{input_series: []}]");
    expect(await skald("rules", "test", wrong)).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("unknown key input_series; known are name") },
    });
  });

  it("sync brings a namespace to what files say, and diff shows it: 1, then 0", async () => {
    const first = file("shop.yaml", `groups:\n${group("a", 1)}${group("b", 1)}`);
    const second = file("any.yaml", `namespace: shop\ngroups:\n${group("b", 2)}${group("c", 1)}`);
    const other = file("other.yaml", `groups:\n${group("z", 1)}`);
    const diff = await skald("rules", "diff", first);
    expect(diff).toMatchObject({ code: 1, stdout: "+ shop/a (1 rules)\n+ shop/b (1 rules)\n" });
    expect(await skald("rules", "sync", "--dry-run", first)).toMatchObject({
      code: 0,
      stdout: diff.stdout,
    });
    expect(await skald("rules", "sync", first, other)).toMatchObject({ code: 0 });
    expect(await skald("rules", "diff", first, other)).toMatchObject({ code: 0, stdout: "" });
    const changes = "~ shop/b (1 rules)\n+ shop/c (1 rules)\n- shop/a (1 rules)\n";
    expect(await skald("rules", "sync", second)).toMatchObject({ code: 0, stdout: changes });
    expect(await skald("rules", "diff", second, other)).toMatchObject({ code: 0, stdout: "" });
  });

  it("a group alone lists its commands", async () => {
    const { code, stdout } = await skald("rules");
    expect({ code, lists: /^ {2}sync +makes/m.test(stdout) }).toEqual({ code: 2, lists: true });
  });
});

describe("delete", () => {
  it("shows what would go, needs a yes, and can be taken back", async () => {
    for (const line of ["keep", "drop 1", "drop 2"])
      await pushJson(server.url, { app: "d" }, [[nowNs(), line]]);
    const query = '{app="d"} |= "drop"';
    const asked = await skald("delete", "add", query, "--since=10m", "-z", "UTC");
    expect(asked).toMatchObject({ code: 2, stdout: "" });
    expect(asked.stderr).toMatch(
      /^2 lines from .*Z to .*Z would go, the newest are:\n {2}.*Z drop/,
    );
    expect(asked.stderr).toContain("nothing was deleted: without a terminal give --yes");
    const done = await skald("delete", "create", query, "--since=10m");
    expect(done.code).toBe(0);
    const id = /the request is (\w+)/.exec(done.stderr)?.[1] ?? "";
    await waitFor(async () => (await queryLines(server.url, '{app="d"}')).length === 1);
    const listed = await skald("delete", "list", "-z", "UTC");
    expect(listed.stdout).toMatch(
      new RegExp(`^request +status +from +to +query\n${id} +received +\\S+Z +\\S+Z +\\{app="d"\\}`),
    );
    expect(JSON.parse((await skald("delete", "list", "--json")).stdout)).toMatchObject({
      request_id: id,
    });
    expect(await skald("delete", "cancel", id)).toMatchObject({ code: 0 });
    await waitFor(async () => (await queryLines(server.url, '{app="d"}')).length === 3);
    expect(await skald("delete", "cancel", "none")).toMatchObject({ code: 3 });
  });
});

it("bench pushes lines, asks for them, and prints the times", async () => {
  const { code, stdout, stderr } = await skald("bench", "--lines", "1500", "--repeat", "2");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^pushed lines .*\n +1500 /);
  for (const name of ["newest 100", "one line", "count by field", "quantile"])
    expect(stdout).toMatch(new RegExp(`^${name} .*\\d$`, "m"));
  const lines = await queryLines(server.url, '{job="skald-bench"} | json | status >= 500');
  expect(lines).toHaveLength(30);
  expect(await skald("bench", "--lines", "0")).toMatchObject({ code: 2 });
});
