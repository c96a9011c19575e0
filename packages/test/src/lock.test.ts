import { afterAll, expect, it } from "@jest/globals";
import { nowNs, pushJson, queryLines } from "./testing/client.js";
import { makeFolder, removeFolders, spawnServer, startServer } from "./testing/server.js";

afterAll(removeFolders);

const keepLog = ["-ingester.flush-on-shutdown=false"];

it("a second process on the same folder does not start, and the next one after a kill does", async () => {
  const folder = makeFolder();
  const first = await startServer(folder, keepLog);
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(), "one"]])).toBe(204);
  const second = spawnServer(folder, keepLog);
  const code = await new Promise((resolve) => second.process.once("exit", resolve));
  expect(code).toBe(1);
  expect(second.log()).toMatch(
    new RegExp(`could not start: .*is in use by process ${first.process.pid} of \\S+ since 2`),
  );
  expect(await pushJson(first.url, { app: "a" }, [[nowNs(1), "two"]])).toBe(204);
  expect(await queryLines(first.url, '{app="a"}')).toEqual(["one", "two"]);
  await first.kill("SIGKILL");

  const third = await startServer(folder, keepLog);
  expect(await queryLines(third.url, '{app="a"}')).toEqual(["one", "two"]);
  expect(await third.kill("SIGTERM")).toBe(0);
});
