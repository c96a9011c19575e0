import { afterAll, expect, it } from "@jest/globals";
import { getJson, nowNs, pushJson } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, waitFor } from "./testing/server.js";

afterAll(removeFolders);

interface Answer {
  readonly status: string;
  readonly data: readonly {
    readonly pattern: string;
    readonly level: string;
    readonly samples: readonly (readonly [number, number])[];
  }[];
}

const path = "/loki/api/v1/patterns";
const params = { query: '{app="a"}' };

it("patterns of new lines are found and survive a restart", async () => {
  const folder = makeFolder();
  const flags = ["-pattern-ingester.enabled=true"];
  const server = await startServer(folder, flags);
  const lines = Array.from(
    { length: 50 },
    (_, i) => [nowNs(), `level=info user ${i} logged in`] as const,
  );
  expect(await pushJson(server.url, { app: "a" }, lines)).toBe(204);
  let found: Answer["data"] = [];
  await waitFor(async () => {
    found = (await getJson<Answer>(server.url, path, params)).data;
    return found.length > 0;
  });
  expect(found).toMatchObject([{ pattern: "level=info user <_> logged in", level: "info" }]);
  expect(found[0]?.samples.reduce((sum, [, count]) => sum + count, 0)).toBe(50);
  await server.kill("SIGTERM");
  const again = await startServer(folder, flags);
  expect((await getJson<Answer>(again.url, path, params)).data).toEqual(found);
  await again.kill("SIGTERM");
});

it("nobody looks for them unless told to", async () => {
  const server = await startServer(makeFolder());
  const response = await fetch(`${server.url}${path}?${new URLSearchParams(params)}`);
  expect([response.status, await response.text()]).toEqual([404, ""]);
  await server.kill("SIGTERM");
});
