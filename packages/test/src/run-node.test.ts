import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "@jest/globals";
import { makeFolder, removeFolders, waitFor } from "./testing/server.js";

const runNode = fileURLToPath(new URL("../../../scripts/run-node.mjs", import.meta.url));
const main = fileURLToPath(new URL("../../skald/dist/main.js", import.meta.url));

const parents = new Set<ReturnType<typeof spawn>>();
afterAll(async () => {
  for (const parent of parents) parent.kill("SIGKILL");
  await removeFolders();
});

/** Starts the program as `npm start` does: as the child of a script. */
async function startBehindScript() {
  const folder = makeFolder();
  const flags = ["-server.http-listen-port=0", `-common.path-prefix=${folder}`];
  const code = `import { runNode } from ${JSON.stringify(runNode)};
    runNode(process.execPath, ${JSON.stringify([main, ...flags])});`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  parents.add(parent);
  let log = "";
  parent.stderr.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  const portOf = () => /"port":(\d+)/.exec(log)?.[1];
  await waitFor(() => portOf() !== undefined);
  const url = `http://127.0.0.1:${portOf()}/ready`;
  await waitFor(async () => (await fetch(url)).ok);
  const isServed = () =>
    fetch(url).then(
      () => true,
      () => false,
    );
  return { parent, log: () => log, isServed };
}

describe("the program as a child of a script", () => {
  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "gets %s, and its end is the script's",
    async (signal) => {
      const { parent, log, isServed } = await startBehindScript();
      const ended = new Promise((resolve) => parent.once("exit", resolve));
      parent.kill(signal);
      expect(await ended).toBe(0);
      expect(await isServed()).toBe(false);
      expect(log()).toMatch(/"msg":"stopped"/);
    },
  );

  it("ends by itself when the script is killed", async () => {
    const { parent, log, isServed } = await startBehindScript();
    parent.kill("SIGKILL");
    await waitFor(async () => !(await isServed()));
    await waitFor(() => log().includes('"msg":"stopped"'));
    expect(log()).toMatch(/"reason":"the parent is gone"/);
  });
});
