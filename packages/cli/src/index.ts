import type { S3Options } from "@skald/storage";
import type { Host } from "./shell/command.js";

export { isCommandLine } from "./table.js";

/** What the program knows of the server's configuration. */
export interface ProgramHost extends Pick<Host, "checkConfig" | "openThreads" | "startServer"> {
  /** Turns flags of the server into the options of a bucket; throws for flags that it cannot understand. */
  readonly bucketOf: (flags: readonly string[]) => S3Options;
}

/**
 * Runs a command on the input and output of the process; resolves with the exit code once its output is written. Most commands
 * never load the host.
 */
export async function runTool(
  argv: readonly string[],
  loadHost: () => Promise<ProgramHost>,
): Promise<number> {
  const end = new AbortController();
  const stop = () => end.abort();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, stop);
  // A reader that closes its pipe, such as head, has what it wants.
  let isClosed = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    isClosed = true;
    end.abort();
  });
  const openBucket: Host["openBucket"] = async ({ bucket, prefix }, flags) => {
    const path = prefix.replace(/\/+$/, "");
    const folder = path === "" ? "" : `${path}/`;
    const { S3Store } = await import("@skald/storage");
    const { bucketOf } = await loadHost();
    const store = new S3Store({ ...bucketOf([...flags, `-s3.buckets=${bucket}`]), folder });
    return { store, close: () => store.close() };
  };
  const { stdin, stdout, stderr, env } = process;
  // A command that waits for input would not see the end.
  end.signal.addEventListener("abort", () => stdin.destroy());
  const { runCommandLine } = await import("./program.js");
  const code = await runCommandLine(argv, {
    ...{ stdin, stdout, stderr, env, signal: end.signal },
    host: {
      openBucket,
      checkConfig: async (flags) => (await loadHost()).checkConfig(flags),
      openThreads: async (wanted) => (await loadHost()).openThreads(wanted),
      startServer: async (flags) => (await loadHost()).startServer(flags),
    },
  });
  return isClosed ? 0 : code;
}
