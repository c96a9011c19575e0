import { hostname } from "node:os";
import { parseArgs } from "node:util";
import { parseGoDuration } from "@skald/model";
import { Canary, type CanaryReport } from "./canary.js";
import { diagnose, type Finding } from "./doctor.js";

interface Output {
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

const exitCodes = { good: 0, found: 1, failed: 2 } as const;

const canaryUsage = `Usage: skald canary URL [options]
Pushes numbered lines to URL, reads them back by every way, and serves metrics. SIGINT or SIGTERM ends it; its exit code is 1
if a line was missing, doubled or changed, and 2 if no line could be checked.
  -tenant-id ID        the tenant of the lines
  -header "NAME: VAL"  a header of every request, such as Authorization; may be repeated
  -name NAME           the label canary of the lines; default: the name of this host
  -interval 1s         the pause between two pushes
  -check-interval 10s  the pause between two rounds of queries
  -history 1h          how far back the queries look
  -wait 30s            how long a tail has to send a line that was acknowledged
  -port 3500           the port of /metrics; 0: no metrics
  -for DURATION        ends after this time
`;

/** Runs `skald canary` until its time is over or the process gets a signal; resolves with the exit code. */
export async function runCanary(argv: readonly string[], { stdout, stderr }: Output) {
  const canaryFlags = {
    ...{ name: text(hostname()), interval: text("1s"), "check-interval": text("10s") },
    ...{ history: text("1h"), wait: text("30s"), port: text("3500"), for: text("") },
  };
  const read = readArguments(argv, canaryFlags, { usage: canaryUsage, stdout, stderr });
  if (typeof read === "number") return read;
  const { values, urls, headers } = read;
  if (urls.length !== 1) return refuse(stderr, "name one URL", canaryUsage);
  let canary: Canary;
  let forMs: number;
  let port: number;
  try {
    canary = new Canary({
      ...{ url: urls[0]!, headers, name: values.name },
      intervalMs: durationMs("interval", values.interval),
      checkMs: durationMs("check-interval", values["check-interval"]),
      historyMs: durationMs("history", values.history),
      tailWaitMs: durationMs("wait", values.wait),
      onFinding: (found) => stderr.write(`${new Date().toISOString()} ${found}\n`),
    });
    forMs = values.for === "" ? Number.POSITIVE_INFINITY : durationMs("for", values.for);
    port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error("-port: no port");
  } catch (error) {
    return refuse(stderr, (error as Error).message, canaryUsage);
  }
  const end = new AbortController();
  const stop = () => end.abort();
  const timer = Number.isFinite(forMs) ? setTimeout(stop, forMs) : undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, stop);
  try {
    const server = port === 0 ? undefined : await canary.serve(port);
    await canary.run(end.signal);
    server?.close();
    server?.closeAllConnections();
  } catch (error) {
    return refuse(stderr, (error as Error).message, "");
  } finally {
    clearTimeout(timer);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
  }
  return tellCanary(canary.report, values.json, stdout);
}

function tellCanary(report: CanaryReport, isJson: boolean, stdout: Output["stdout"]): number {
  const counts = Object.entries(report);
  stdout.write(
    isJson
      ? `${JSON.stringify(report)}\n`
      : `${counts.map(([name, count]) => `${name} ${count}`).join(", ")}\n`,
  );
  const { missing, duplicates, unexpected, checks } = report;
  if (missing + duplicates + unexpected > 0) return exitCodes.found;
  return checks === 0 ? exitCodes.failed : exitCodes.good;
}

const doctorUsage = `Usage: skald doctor URL... [options]
Asks the services at the URLs, and the members of their rings, for what will hurt next. The exit code is 1 if something is
wrong now, and 2 if a service did not answer.
  -http-port PORT      the HTTP port of ring members; default: server.http_listen_port of the first URL; 0: ask URLs only
  -tenant-id ID, -header "NAME: VAL", -json
`;

/** Runs `skald doctor`; resolves with the exit code. */
export async function runDoctor(argv: readonly string[], { stdout, stderr }: Output) {
  const flags = { "http-port": text("") };
  const read = readArguments(argv, flags, { usage: doctorUsage, stdout, stderr });
  if (typeof read === "number") return read;
  const { values, urls, headers } = read;
  if (urls.length === 0) return refuse(stderr, "name a URL", doctorUsage);
  const given = values["http-port"];
  if (!/^\d*$/.test(given)) return refuse(stderr, `-http-port: ${given} is no port`, doctorUsage);
  const httpPort = given === "" ? undefined : Number(given);
  const { services, findings } = await diagnose({ urls, headers, httpPort });
  stdout.write(
    values.json
      ? `${JSON.stringify({ services, findings }, null, 2)}\n`
      : `asked ${services.join(", ") || "no service"}\n${findings.map(lineOf).join("")}`,
  );
  if (findings.some(({ kind }) => kind === "unreachable")) return exitCodes.failed;
  return findings.some(({ kind }) => kind === "wrong") ? exitCodes.found : exitCodes.good;
}

function lineOf({ kind, service, says, advice }: Finding): string {
  return `${kind.padEnd(11)}  ${service}: ${says}\n${advice === undefined ? "" : `             ${advice}\n`}`;
}

function text(value: string) {
  return { type: "string", default: value } as const;
}

type Flags = Readonly<Record<string, ReturnType<typeof text>>>;

/** Reads options in Go's form; an exit code if there is nothing to run. */
function readArguments<F extends Flags>(
  argv: readonly string[],
  flags: F,
  { usage, stdout, stderr }: Output & { readonly usage: string },
) {
  try {
    const { values, positionals } = parseArgs({
      args: argv.map((one) => one.replace(/^-(?=[a-z]{2})/, "--")),
      options: {
        ...flags,
        "tenant-id": text(""),
        header: { type: "string", multiple: true },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
      allowPositionals: true,
    });
    const known = values as unknown as Record<keyof F | "tenant-id", string> & {
      header?: string[];
      json?: boolean;
      help?: boolean;
    };
    if (known.help === true) {
      stdout.write(usage);
      return exitCodes.good;
    }
    const headers = new Headers(
      (known.header ?? []).map((one): [string, string] => {
        const [, name, value] = /^([^:]+):\s*(.*)$/.exec(one) ?? [];
        if (name === undefined || value === undefined)
          throw new Error(`-header: ${one} is not "NAME: VALUE"`);
        return [name, value];
      }),
    );
    if (known["tenant-id"] !== "") headers.set("x-scope-orgid", known["tenant-id"]);
    const urls = positionals.map((one) => new URL(one).href.replace(/\/+$/, ""));
    return {
      values: { ...known, json: known.json === true },
      urls,
      headers: Object.fromEntries(headers),
    };
  } catch (error) {
    return refuse(stderr, (error as Error).message, usage);
  }
}

function durationMs(flag: string, value: string): number {
  const ns = parseGoDuration(value);
  if (ns === undefined || ns <= 0n)
    throw new Error(`-${flag}: ${value} is no duration, such as 10s`);
  return Number(ns / 1_000_000n);
}

function refuse(stderr: Output["stderr"], why: string, usage: string): number {
  stderr.write(`${why}\n${usage}`);
  return exitCodes.failed;
}
