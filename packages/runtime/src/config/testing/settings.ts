import { z } from "zod";
import * as field from "../field.js";
import { type LoadedSettings, loadSettings, type SettingsPlan } from "../load-settings.js";
import { readSchema } from "../settings.js";
import type { IgnoredRow } from "../undeclared.js";

const client = field.section("A client.", {
  url: field.text("", "where"),
  timeout: field.duration("10s", "time limit"),
  password: field.secret("password"),
});

const root = readSchema(
  field.section("", {
    target: field.list(["all"], "services", "target"),
    server: field.section("Listens.", {
      port: field.integer(3100, "port", "server.port", { max: 65_535 }),
      tls: field.toggle(false, "speak TLS", "server.tls"),
      cert: field.text("", "file", "server.cert", {
        refused: { value: "unsafe", why: "use a proxy" },
      }),
      timeout: field.duration("30s", "time limit", "server.timeout"),
      key: field.secret("key", "server.key"),
      limits: field.section("Limits.", { body: field.size("1MB", "body", "server.body") }),
    }),
    limits_config: field.section("Limits.", {
      query_timeout: field.duration("1m", "time limit", "querier.query-timeout"),
      labels: field.list(["a"], "labels", "limits.labels"),
      names: field.data(z.record(z.string(), z.array(z.string())), {}, "map of lists", "names"),
    }),
    clients: field.sections(client, "clients"),
    ring: field.section("Ring.", { store: field.text("inmemory", "store", "ring.store") }),
  }),
);

const ignored: readonly IgnoredRow[] = [
  { why: "use url", keys: ["clients[].old", "*.url_{new,old}"] },
  { why: "needs no ring", keys: ["ring.*", "-ring.*"] },
  { why: "an experiment", keys: ["bloom.*", "-bloom.*", "server.gone"] },
];

/** A program with a key of each kind, and keys without effect. */
export const testPlan: SettingsPlan = {
  root,
  ignored,
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

/** Loads settings from a file and flags. */
export function loadTest(yaml: string, ...argv: string[]): LoadedSettings {
  return loadSettings(testPlan, ["-config.file=c.yaml", ...argv], {
    env: { PORT: "99" },
    readFile: (name) => {
      if (name === "c.yaml") return yaml;
      throw Object.assign(new Error(`no ${name}`), { code: "ENOENT" });
    },
  });
}

/** The settings that were loaded, or the text that is printed instead. */
export function tree(loaded: LoadedSettings): unknown {
  return loaded.kind === "run" ? loaded.tree : loaded.text;
}

/** The warnings, or that text. */
export function warnings(loaded: LoadedSettings): unknown {
  return loaded.kind === "run" ? loaded.warnings : loaded.text;
}
