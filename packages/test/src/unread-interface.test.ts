import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "@jest/globals";
import { queryLines } from "./testing/client.js";
import { filesBelow, makeFolder, removeFolders, startServer } from "./testing/server.js";

const skald = fileURLToPath(new URL("../../skald", import.meta.url));

afterAll(removeFolders);

describe("the files of the web interface", () => {
  it("are not read by ingest and queries, but by the first request for them", async () => {
    // Where the program looks for them there is something else as long as nobody asks.
    const folder = makeFolder();
    const program = join(folder, "bundle");
    cpSync(join(skald, "bundle"), program, { recursive: true });
    cpSync(join(skald, "package.json"), join(folder, "package.json"));
    const [ui, aside] = [join(program, "ui"), join(program, "ui-aside")];
    renameSync(ui, aside);
    for (const file of filesBelow(aside, "")) {
      mkdirSync(dirname(join(ui, file)), { recursive: true });
      writeFileSync(join(ui, file), "read too early");
    }
    const server = await startServer(makeFolder(), ["-auth.enabled=false"], {
      main: join(program, "main.js"),
    });
    const values = [[`${Date.now()}000000`, "a line"]];
    const pushed = await fetch(`${server.url}/loki/api/v1/push`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ streams: [{ stream: { app: "a" }, values }] }),
    });
    expect(pushed.status).toBe(204);
    expect(await queryLines(server.url, '{app="a"}')).toEqual(["a line"]);
    // Clients that are no browsers see nothing of the interface either.
    expect((await fetch(server.url, { headers: { accept: "*/*" } })).status).toBe(404);
    rmSync(ui, { recursive: true });
    renameSync(aside, ui);
    const page = await (await fetch(`${server.url}/ui/`)).text();
    expect(page).toContain("<!doctype html>");
    const script = /assets\/app-\w+\.js/.exec(page)?.[0];
    const asset = await (await fetch(`${server.url}/ui/${script}`)).text();
    expect(asset).not.toContain("read too early");
    await server.kill("SIGTERM");
  });
});
