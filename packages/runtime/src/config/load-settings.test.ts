import { describe, expect, it } from "@jest/globals";
import { loadSettings } from "./load-settings.js";
import { loadTest, testPlan, tree } from "./testing/settings.js";

describe("layers", () => {
  it("takes defaults, what follows, the file, and flags, each over the one before", () => {
    expect(tree(loadTest(""))).toMatchObject({
      server: { port: 3100, tls: false, limits: { body: 1_048_576 } },
      limits_config: { query_timeout: 60_000 },
    });
    expect(tree(loadTest("server: {port: 5}"))).toMatchObject({
      limits_config: { query_timeout: 5 },
    });
    expect(tree(loadTest("server: {port: 5}\nlimits_config: {query_timeout: 2s}"))).toMatchObject({
      limits_config: { query_timeout: 2000 },
    });
    expect(tree(loadTest("server: {port: 5}", "-server.port=7"))).toMatchObject({
      server: { port: 7 },
    });
  });

  it("reads the built-in file when none is named", () => {
    const loaded = loadSettings(testPlan, [], { env: {}, readFile: () => "" });
    expect(tree(loaded)).toMatchObject({ server: { port: 1 } });
  });

  it("takes the first file that exists", () => {
    const loaded = loadTest("server: {port: 8}", "-config.file=gone.yaml, c.yaml");
    expect(tree(loaded)).toMatchObject({ server: { port: 8 } });
    expect(loadTest("", "-config.file=gone.yaml")).toEqual({
      kind: "exit",
      code: 1,
      text: "CONFIG ERROR: gone.yaml does not exist, set config.file for custom config path\n",
    });
  });

  it("tells of a file that cannot be read", () => {
    const readFile = (): string => {
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    };
    const loaded = loadSettings(testPlan, ["-config.file=x"], { env: {}, readFile });
    expect(tree(loaded)).toBe("CONFIG ERROR: cannot read x: EACCES: permission denied\n");
  });

  it("expands variables only when told to", () => {
    const yaml = "server: {port: '${PORT:-5}'}";
    expect(tree(loadTest(yaml, "-config.expand-env=true"))).toMatchObject({ server: { port: 99 } });
    expect(tree(loadTest(yaml))).toBe(
      'CONFIG ERROR: c.yaml:1:16: server.port: "${PORT:-5}" is not a number; -config.expand-env=true replaces ${...}\n',
    );
  });
});

describe("YAML", () => {
  it.each([
    ["an empty section", "server:\nlimits_config: {}", {}],
    ["a key without value", "server: {port: }", { server: { port: 3100 } }],
    ["a quoted number", 'server: {port: "12"}', { server: { port: 12 } }],
    ["a word of YAML 1.1", "server: {tls: yes}", { server: { tls: true } }],
    [
      "an exponent",
      "server: {limits: {body: 1.572864e+06}}",
      { server: { limits: { body: 1_572_864 } } },
    ],
    ["a list", "limits_config: {labels: [b, 1]}", { limits_config: { labels: ["b", "1"] } }],
    [
      "a list with commas",
      "limits_config: {labels: 'b,c'}",
      { limits_config: { labels: ["b", "c"] } },
    ],
    ["data", "limits_config: {names: {x: [y]}}", { limits_config: { names: { x: ["y"] } } }],
    [
      "sections",
      "clients: [{url: u}, ]",
      { clients: [{ url: "u", timeout: 10_000, password: "" }] },
    ],
    [
      "an alias",
      "server: &s {port: 9}\nlimits_config:\n  <<: {query_timeout: 3s}",
      { limits_config: { query_timeout: 3000 } },
    ],
    [
      "a merge below own keys",
      "server:\n  <<: [{port: 1, tls: true}, {port: 2}]\n  port: 3",
      { server: { port: 3, tls: true } },
    ],
    ["a comment only", "# nothing", { server: { port: 3100 } }],
  ])("takes %s", (_, yaml, want) => {
    expect(tree(loadTest(yaml))).toMatchObject(want);
  });

  it.each([
    [
      "an unknown key",
      "server:\n  prot: 1",
      'c.yaml:2:3: unknown key "prot" in server; did you mean "port"?',
    ],
    [
      "an unknown section",
      "sever: {}",
      'c.yaml:1:1: unknown key "sever" at the top; did you mean "server"?',
    ],
    [
      "a misplaced key",
      "server: {query_timeout: 1s}",
      'c.yaml:1:10: unknown key "query_timeout" in server; there is "limits_config.query_timeout"',
    ],
    [
      "an unknown key nowhere near",
      "server: {zzzzzzzz: 1}",
      'c.yaml:1:10: unknown key "zzzzzzzz" in server',
    ],
    [
      "an unknown key of an item",
      "clients: [{ulr: u}]",
      'c.yaml:1:12: unknown key "ulr" in clients[]; did you mean "url"?',
    ],
    [
      "a bad value",
      "server: {timeout: 5x}",
      'c.yaml:1:19: server.timeout: unknown unit "x" in duration "5x"; write it like 30s, 1h30m or 7d',
    ],
    [
      "a list for a scalar",
      "server: {port: [1]}",
      "c.yaml:1:16: server.port: must be an integer, not a list",
    ],
    [
      "a map for a list",
      "limits_config: {labels: {a: b}}",
      "c.yaml:1:25: limits_config.labels: must be a list, not a map",
    ],
    [
      "a scalar for a section",
      "server: on",
      'c.yaml:1:9: server: must be a section of keys, not "on"',
    ],
    [
      "a map for a list of sections",
      "clients: {}",
      "c.yaml:1:10: clients: must be a list, not a map",
    ],
    [
      "a scalar for an item",
      "clients: [5]",
      'c.yaml:1:11: clients[]: must be a section of keys, not "5"',
    ],
    [
      "bad data",
      "limits_config: {names: {x: 5}}",
      "c.yaml:1:24: limits_config.names.x: Invalid input: expected array, received number",
    ],
    ["a list at the root", "[1]", "c.yaml: must hold a map of sections, not a list"],
    ["a key twice", "server: {port: 1, port: 2}", "c.yaml:1:19: map keys must be unique"],
    ["a check", "server: {port: 666}", "bad port"],
  ])("refuses %s", (_, yaml, problem) => {
    expect(tree(loadTest(yaml))).toBe(`CONFIG ERROR: ${problem}\n`);
  });

  it("tells where broken YAML breaks", () => {
    expect(tree(loadTest("server:\n  port: [1"))).toMatch(
      /CONFIG ERROR: c\.yaml:2:\d+: flow sequence/,
    );
  });

  it("tells all errors at once", () => {
    expect(tree(loadTest("server: {port: 666, x: 1}", "-nope", "-server.tls=5"))).toBe(
      "MULTIPLE CONFIG ERRORS FOUND, PLEASE READ CAREFULLY\n" +
        "CONFIG ERROR: unknown flag -nope; -help lists all\n" +
        'CONFIG ERROR: flag -server.tls: "5" is not true or false\n' +
        'CONFIG ERROR: c.yaml:1:21: unknown key "x" in server\n' +
        "CONFIG ERROR: bad port\n",
    );
  });
});

describe("flags", () => {
  it.each([
    ["=", ["-server.port=7"], { server: { port: 7 } }],
    ["a second word", ["-server.port", "7"], { server: { port: 7 } }],
    ["two dashes", ["--server.port=7"], { server: { port: 7 } }],
    ["a bare boolean", ["-server.tls", "-server.port=7"], { server: { tls: true, port: 7 } }],
    ["a boolean with value", ["-server.tls=false"], { server: { tls: false } }],
    ["a value with =", ["-server.key=a=b"], { server: { key: "a=b" } }],
    ["an empty value", ["-ring.store="], { ring: { store: "" } }],
    ["a negative looking value", ["-ring.store", "-x"], { ring: { store: "-x" } }],
    [
      "a repeated list",
      ["-limits.labels=b,c", "-limits.labels=d"],
      { limits_config: { labels: ["b", "c", "d"] } },
    ],
    ["the last of a scalar", ["-server.port=1", "-server.port=2"], { server: { port: 2 } }],
  ])("take %s", (_, argv, want) => {
    expect(tree(loadTest("", ...argv))).toMatchObject(want);
  });

  it.each([
    ["a typing error", "-server.prot=1", "unknown flag -server.prot; did you mean -server.port?"],
    ["a missing value", "-server.port", "flag -server.port needs a value"],
    ["no dash", "server", 'unexpected argument "server"; flags start with a dash'],
    [
      "a bad value",
      "-server.timeout=1",
      'flag -server.timeout: missing unit in duration "1"; write it like 30s, 1h30m or 7d',
    ],
    ["a bad switch", "-verify-config=5", 'flag -verify-config: "5" is not true or false'],
  ])("tell %s", (_, argument, problem) => {
    expect(tree(loadTest("", argument))).toBe(`CONFIG ERROR: ${problem}\n`);
  });
});

describe("commands", () => {
  it("prints the version, the targets and the help", () => {
    expect(loadTest("", "-version")).toEqual({ kind: "exit", code: 0, text: "test 1\n" });
    expect(loadTest("", "-list-targets")).toEqual({ kind: "exit", code: 0, text: "all\n" });
    for (const flag of ["-help", "--help", "-h"]) {
      const text = tree(loadTest("", flag));
      expect(text).toContain("Usage: test\n\n  -config.file\n");
      expect(text).toContain(
        "\nserver: Listens.\n  -server.port integer\n        port [server.port] (default 3100)\n",
      );
      expect(text).toContain("body [server.limits.body] (default 1MB)");
    }
  });

  it("verifies", () => {
    expect(loadTest("ring: {host: x}", "-verify-config")).toEqual({
      kind: "exit",
      code: 0,
      text: "CONFIG WARNING: needs no ring; no effect: ring.host (c.yaml:1:8)\nconfig is valid\n",
    });
    expect(loadTest("x: 1", "-verify-config")).toMatchObject({ kind: "exit", code: 1 });
    expect(loadTest("", "-verify-config=false")).toMatchObject({ kind: "run" });
  });

  it("prints the whole with secrets masked, in a form that can be read again", () => {
    const yaml = `
server: {port: 7, key: k, timeout: 90s, limits: {body: 2MB}}
clients: [{url: "http://u:p@h/x", password: p}]`;
    const printed = tree(loadTest(yaml, "-print-config")) as string;
    expect(printed).not.toMatch(/: p$|u:p@/m);
    expect(printed).toContain('key: "********"');
    expect(printed).toContain("url: http://u:********@h/x");
    expect(printed).toContain("timeout: 1m30s");
    expect(printed).toContain("body: 2MB");
    expect(tree(loadTest(printed))).toMatchObject({ server: { port: 7, timeout: 90_000 } });
    expect(loadTest("", "-print-config-stderr")).toMatchObject({
      kind: "run",
      notice: expect.stringContaining("server:\n  port: 3100\n"),
    });
  });
});
