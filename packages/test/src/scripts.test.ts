import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "@jest/globals";
import { binSkald, makeFolder, removeFolders, waitFor } from "./testing/server.js";

const runNode = fileURLToPath(new URL("../../../scripts/run-node.mjs", import.meta.url));
const gatewayScript = new URL("../../../scripts/cluster/gateway.mjs", import.meta.url).href;
const main = fileURLToPath(new URL("../../skald/bundle/main.js", import.meta.url));

const parents = new Set<ReturnType<typeof spawn>>();
afterAll(async () => {
  for (const parent of parents) parent.kill("SIGKILL");
  await removeFolders();
});

/** Runs a Node program as the child of a script, as `npm start` does. */
function startBehindScript(...args: string[]) {
  const code = `import { runNode } from ${JSON.stringify(runNode)};
    runNode(process.execPath, ${JSON.stringify(args)});`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  parents.add(parent);
  let log = "";
  parent.stderr.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  const ended = new Promise((resolve) => parent.once("exit", resolve));
  return { parent, ended, log: () => log };
}

/** Waits until the program serves requests; resolves with a function that checks this again. */
async function untilServed(log: () => string): Promise<() => Promise<boolean>> {
  const portOf = () => /"port":(\d+)/.exec(log())?.[1];
  await waitFor(() => portOf() !== undefined);
  const isServed = () =>
    fetch(`http://127.0.0.1:${portOf()}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(isServed);
  return isServed;
}

const flags = () => [
  "-server.http-listen-port=0",
  "-server.worker-threads=1",
  `-common.path-prefix=${makeFolder()}`,
];

describe("the child of a script", () => {
  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "gets %s, and its end is the script's",
    async (signal) => {
      const child = `process.on("${signal}", () => process.exit(7));
        setInterval(() => undefined, 1000);
        console.error("runs");`;
      const { parent, ended, log } = startBehindScript("-e", child);
      await waitFor(() => log().includes("runs"));
      parent.kill(signal);
      expect(await ended).toBe(7);
    },
  );
});

describe("large memory that is freed goes back to the system", () => {
  const setting = "MALLOC_MMAP_THRESHOLD_";

  it("in the child of a script", async () => {
    const code = `console.error("with", process.env.${setting}, process.execArgv[0])`;
    const { log } = startBehindScript("-e", code);
    await waitFor(() => log().includes("with 131072 --max-semi-space-size=16"));
  });

  it.each([
    [{}, "131072 --max-semi-space-size=16\n"],
    [{ [setting]: "7" }, "7 --max-semi-space-size=16\n"],
  ])("in bin/skald, with %j", async (given, wanted) => {
    const folder = makeFolder();
    // In place of the Node of the path.
    writeFileSync(join(folder, "node"), `#!/bin/sh\necho "$${setting} $1"\n`, { mode: 0o755 });
    const env = { ...given, PATH: `${folder}:${process.env.PATH}`, SKALD_NO_RUNTIME: "1" };
    const { stdout } = await promisify(execFile)(binSkald, [], { env });
    expect(stdout).toBe(wanted);
  });
});

describe("the program as a child of a script", () => {
  it("ends in order when the script gets a signal", async () => {
    const { parent, ended, log } = startBehindScript(main, ...flags());
    const isServed = await untilServed(log);
    parent.kill("SIGHUP");
    expect(await ended).toBe(0);
    expect(await isServed()).toBe(false);
    expect(log()).toMatch(/"msg":"stopped"/);
  });

  it("ends by itself when the script is killed", async () => {
    const { parent, log } = startBehindScript(main, ...flags());
    const isServed = await untilServed(log);
    parent.kill("SIGKILL");
    await waitFor(async () => !(await isServed()));
    await waitFor(() => log().includes('"msg":"stopped"'));
    expect(log()).toMatch(/"reason":"the parent is gone"/);
  });
});

it("the gateway of a cluster asks many services for one request without a warning", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const service = createServer((_, response) => response.end("ready\n")).listen(0, "127.0.0.1");
  await once(service, "listening");
  const { port } = service.address() as AddressInfo;
  const { startGateway } = await import(gatewayScript);
  const gateway = await startGateway(0, () => Array.from({ length: 20 }, () => port));
  const answer = await fetch(`http://127.0.0.1:${gateway.address().port}/ready`);
  expect([answer.status, await answer.text()]).toEqual([200, "ready\n"]);
  process.off("warning", note);
  expect(warnings).toEqual([]);
  for (const server of [gateway, service]) server.close();
});
