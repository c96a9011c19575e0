import { describe, expect, it } from "@jest/globals";
import { z } from "zod";
import * as field from "./field.js";
import { type LoadedSettings, loadSettings, type SettingsPlan } from "./load-settings.js";
import { readSchema } from "./schema.js";

const client = field.section(
  "A client.",
  {
    url: field.text("", "where"),
    timeout: field.duration("10s", "time limit"),
    password: field.secret("password"),
    proxy: field.text("", "proxy", undefined, { unused: "no proxy is used" }),
  },
  { ignored: { old: "use url", "sse_*": "use sse" } },
);

const root = readSchema(
  field.section(
    "",
    {
      target: field.list(["all"], "services", "target"),
      server: field.section("Listens.", {
        port: field.integer(3100, "port", "server.port", { max: 65_535 }),
        tls: field.toggle(false, "speak TLS", "server.tls", { unused: "no TLS yet" }),
        workers: field.integer(0, "threads", "server.workers", {
          unused: "one thread is used",
          holds: (count) => count === 1,
        }),
        certs: field.section(
          "Certificates.",
          { cert: field.text("", "file", "server.cert") },
          { refused: "use a proxy" },
        ),
        timeout: field.duration("30s", "time limit", "server.timeout"),
        key: field.secret("key", "server.key"),
        limits: field.section("Limits.", { body: field.size("1MB", "body", "server.body") }),
      }),
      limits_config: field.section(
        "Limits.",
        {
          query_timeout: field.duration("1m", "time limit", "querier.query-timeout"),
          labels: field.list(["a"], "labels", "limits.labels"),
          names: field.data(z.record(z.string(), z.array(z.string())), {}, "map of lists", "names"),
        },
        { ignored: { unordered_writes: "removed" } },
      ),
      clients: field.sections(client, "clients"),
      named: field.sectionMap(client, "named clients"),
      ring: field.section(
        "Ring.",
        {
          store: field.text("inmemory", "store", "ring.store"),
          client: field.section("Client.", { host: field.text("", "host", "ring.host") }),
        },
        { unused: "needs no ring" },
      ),
    },
    {
      ignored: { bloom: { why: "an experiment", switch: "enabled" } },
      ignoredFlags: { "legacy-read-mode": "removed" },
    },
  ),
);

const plan: SettingsPlan = {
  root,
  defaultYaml: "server: {port: 1}",
  usage: "Usage: test",
  version: "test 1",
  targets: "all\n",
  derive: (settings) => {
    if (settings.isGiven("server.port"))
      settings.derive("limits_config.query_timeout", settings.get("server.port"));
    return [];
  },
  check: (settings, isBroken) => ({
    problems: settings.get("server.port") === 666 && !isBroken("server.port") ? ["bad port"] : [],
    warnings: [],
  }),
};

function load(yaml: string, ...argv: string[]): LoadedSettings {
  return loadSettings(plan, ["-config.file=c.yaml", ...argv], {
    env: { PORT: "99" },
    readFile: (name) => {
      if (name === "c.yaml") return yaml;
      throw Object.assign(new Error(`no ${name}`), { code: "ENOENT" });
    },
  });
}

function tree(loaded: LoadedSettings): unknown {
  return loaded.kind === "run" ? loaded.tree : loaded.text;
}

function warnings(loaded: LoadedSettings): unknown {
  return loaded.kind === "run" ? loaded.warnings : loaded.text;
}

describe("layers", () => {
  it("takes defaults, what follows, the file, and flags, each over the one before", () => {
    expect(tree(load(""))).toMatchObject({
      server: { port: 3100, tls: false, limits: { body: 1_048_576 } },
      limits_config: { query_timeout: 60_000 },
    });
    expect(tree(load("server: {port: 5}"))).toMatchObject({ limits_config: { query_timeout: 5 } });
    expect(tree(load("server: {port: 5}\nlimits_config: {query_timeout: 2s}"))).toMatchObject({
      limits_config: { query_timeout: 2000 },
    });
    expect(tree(load("server: {port: 5}", "-server.port=7"))).toMatchObject({
      server: { port: 7 },
    });
  });

  it("reads the built-in file when none is named", () => {
    const loaded = loadSettings(plan, [], { env: {}, readFile: () => "" });
    expect(tree(loaded)).toMatchObject({ server: { port: 1 } });
  });

  it("takes the first file that exists", () => {
    const loaded = load("server: {port: 8}", "-config.file=gone.yaml, c.yaml");
    expect(tree(loaded)).toMatchObject({ server: { port: 8 } });
    expect(load("", "-config.file=gone.yaml")).toEqual({
      kind: "exit",
      code: 1,
      text: "CONFIG ERROR: gone.yaml does not exist, set config.file for custom config path\n",
    });
  });

  it("tells of a file that cannot be read", () => {
    const readFile = (): string => {
      throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    };
    const loaded = loadSettings(plan, ["-config.file=x"], { env: {}, readFile });
    expect(tree(loaded)).toBe("CONFIG ERROR: cannot read x: EACCES: permission denied\n");
  });

  it("expands variables only when told to", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what a user writes
    const yaml = "server: {port: '${PORT:-5}'}";
    expect(tree(load(yaml, "-config.expand-env=true"))).toMatchObject({ server: { port: 99 } });
    expect(tree(load(yaml))).toBe(
      // biome-ignore lint/suspicious/noTemplateCurlyInString: what a user writes
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
      { clients: [{ url: "u", timeout: 10_000, password: "", proxy: "" }] },
    ],
    ["named sections", "named: {a: {timeout: 1s}}", { named: { a: { url: "", timeout: 1000 } } }],
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
    expect(tree(load(yaml))).toMatchObject(want);
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
    ["a list for named sections", "named: []", "c.yaml:1:8: named: must be a map of sections"],
    [
      "bad data",
      "limits_config: {names: {x: 5}}",
      "c.yaml:1:24: limits_config.names.x: Invalid input: expected array, received number",
    ],
    ["a list at the root", "[1]", "c.yaml: must hold a map of sections, not a list"],
    ["a key twice", "server: {port: 1, port: 2}", "c.yaml:1:19: map keys must be unique"],
    ["a check", "server: {port: 666}", "bad port"],
  ])("refuses %s", (_, yaml, problem) => {
    expect(tree(load(yaml))).toBe(`CONFIG ERROR: ${problem}\n`);
  });

  it("tells where broken YAML breaks", () => {
    expect(tree(load("server:\n  port: [1"))).toMatch(/CONFIG ERROR: c\.yaml:2:\d+: flow sequence/);
  });

  it("tells all errors at once", () => {
    expect(tree(load("server: {port: 666, x: 1}", "-nope", "-server.tls=5"))).toBe(
      "MULTIPLE CONFIG ERRORS FOUND, PLEASE READ CAREFULLY\n" +
        "CONFIG ERROR: unknown flag -nope; -help lists all\n" +
        'CONFIG ERROR: flag -server.tls: "5" is not true or false\n' +
        'CONFIG ERROR: c.yaml:1:21: unknown key "x" in server\n' +
        "CONFIG ERROR: bad port\n",
    );
  });
});

describe("keys without effect", () => {
  it("names those that differ from their default, once per section", () => {
    const yaml = "server: {tls: true, port: 1}\nring: {store: x, client: {host: y}}";
    expect(warnings(load(yaml))).toEqual([
      "server: no TLS yet: tls",
      "ring: needs no ring: store, client.host",
    ]);
    expect(warnings(load("server: {tls: false}\nring: {store: inmemory}"))).toEqual([]);
    expect(warnings(load("", "-ring.store=x"))).toEqual(["ring: needs no ring: store"]);
  });

  it("says nothing about a value that holds all the same", () => {
    expect(warnings(load("server: {workers: 1}"))).toEqual([]);
    expect(warnings(load("server: {workers: 2}"))).toEqual(["server: one thread is used: workers"]);
  });

  it("looks into lists and maps of sections, and names a key once", () => {
    const yaml = "clients: [{proxy: a}, {proxy: b}]\nnamed: {x: {proxy: c}}";
    expect(warnings(load(yaml))).toEqual([
      "clients[]: no proxy is used: proxy",
      "named[]: no proxy is used: proxy",
    ]);
  });

  it("does not start where ignoring a key would be unsafe", () => {
    const problem = "CONFIG ERROR: server.certs: use a proxy: cert\n";
    expect(tree(load("server: {certs: {cert: x}}"))).toBe(problem);
    expect(tree(load("", "-server.cert=x"))).toBe(problem);
    expect(warnings(load("server: {certs: {cert: ''}}"))).toEqual([]);
  });

  it("accepts keys that are not there any more with their reason", () => {
    const yaml = `
limits_config: {unordered_writes: true}
clients: [{old: {a: [1]}}]
named: {a: {sse_kind: 1}}
bloom: {enabled: true}`;
    expect(warnings(load(yaml))).toEqual([
      "c.yaml:2:17: limits_config.unordered_writes: removed",
      "c.yaml:3:12: clients[].old: use url",
      "c.yaml:4:13: named[].sse_kind: use sse",
      "c.yaml:5:1: bloom: an experiment",
    ]);
  });

  it("is silent about such a section that is switched off", () => {
    expect(warnings(load("bloom: {enabled: false, x: 1}"))).toEqual([]);
    expect(warnings(load("bloom:"))).toEqual([]);
  });

  it("accepts flags that are not there any more", () => {
    expect(warnings(load("", "-legacy-read-mode=false"))).toEqual([
      "flag -legacy-read-mode: removed",
    ]);
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
    expect(tree(load("", ...argv))).toMatchObject(want);
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
    expect(tree(load("", argument))).toBe(`CONFIG ERROR: ${problem}\n`);
  });
});

describe("commands", () => {
  it("prints the version, the targets and the help", () => {
    expect(load("", "-version")).toEqual({ kind: "exit", code: 0, text: "test 1\n" });
    expect(load("", "-list-targets")).toEqual({ kind: "exit", code: 0, text: "all\n" });
    for (const flag of ["-help", "--help", "-h"]) {
      const text = tree(load("", flag));
      expect(text).toContain("Usage: test\n\n  -config.file\n");
      expect(text).toContain(
        "\nserver: Listens.\n  -server.port integer\n        port [server.port] (default 3100)\n",
      );
      expect(text).toContain("body [server.limits.body] (default 1MB)");
    }
  });

  it("verifies", () => {
    expect(load("ring: {store: x}", "-verify-config")).toEqual({
      kind: "exit",
      code: 0,
      text: "CONFIG WARNING: ring: needs no ring: store\nconfig is valid\n",
    });
    expect(load("x: 1", "-verify-config")).toMatchObject({ kind: "exit", code: 1 });
    expect(load("", "-verify-config=false")).toMatchObject({ kind: "run" });
  });

  it("prints the whole with secrets masked, in a form that can be read again", () => {
    const yaml = `
server: {port: 7, key: k, timeout: 90s, limits: {body: 2MB}}
clients: [{url: "http://u:p@h/x", password: p}]
named: {a: {password: p}}`;
    const printed = tree(load(yaml, "-print-config")) as string;
    expect(printed).not.toMatch(/: p$|u:p@/m);
    expect(printed).toContain('key: "********"');
    expect(printed).toContain("url: http://u:********@h/x");
    expect(printed).toContain("timeout: 1m30s");
    expect(printed).toContain("body: 2MB");
    expect(tree(load(printed))).toMatchObject({ server: { port: 7, timeout: 90_000 } });
    expect(load("", "-print-config-stderr")).toMatchObject({
      kind: "run",
      notice: expect.stringContaining("server:\n  port: 3100\n"),
    });
  });
});
