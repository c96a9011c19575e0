import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@skald/testkit";
import { nowNs, pushJson, queryLines } from "../testing/client.js";
import {
  binSkald,
  makeFolder,
  removeFolders,
  runProgram,
  spawnServer,
  startServer,
  type TestServer,
  urlOf,
  waitFor,
} from "../testing/server.js";

afterAll(removeFolders);

describe("on a terminal", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(makeFolder(), [
      "-compactor.retention-enabled=true",
      "-compactor.delete-request-store=filesystem",
    ]);
    const line = JSON.stringify({ level: "error", msg: "broken \u001b[2J", user: "7" });
    await pushJson(server.url, { app: "api" }, [[nowNs(), line]]);
  });
  afterAll(() => server.kill("SIGTERM"));

  /** Runs a command in a terminal; `typed` is what the user types. */
  async function inTerminal(command: string, typed = "", env: Record<string, string> = {}) {
    const line = `"${process.execPath}" "${binSkald}" ${command}`;
    const child = spawn("script", ["-qec", line, "/dev/null"], {
      env: { ...process.env, SKALD_ADDR: server.url, SKALD_CONFIG: "/nonexistent", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
    });
    if (typed !== "") {
      await waitFor(() => text.includes("Type yes:"));
      child.stdin.write(`${typed}\n`);
    }
    const [code] = await once(child, "close");
    return { code, text: text.replaceAll("\r", "") };
  }

  it("lines are for people, in colours, and cannot move the cursor", async () => {
    const { code, text } = await inTerminal(`query '{app="api"}' -q`);
    expect(code).toBe(0);
    expect(text).toContain("\u001b[31mERR\u001b[39m api broken \\u001b[2J  ");
    expect(text).toContain("\u001b[90muser=\u001b[39m7\n");
    const plain = await inTerminal(`query '{app="api"}' -q`, "", { NO_COLOR: "1" });
    expect(plain.text).toMatch(/ ERR api broken \\u001b\[2J {2}user=7\n/);
    const always = await runProgram(
      binSkald,
      ["query", '{app="api"}', "-q", "-o", "pretty", "--color=always"],
      {
        env: { SKALD_ADDR: server.url },
      },
    );
    expect(always.stdout).toContain("\u001b[31mERR");
  });

  it("-o default has the colours of logcli, and one for each stream with --colored-output", async () => {
    const asked = `query '{app="api"}' -q -o default --include-label app`;
    const labels = 'm {app="api"}\u001b[39m';
    expect((await inTerminal(asked)).text).toContain(`\u001b[31${labels}`);
    expect((await inTerminal(`${asked} --colored-output`)).text).toContain(`\u001b[33${labels}`);
    expect((await inTerminal(asked, "", { NO_COLOR: "1" })).text).not.toContain("\u001b[3");
  });

  it("delete add asks, and takes only a yes", async () => {
    const command = `delete add '{app="api"}' --since 10m`;
    const no = await inTerminal(command, "no");
    expect(no).toMatchObject({ code: 1, text: expect.stringContaining("1 lines from ") });
    expect(await queryLines(server.url, '{app="api"}')).toHaveLength(1);
    const yes = await inTerminal(command, "yes");
    expect(yes).toMatchObject({ code: 0, text: expect.stringContaining("the request is ") });
    await waitFor(async () => (await queryLines(server.url, '{app="api"}')).length === 0);
  });
});

describe("over TLS", () => {
  it("takes certificates from files, and says what is wrong without them", async () => {
    const folder = makeFolder();
    const authority = new TestAuthority("authority");
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const [own, client] = [authority.issue("server"), authority.issue("client")];
    const ca = file("ca.pem", authority.cert);
    const [cert, key] = [file("client.pem", client.cert), file("client.key", client.key)];
    const started = spawnServer(folder, [
      `-server.http-tls-cert-path=${file("cert.pem", own.cert)}`,
      `-server.http-tls-key-path=${file("key.pem", own.key)}`,
      `-server.http-tls-ca-path=${ca}`,
      "-server.http-tls-client-auth=RequireAndVerifyClientCert",
    ]);
    const addr = (await urlOf(started)).replace("http:", "https:");
    await waitFor(() => started.log().includes('"ready"'));
    const ask = (...argv: string[]) =>
      runProgram(binSkald, ["labels", "--addr", addr, ...argv], {
        env: { SKALD_CONFIG: "/nonexistent" },
      });
    expect(await ask("--ca-cert", ca, "--cert", cert, "--key", key)).toMatchObject({
      code: 0,
      stderr: "",
    });
    expect(await ask("--tls-skip-verify", "--cert", cert, "--key", key)).toMatchObject({ code: 0 });
    const named = { LOKI_CLIENT_CERT_PATH: cert, LOKI_CLIENT_KEY_PATH: key };
    for (const trusted of [{ LOKI_CA_CERT_PATH: ca }, { LOKI_TLS_SKIP_VERIFY: "true" }]) {
      const env = { ...named, ...trusted, SKALD_CONFIG: "/nonexistent", LOKI_ADDR: addr };
      expect(await runProgram(binSkald, ["labels"], { env })).toMatchObject({ code: 0 });
    }
    expect(await ask("--cert", cert, "--key", key)).toMatchObject({ code: 4 });
    expect(await ask("--ca-cert", ca, "--cert", cert)).toMatchObject({ code: 2 });
    expect(await ask("--ca-cert", "/nonexistent")).toMatchObject({ code: 2 });
    const files = ["--addr", addr, "--ca-cert", ca, "--cert", cert, "--key", key];
    const tail = spawn(process.execPath, [binSkald, "tail", '{app="x"}', "-o", "raw", ...files]);
    let [out, err] = ["", ""];
    tail.stdout.on("data", (part) => {
      out += part;
    });
    tail.stderr.on("data", (part) => {
      err += part;
    });
    const push = () =>
      runProgram(binSkald, ["push", "--label=app=x", ...files], { input: "hello\n" });
    expect(await push()).toMatchObject({ code: 0 });
    await waitFor(() => out.includes("hello\n"));
    tail.kill("SIGINT");
    expect([(await once(tail, "exit"))[0], err]).toEqual([130, ""]);
    const target = await startServer(makeFolder());
    const copy = (...from: string[]) =>
      runProgram(
        binSkald,
        ["import", '{app="x"}', "--addr", target.url, "--from-addr", addr, "--retries=0", ...from],
        { cwd: makeFolder() },
      );
    const asClient = ["--from-cert", cert, "--from-key", key];
    expect(await copy("--from-ca-cert", ca, ...asClient)).toMatchObject({ code: 0 });
    expect(await queryLines(target.url, '{app="x"}')).toEqual(["hello"]);
    expect(await copy("--from-tls-skip-verify", ...asClient)).toMatchObject({ code: 0 });
    expect(await copy(...asClient)).toMatchObject({ code: 4 });
    await target.kill("SIGTERM");
    await started.kill("SIGTERM");
  });
});
