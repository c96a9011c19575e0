import { hostname } from "node:os";
import { parseGoDuration } from "@skald/model";
import { withDeadline } from "@skald/runtime";
import { command, exits, Failure, flag, type Output, parseHeader } from "../shell/command.js";
import { Canary, type CanaryReport } from "./canary.js";
import { diagnose, type Finding } from "./doctor.js";

const toService = {
  "tenant-id": flag.text("the tenant", "", { shown: "ID" }),
  header: flag.list('a header of every request, such as "Authorization: Bearer x"', {
    shown: "NAME: VALUE",
  }),
  json: flag.boolean("writes JSON"),
};

export const canary = command({
  args: "<url>",
  says: "Pushes numbered lines to URL, reads them back by every way, and serves metrics. SIGINT or SIGTERM ends it; its exit code is 1 if a line was missing, doubled or changed, and 2 if no line could be checked.",
  flags: {
    ...toService,
    name: flag.text("the label canary of the lines", hostname()),
    interval: flag.text("the pause between two pushes", "1s"),
    "check-interval": flag.text("the pause between two rounds of queries", "10s"),
    history: flag.text("how far back the queries look", "1h"),
    wait: flag.text("how long a tail has to send a line that was acknowledged", "30s"),
    port: flag.number("the port of /metrics; 0: no metrics", 3500),
    for: flag.text("ends after this time", "", { shown: "DURATION" }),
  },
  run: async ({ args, flags }, { stdout, stderr, signal }) => {
    const run = new Canary({
      ...{ url: addressOf(args[0]!), headers: headersOf(flags), name: flags.name },
      intervalMs: durationMs("interval", flags.interval),
      checkMs: durationMs("check-interval", flags["check-interval"]),
      historyMs: durationMs("history", flags.history),
      tailWaitMs: durationMs("wait", flags.wait),
      onFinding: (found) => stderr.write(`${new Date().toISOString()} ${found}\n`),
    });
    const { port } = flags;
    if (port < 0 || port > 65_535) throw new Failure("usage", `--port: ${port} is no port`);
    const timeoutMs = flags.for === "" ? 0 : durationMs("for", flags.for);
    const server = port === 0 ? undefined : await run.serve(port);
    await withDeadline({ timeoutMs, message: "that was all", signal }, (both) => run.run(both));
    server?.close();
    server?.closeAllConnections();
    return tellCanary(run.report, flags.json, stdout);
  },
});

function tellCanary(report: CanaryReport, isJson: boolean, stdout: Output): number {
  const counts = Object.entries(report);
  stdout.write(
    isJson
      ? `${JSON.stringify(report)}\n`
      : `${counts.map(([name, count]) => `${name} ${count}`).join(", ")}\n`,
  );
  const { missing, duplicates, unexpected, checks } = report;
  if (missing + duplicates + unexpected > 0) return exits.found;
  return checks === 0 ? exits.usage : exits.done;
}

export const doctor = command({
  args: "<urls...>",
  says: "Asks the services at the URLs, and the members of their rings, for what will hurt next. The exit code is 1 if something is wrong now, and 2 if a service did not answer.",
  flags: {
    ...toService,
    "http-port": flag.text(
      "the HTTP port of ring members; default: server.http_listen_port of the first URL; 0: ask URLs only",
    ),
  },
  run: async ({ args, flags }, { stdout }) => {
    const given = flags["http-port"];
    if (!/^\d*$/.test(given)) throw new Failure("usage", `--http-port: ${given} is no port`);
    const { services, findings } = await diagnose({
      urls: args.map(addressOf),
      headers: headersOf(flags),
      httpPort: given === "" ? undefined : Number(given),
    });
    stdout.write(
      flags.json
        ? `${JSON.stringify({ services, findings }, null, 2)}\n`
        : `asked ${services.join(", ") || "no service"}\n${findings.map(lineOf).join("")}`,
    );
    if (findings.some(({ kind }) => kind === "unreachable")) return exits.usage;
    return findings.some(({ kind }) => kind === "wrong") ? exits.found : exits.done;
  },
});

function lineOf({ kind, service, says, advice }: Finding): string {
  return `${kind.padEnd(11)}  ${service}: ${says}\n${advice === undefined ? "" : `             ${advice}\n`}`;
}

function addressOf(url: string): string {
  if (!URL.canParse(url)) throw new Failure("usage", `${url} is no URL`);
  return new URL(url).href.replace(/\/+$/, "");
}

function headersOf(flags: { readonly "tenant-id": string; readonly header: readonly string[] }) {
  const headers = new Headers(flags.header.map(parseHeader));
  if (flags["tenant-id"] !== "") headers.set("x-scope-orgid", flags["tenant-id"]);
  return Object.fromEntries(headers);
}

function durationMs(name: string, value: string): number {
  const ns = parseGoDuration(value);
  if (ns === undefined || ns <= 0n)
    throw new Failure("usage", `--${name}: ${value} is no duration, such as 10s`);
  return Number(ns / 1_000_000n);
}
