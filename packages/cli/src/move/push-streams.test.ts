import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runForTest } from "../testing/run-command.js";
import { type Asked, StubServer } from "../testing/stub.js";
import type { PushedStream } from "./push-streams.js";

let server: StubServer;
beforeEach(async () => {
  server = new StubServer();
  await server.open();
});
afterEach(() => server.close());

const pauses = ["--min-backoff=1ms", "--max-backoff=1ms"];
const streamsOf = ({ body }: Asked): PushedStream[] => JSON.parse(body).streams;
const linesOf = (asked: Asked) =>
  streamsOf(asked).flatMap(({ values }) => values.map(([, line]) => line));
const pushes = () => server.asked.filter(({ path }) => path.endsWith("/push"));

/** Answers pushes of more lines with a status; returns the lines of those that it took. */
function takesAtMost(lines: number, status: number): string[] {
  const taken: string[] = [];
  server.answer = (asked) => {
    if (!asked.path.endsWith("/push")) return undefined;
    const found = linesOf(asked);
    if (found.length > lines) return status;
    taken.push(...found);
    return 204;
  };
  return taken;
}

describe("a push that is too large for the server", () => {
  const argv = ["push", "--label-from=app", ...pauses];
  const lines = Array.from({ length: 11 }, (_, i) => `app=${i % 2} n=${i}`);
  const skald = (...more: string[]) =>
    runForTest([...argv, ...more], {
      env: { SKALD_ADDR: server.url },
      input: `${lines.join("\n")}\n`,
    });

  it.each([
    [413, 1],
    [429, 2],
  ])("is sent in halves when it is answered with %i, so often: %i", async (status, times) => {
    const taken = takesAtMost(3, status);
    expect(await skald()).toMatchObject({ code: 0, err: expect.stringContaining("11 lines") });
    expect(taken.sort()).toEqual([...lines].sort());
    expect(pushes().filter((asked) => linesOf(asked).length === lines.length)).toHaveLength(times);
  });

  it("tells at once that a line alone has to wait", async () => {
    takesAtMost(0, 429);
    const { err } = await skald();
    const notes = err.split("\n").filter((line) => line.includes("trying again"));
    expect(notes).toEqual([
      "the server answered 429: Too Many Requests; trying again in 0.001 s, at most 20 times",
    ]);
    const quiet = await skald("--quiet");
    expect(quiet.err).not.toContain("trying again");
  });

  it("fails with what the server says where a line alone is refused", async () => {
    takesAtMost(0, 429);
    expect(await skald()).toMatchObject({
      code: 3,
      err: expect.stringContaining("the server answered 429: Too Many Requests"),
    });
  });
});

it("an import sends its pages in halves, too", async () => {
  const from = 1_795_168_800_000_000_000n;
  const values = Array.from({ length: 9 }, (_, i) => [`${from + BigInt(i)}`, `line ${i}`]);
  const taken = takesAtMost(2, 429);
  const push = server.answer;
  server.answer = (asked) =>
    asked.path.endsWith("/query_range")
      ? JSON.stringify({
          data: { resultType: "streams", result: [{ stream: { app: "a" }, values }] },
        })
      : push(asked);
  const range = ["--from=2026-11-20T10:00:00Z", "--to=2026-11-20T11:00:00Z", "--slice=1h"];
  const argv = ["import", "loki", '{app="a"}', "--from-addr", server.url, ...range, ...pauses];
  const folder = mkdtempSync(join(tmpdir(), "skald-halves-"));
  const state = ["--no-verify", "--state", join(folder, "state")];
  const found = await runForTest([...argv, ...state], { env: { SKALD_ADDR: server.url } });
  rmSync(folder, { recursive: true });
  expect(found).toMatchObject({ code: 0, err: expect.stringContaining("copied 9 lines") });
  expect(taken.sort()).toEqual(values.map(([, line]) => line));
});
