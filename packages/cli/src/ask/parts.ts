import { existsSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { Semaphore } from "@skald/runtime";
import { queryRange, type RangeQuery } from "../client/log-pages.js";
import type { Session } from "../client/session.js";
import type { LogOutput } from "../output/log-output.js";
import { exits, Failure, flag, type Values } from "../shell/command.js";
import { parseDuration } from "../shell/times.js";

/** logcli's flags for a download in parallel. `skald export` does more. */
export const partFlags = {
  "parallel-duration": flag.text("the range of one part", "1h", { shown: "DURATION" }),
  "parallel-max-workers": flag.number(
    "how many parts are asked at once; more than 1 ignores --limit",
    1,
  ),
  "part-path-prefix": flag.text("writes each part to a file PREFIX_FROM_TO.part", "", {
    shown: "PREFIX",
  }),
  "overwrite-completed-parts": flag.boolean("asks parts again whose files are there"),
  "merge-parts": flag.boolean("writes the files of parts to stdout in order, and deletes them"),
  "keep-parts": flag.boolean("does not delete them"),
} as const;

interface Download {
  readonly flags: Values<typeof partFlags>;
  readonly session: Session;
  readonly output: LogOutput;
}

interface Part {
  readonly fromNs: bigint;
  readonly toNs: bigint;
  readonly path: string;
}

/** Downloads all lines of a range in parts, several at once. Parts without files go to stdout as they come. */
export async function downloadParts(query: RangeQuery, { flags, session, output }: Download) {
  const parts = partsOf(query, flags);
  const isMerged = flags["merge-parts"];
  if (isMerged && flags["part-path-prefix"] === "")
    throw new Failure("usage", "--merge-parts needs --part-path-prefix");
  const slots = new Semaphore(Math.max(1, flags["parallel-max-workers"]));
  const work = { query, flags, session, output };
  const jobs = parts.map((part) => slots.run(() => downloadPart(part, work)));
  const all = Promise.all(jobs);
  // The loop below may be at another part when one fails.
  all.catch(() => undefined);
  if (isMerged)
    for (const [at, { path }] of parts.entries()) {
      await jobs[at];
      await session.write(await readFile(path, "utf8"));
      if (!flags["keep-parts"]) await rm(path);
    }
  await all;
  return exits.done;
}

async function downloadPart(
  { fromNs, toNs, path }: Part,
  { query, flags, session, output }: Download & { readonly query: RangeQuery },
): Promise<void> {
  if (path !== "" && existsSync(path) && !flags["overwrite-completed-parts"]) return;
  const file = path === "" ? undefined : await open(`${path}.tmp`, "w");
  try {
    for await (const page of queryRange(session.client, { ...query, fromNs, toNs, limit: 0 })) {
      if (page.kind === "metric")
        throw new Failure("usage", "a metric query cannot be downloaded in parts");
      const text = output.format(page.streams, page.entries);
      if (file === undefined) await session.write(text);
      else await file.write(text);
    }
  } finally {
    await file?.close();
  }
  if (path !== "") await rename(`${path}.tmp`, path);
}

/** The parts in the order in which their lines are written. */
function partsOf({ fromNs, toNs, isForward }: RangeQuery, flags: Download["flags"]): Part[] {
  const stepNs = parseDuration("parallel-duration", flags["parallel-duration"]);
  if (stepNs === 0n) throw new Failure("usage", "--parallel-duration: 0 is too short");
  const prefix = flags["part-path-prefix"];
  const parts: Part[] = [];
  for (let at = fromNs; at < toNs; at += stepNs) {
    const end = at + stepNs < toNs ? at + stepNs : toNs;
    const path = prefix === "" ? "" : `${prefix}_${stampOf(at)}_${stampOf(end)}.part`;
    parts.push({ fromNs: at, toNs: end, path });
  }
  return isForward ? parts : parts.reverse();
}

/** `20210119T183000`, in UTC. */
function stampOf(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19).replace(/[-:]/g, "");
}
