import { makeFolder, startServer, type TestServer } from "../server.js";

const nsPerMs = 1_000_000n;
const apps = ["payments", "checkout", "web", "api"];
const messages = ["upstream returned error", "order stored", "timeout while calling bank"];
/** Every seventh line is an error, every fifth a warning. */
const levelOf = (i: number) => (i % 7 === 0 ? "error" : i % 5 === 0 ? "warn" : "info");

/** Starts a server without data. */
export async function emptySite(flags: readonly string[] = []): Promise<TestServer> {
  return startServer(makeFolder(), ["-auth.enabled=false", ...flags]);
}

/** Pushes lines to a server; `tenant` where it has several. */
export async function push(
  { url }: { readonly url: string },
  streams: readonly { stream: Record<string, string>; values: (readonly [string, string])[] }[],
  tenant?: string,
): Promise<void> {
  const headers = {
    "content-type": "application/json",
    ...(tenant === undefined ? {} : { "x-scope-orgid": tenant }),
  };
  const body = JSON.stringify({ streams });
  const answer = await fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
  if (answer.status !== 204) throw new Error(`${answer.status} ${await answer.text()}`);
}

/** Pushes lines of four applications over the last half hour, two thirds of them JSON and the rest logfmt. */
export async function fill(site: { readonly url: string }, lines: number, tenant?: string) {
  const endNs = BigInt(Date.now()) * nsPerMs;
  const stepNs = (30n * 60_000n * nsPerMs) / BigInt(lines);
  const batch = 5000;
  for (let from = 0; from < lines; from += batch) {
    const streams = apps.map((app, a) => ({
      stream: { app, pod: `${app}-0`, env: "prod" },
      values: numbers(from, Math.min(lines, from + batch))
        .filter((i) => i % apps.length === a)
        .map((i) => [String(endNs - BigInt(lines - i) * stepNs), lineOf(i)] as const),
    }));
    await push(site, streams, tenant);
  }
}

/** The line of a number, of which the last is the newest. */
function lineOf(i: number): string {
  const msg = messages[i % messages.length];
  const status = i % 11 === 0 ? 500 : 200;
  if (i % 3 === 0) return `level=${levelOf(i)} msg="${msg}" key=k${i}`;
  return JSON.stringify({
    level: levelOf(i),
    msg,
    status,
    duration_ms: i % 97,
    user: `u${i % 50}`,
  });
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
