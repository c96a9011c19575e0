// A server with data of its own and a browser, for scripts that look at the web interface.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { chromium } from "playwright-core";
import { builtRuntime, root } from "../runtime.mjs";

/** Starts the built program on a free port, and a browser; runs the function with both, and ends them. */
export async function withSite(flags, run) {
  const folder = mkdtempSync(join(tmpdir(), "skald-ui-"));
  const server = spawn(
    builtRuntime() ?? process.execPath,
    [
      join(root, "packages/skald/bundle/main.js"),
      "-server.http-listen-port=0",
      "-server.http-listen-address=127.0.0.1",
      "-server.grpc-listen-port=0",
      `-common.path-prefix=${folder}`,
      ...flags,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const browser = await chromium.launch({
    executablePath: browserPath(),
    // Root, as in a container, may not use the sandbox.
    args: ["--disable-lcd-text", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
  });
  try {
    const url = await urlOf(server);
    while (!(await fetch(`${url}/ready`)).ok) await pause(50);
    await run({ url, browser });
  } finally {
    await browser.close();
    server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Resolves with the address of a server when it listens. */
function urlOf(server) {
  return new Promise((resolve, reject) => {
    let log = "";
    server.stderr.setEncoding("utf8").on("data", (part) => {
      log += part;
      const port = /"port":(\d+)[^\n]*"msg":"listening"/.exec(log)?.[1];
      if (port !== undefined) resolve(`http://127.0.0.1:${port}`);
    });
    server.once("exit", () => reject(new Error(`the server ended:\n${log}`)));
  });
}

/** Chromium by its names, below the folders of PATH; the variable CHROMIUM has the path of another. */
function browserPath() {
  const names = ["chromium", "chromium-browser", "google-chrome"];
  const found =
    process.env.CHROMIUM ??
    (process.env.PATH ?? "")
      .split(delimiter)
      .flatMap((folder) => names.map((name) => join(folder, name)))
      .find((path) => existsSync(path));
  if (found === undefined) throw new Error("chromium is not installed; CHROMIUM may name its path");
  return found;
}
