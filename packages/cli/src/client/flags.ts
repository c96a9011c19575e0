import { flag } from "../shell/command.js";
import { timeFormats } from "../shell/times.js";
import { connectionFlags } from "./settings.js";

/** Where data comes from, beside a server. */
export const sourceFlags = {
  dir: flag.text(
    "segments of a folder or bucket, without a server: PATH or s3://BUCKET/PREFIX",
    "",
    {
      shown: "PLACE",
    },
  ),
  "dir-flag": flag.list("a flag of the server for --dir, such as -s3.endpoint=URL", {
    shown: "FLAG",
  }),
  files: flag.list("plain files, without a server; may have * and ?, and be repeated", {
    shown: "FILES",
  }),
  stdin: flag.boolean("lines of stdin, without a server"),
} as const;

/** Flags of all commands that ask something. logcli takes them before and after the command. */
export const askFlags = {
  output: flag.text("the form of the output; default: pretty on a terminal, else default", "", {
    ...{ short: "o", env: "OUTPUT", shown: "FORM" },
    choices: ["pretty", "default", "raw", "jsonl", "logfmt", "csv", "table", "chart", "parquet"],
  }),
  quiet: flag.boolean("no notes on stderr", { short: "q" }),
  stats: flag.boolean("statistics of the query on stderr"),
  timezone: flag.text("the zone of times that are read and written", "Local", {
    ...{ short: "z", env: "TIMEZONE", shown: "ZONE" },
  }),
  "output-timestamp-format": flag.text("the form of times in -o default", "rfc3339", {
    ...{ choices: timeFormats, shown: "FORM" },
  }),
  ...connectionFlags,
  cpuprofile: flag.text("without meaning here; logcli has it", "", { shown: "FILE" }),
  memprofile: flag.text("without meaning here; logcli has it", "", { shown: "FILE" }),
} as const;

/** The range of time that is asked. */
export const rangeFlags = {
  since: flag.text("how far back, when there is no --from", "1h", { shown: "DURATION" }),
  from: flag.text("the start, which belongs to the range", "", { shown: "TIME" }),
  to: flag.text("the end, which does not; default: now", "", { shown: "TIME" }),
} as const;
