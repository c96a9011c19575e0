import { readFileSync } from "node:fs";
import { type CommandDeps, runCommand } from "@skald/cli";
import { S3Store } from "@skald/storage";
import { loadConfig } from "./config/load-config.js";
import { s3OptionsOf } from "./config/s3-bucket.js";

/** Runs `skald inspect` and `skald verify`; resolves with the exit code. */
export function runTool(argv: readonly string[]): Promise<number> {
  return runCommand(argv, { openBucket, stdout: process.stdout, stderr: process.stderr });
}

/** A bucket by the options and flags that the server takes; what the command names goes before what they name. */
const openBucket: CommandDeps["openBucket"] = async ({ bucket, prefix }, flags) => {
  const loaded = loadConfig([...flags, `-s3.buckets=${bucket}`]);
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const { config } = loaded;
  const caFile = config.storage_config.aws.http_config.ca_file;
  const folder = prefix.replace(/\/+$/, "");
  const store = new S3Store({
    ...s3OptionsOf(config),
    folder: folder === "" ? "" : `${folder}/`,
    ...(caFile === "" ? {} : { ca: readFileSync(caFile, "utf8") }),
  });
  return { store, close: () => store.close() };
};
