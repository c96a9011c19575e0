import {
  bucketFiles,
  directoryFiles,
  importLokiStore,
  type LokiFiles,
  type LokiImportProgress,
} from "@skald/loki-store";
import { nsPerMs } from "@skald/model";
import { FsStore, type ObjectStore } from "@skald/storage";
import { command, exits, Failure, flag, type Io } from "../shell/command.js";
import { Progress, sizeText } from "../shell/progress.js";
import { parseTime, Zone } from "../shell/times.js";

/** Chunks that could not be read and are named; the others are counted. */
const namedFailures = 20;

export const importStore = command({
  args: "<source>",
  says: "Copies the store of a Loki (schema v13, TSDB) into the store of a Skald, each a folder or s3://bucket/prefix, without a server. The source is the folder with `index` in it, the target the folder `chunks` of Skald's data. A second run goes on where the first one ended, and adds only what is new. Flags of the server's bucket, such as -s3.endpoint=URL or -config.file=FILE, say how to reach buckets. The exit code is 1 if chunks could not be read.",
  flags: {
    into: flag.text("the target", "", { shown: "TARGET" }),
    tenant: flag.list("only this tenant; may be repeated, or a list with commas"),
    from: flag.text("rows from this time on", "", { shown: "TIME" }),
    to: flag.text("rows before this time", "", { shown: "TIME" }),
    parallel: flag.number("segments that are made at a time", 0, { shown: "THREADS" }),
    quiet: flag.boolean("no progress on stderr", { short: "q" }),
  },
  takesOtherFlags: true,
  run: async ({ args, flags, rest }, io) => {
    if (flags.into === "") throw new Failure("usage", "give the target with --into");
    const source = await openSource(args[0]!, rest, io);
    const target = await openTarget(flags.into, rest, io);
    const threads = await io.host.openThreads(flags.parallel);
    const shown = flags.quiet ? undefined : new Progress(io.stderr, { bytes: undefined });
    let shownBytes = 0;
    try {
      const done = await importLokiStore({
        ...{ source: source.files, target: target.store, parallel: threads.size },
        tenants: flags.tenant.flatMap((one) => one.split(",")),
        range: rangeOf(flags.from, flags.to),
        run: (job) => threads.run("import_chunks", job),
        onProgress: ({ bytes }) => {
          shown?.add(bytes - shownBytes);
          shownBytes = bytes;
        },
        signal: io.signal,
      });
      shown?.finish();
      report(done, io);
      return done.failed.length > 0 ? exits.found : exits.done;
    } finally {
      await threads.close();
      await Promise.all([source.close(), target.close()]);
    }
  },
});

function rangeOf(from: string, to: string): { fromNs: bigint; toNs: bigint } {
  const nowNs = BigInt(Date.now()) * nsPerMs;
  const time = (name: string, text: string, fallback: bigint) =>
    text === "" ? fallback : parseTime(name, text, new Zone("UTC"), nowNs);
  return { fromNs: time("--from", from, 0n), toNs: time("--to", to, 1n << 62n) };
}

async function openSource(
  place: string,
  bucketFlags: readonly string[],
  io: Io,
): Promise<{ files: LokiFiles; close: () => Promise<void> }> {
  const bucket = bucketOf(place);
  if (bucket === undefined) return { files: directoryFiles(place), close: async () => undefined };
  const { store, close } = await io.host.openBucket(bucket, bucketFlags);
  return { files: bucketFiles(store, io.signal), close };
}

async function openTarget(
  place: string,
  bucketFlags: readonly string[],
  io: Io,
): Promise<{ store: ObjectStore; close: () => Promise<void> }> {
  const bucket = bucketOf(place);
  if (bucket !== undefined) return io.host.openBucket(bucket, bucketFlags);
  const store = new FsStore(place);
  await store.open();
  return { store, close: () => store.close() };
}

function bucketOf(place: string): { bucket: string; prefix: string } | undefined {
  const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(place);
  return match === null ? undefined : { bucket: match[1] ?? "", prefix: match[2] ?? "" };
}

function report(done: LokiImportProgress, { stdout, stderr }: Io): void {
  const { chunks, chunksBefore, failed, rows, rowsShared, bytes, segments } = done;
  for (const { error } of failed.slice(0, namedFailures)) stderr.write(`${error}\n`);
  if (failed.length > namedFailures)
    stderr.write(`and ${failed.length - namedFailures} more chunks\n`);
  const before = chunksBefore === 0 ? "" : `, ${chunksBefore} of them before`;
  const shared = rowsShared === 0 ? "" : `; ${rowsShared} rows were in several chunks`;
  stdout.write(
    `imported ${rows} rows (${sizeText(bytes)}) into ${segments} segments${shared}\n` +
      `${chunks - failed.length} chunks are imported${before}, ${failed.length} could not be read\n`,
  );
}
