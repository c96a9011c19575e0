import { Agent } from "node:http";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { everyTarget, wholeApi } from "./index.js";
import { type HostileRequest, hostileRequests } from "./testing/hostile-requests.js";
import { type HostileAnswer, sendHostile } from "./testing/send-hostile.js";
import { startProcess, type TestProcess } from "./testing/start-process.js";

/** The whole is `RUNS=100000`. */
const requests = testRuns(1500);
const requestsAtOnce = 8;
const maxBodyBytes = 64 * 1024;
/** What every endpoint may answer. */
const usualStatuses = [400, 401, 405, 413];
/** What no answer may tell: where the program is, and where it was. */
const secrets = /\n\s+at |node_modules|file:\/\/|\/packages\/|\/dist\/|\.js:\d+/;

let server: TestProcess;
const agent = new Agent({ keepAlive: true, maxSockets: requestsAtOnce });

beforeAll(async () => {
  server = await startProcess([
    everyTarget,
    "-server.profiles-enabled",
    "-pattern-ingester.enabled",
    "-auth.enabled",
    "-compactor.retention-enabled",
    "-compactor.delete-request-store=filesystem",
    "-frontend.support-parquet-encoding",
    "-querier.multi-tenant-queries-enabled",
    `-frontend.max-body-size=${maxBodyBytes}`,
    `-distributor.max-recv-msg-size=${maxBodyBytes}`,
  ]);
});

afterAll(async () => {
  agent.destroy();
  await server.stop();
});

it(
  `answers ${requests} hostile requests as its routes say`,
  async () => {
    const next = hostileRequests({
      api: wholeApi(),
      random: seededRandom(testSeed()),
      maxBodyBytes,
      nowMs: Date.now(),
    });
    const problems: string[] = [];
    let left = requests;
    const work = async () => {
      while (left-- > 0 && problems.length < 20) {
        const asked = next();
        const problem = problemOf(asked, await sendHostile(asked, { agent, port: server.port }));
        if (problem !== undefined) problems.push(`${problem}: ${describe(asked)}`);
      }
    };
    await Promise.all(Array.from({ length: requestsAtOnce }, work));
    expect(problems).toEqual([]);
    expect(server.errors).toEqual([]);
    expect(server.ends).toEqual([]);
    const ready = await fetch(`${server.url}/ready`);
    expect([ready.status, await ready.text()]).toEqual([200, "ready\n"]);
  },
  30_000 + requests * 60,
);

/** What is wrong with an answer. */
function problemOf(
  asked: HostileRequest,
  { status, allow, text }: HostileAnswer,
): string | undefined {
  const { allowed, endpoint, isOverLimit, method } = asked;
  if (status >= 500) return `${status} ${text}`;
  const isOwnPath = endpoint?.paths.some((path) => path === "/config" || path === "/metrics");
  if (secrets.test(text) || (!isOwnPath && text.includes(server.folder))) return `tells ${text}`;
  // A path that can be cleaned is sent elsewhere; one that cannot be decoded is bad.
  if (endpoint === undefined)
    return [301, 400, 404].includes(status) ? undefined : `${status} of a path that is none`;
  // What a variable was filled with may make it such a path, or one that is served otherwise.
  const hasVariable = endpoint.paths.some((path) => path.includes(":"));
  const isOther = [301, 400, 404].includes(status) || asked.url.split("?", 1)[0]?.endsWith("/");
  if (hasVariable && isOther) return undefined;
  const isServed = allowed.has(method);
  if (!isServed && (status !== 405 || allow !== [...allowed].sort().join(", ")))
    return `${status} with Allow ${allow}`;
  if (!isServed) return undefined;
  if (isOverLimit && status !== 413 && status !== 401 && status !== 400)
    return `${status}, not 413`;
  const { answers = {}, errors = {} } = endpoint.docs ?? {};
  const known = [...usualStatuses, ...Object.keys({ ...answers, ...errors }).map(Number)];
  return known.includes(status) ? undefined : `${status} is not told of: ${text.slice(0, 200)}`;
}

function describe({ method, url, headers, body }: HostileRequest): string {
  const sent = Buffer.from(body ?? []).toString("latin1");
  return `${method} ${url.slice(0, 2000)} ${JSON.stringify(headers).slice(0, 500)} ${sent.slice(0, 1000)}`;
}
