import { readFileSync } from "node:fs";
import { buildInfo } from "@skald/runtime";
import {
  defaultsOf,
  formatConfig,
  loadSettings,
  pickChanged,
  readSchema,
  type SettingsPlan,
} from "@skald/runtime/config";
import type { S3Options } from "@skald/storage";
import { checkSettings } from "./check.js";
import { deriveSettings } from "./derive.js";
import { ignoredKeys } from "./ignored-keys.js";
import { type Config, rootConfig } from "./root.js";
import { s3OptionsOf } from "./s3-bucket.js";
import { targets } from "./targets.js";

/** A configuration to run with, or what to print instead: on stdout when the code is 0, else on stderr. */
export type LoadedConfig =
  | {
      readonly config: Config;
      readonly warnings: readonly string[];
      /** The configuration without anything set. */
      readonly defaults: Config;
      /** Sections and keys of `config` that differ from `defaults`. */
      readonly changed: Readonly<Record<string, unknown>>;
      /** Text for stderr before the start; `-print-config-stderr` asks for it. */
      readonly notice: string | undefined;
    }
  | { readonly exit: { readonly code: number; readonly text: string } };

/** Which keys `configToYaml` prints. */
export type ConfigMode = "full" | "diffs" | "defaults";

const root = readSchema(rootConfig);

/** The tree of all keys, for the docs. */
export const configRoot = root;

/** Reads the command line (without the program) and the file that it names; never throws for what a user wrote. */
export function loadConfig(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
  options: { readonly readFile?: (path: string) => string } = {},
): LoadedConfig {
  const readFile = options.readFile ?? ((path: string) => readFileSync(path, "utf8"));
  const loaded = loadSettings(plan(), argv, { env, readFile });
  if (loaded.kind === "exit") return { exit: { code: loaded.code, text: loaded.text } };
  const defaults = defaultsOf(root);
  return {
    config: loaded.tree as Config,
    warnings: loaded.warnings,
    defaults: defaults as Config,
    changed: pickChanged(root, loaded.tree, defaults),
    notice: loaded.notice,
  };
}

/** The bucket that flags of the server describe; throws an error with the text that the server would print. */
export function loadBucket(flags: readonly string[]): S3Options {
  const loaded = loadConfig(flags);
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const caFile = loaded.config.storage_config.aws.http_config.ca_file;
  const bucket = s3OptionsOf(loaded.config);
  return caFile === "" ? bucket : { ...bucket, ca: readFileSync(caFile, "utf8") };
}

/** The YAML of `GET /config`, with secrets masked. */
export function configToYaml(config: Config, options: { readonly mode: ConfigMode }): string {
  if (options.mode === "full") return formatConfig(root, config);
  const defaults = defaultsOf(root);
  if (options.mode === "defaults") return formatConfig(root, defaults);
  return formatConfig(root, pickChanged(root, config, defaults));
}

function plan(): SettingsPlan {
  const { productVersion, version, revision, branch } = buildInfo();
  const built = [branch && `branch: ${branch}`, revision && `revision: ${revision}`];
  const origin = built.filter((part) => part !== "").join(", ");
  return {
    root,
    ignored: ignoredKeys,
    defaultYaml,
    usage: "Usage: skald [flags]\n       skald COMMAND ...    skald help lists the commands",
    version: `skald, version ${productVersion}${origin && ` (${origin})`}\n  API version ${version}`,
    targets: Object.entries(targets)
      .map(([name, { says }]) => `${name.padEnd(18)}${says}\n`)
      .join(""),
    derive: deriveSettings,
    check: checkSettings,
  };
}

/**
 * The configuration without `-config.file`: one node that keeps everything below ./data, for a laptop or a first try. The rate
 * limits are too high for one agent on the same machine to reach; the other limits are the defaults.
 */
export const defaultYaml = `auth_enabled: false

server:
  log_format: json

common:
  path_prefix: ./data
  replication_factor: 1
  ring:
    kvstore:
      store: inmemory

ingester:
  wal:
    flush_on_shutdown: true

limits_config:
  ingestion_rate_mb: 1024
  ingestion_burst_size_mb: 1024
  per_stream_rate_limit: 1GB
  per_stream_rate_limit_burst: 1GB
  max_global_streams_per_user: 100000
  volume_enabled: true
`;
