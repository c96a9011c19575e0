import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { binSkald, makeFolder, removeFolders, runProgram } from "../testing/server.js";

afterAll(removeFolders);

const skald = (...argv: string[]) => runProgram(binSkald, argv, { cwd: makeFolder() });

describe("words that are no flags", () => {
  it.each([[["help"]], [["--help"]], [["-h"]]])("%s lists the commands", async (argv) => {
    const { code, stdout, stderr } = await skald(...argv);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: skald/);
    expect(stdout).toMatch(/^ {2}verify +checks every checksum/m);
    expect(stdout).toContain("skald -help lists its flags");
  });

  it.each([[["help", "verify"]], [["verify", "--help"]], [["verify", "-help"]]])(
    "%s explains a command",
    async (argv) => {
      const { code, stdout } = await skald(...argv);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: skald verify \[options\] <sources\.\.\.>/);
    },
  );

  it.each([
    ["an unknown command", ["verfy"], /unknown command 'verfy'\n\(Did you mean verify\?\)/],
    ["an unknown flag", ["inspect", "x", "--jsn"], /unknown option '--jsn'\n\(Did you mean --json/],
    ["a missing argument", ["inspect"], /missing required argument 'files'/],
    [
      "a value that is no number",
      ["canary", "http://x", "--port", "y"],
      /'y' is invalid.*Not a number/,
    ],
  ])("%s ends with 2 and a hint", async (_case, argv, wanted) => {
    const { code, stdout, stderr } = await skald(...argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(wanted);
  });
});

it("one Node runs a command: the one that the build fetched, or else that of the path", async () => {
  const folder = makeFolder();
  writeFileSync(join(folder, "node"), "#!/bin/sh\necho the node of the path\n", { mode: 0o755 });
  const run = (more: NodeJS.ProcessEnv) => {
    const env = { ...process.env, PATH: `${folder}:/usr/bin:/bin`, ...more };
    return execFileSync(binSkald, ["help"], { env, encoding: "utf8" });
  };
  const isFetched = existsSync(join(dirname(dirname(binSkald)), ".runtime"));
  expect(run({ SKALD_NO_RUNTIME: "" })).toMatch(isFetched ? /^Usage: skald/ : /of the path/);
  expect(run({ SKALD_NO_RUNTIME: "1" })).toBe("the node of the path\n");
});

it("flags of the server are read by the server, and its help names the commands", async () => {
  expect((await skald("-help")).stdout).toMatch(/^Usage: skald \[flags\]\n +skald COMMAND/);
  expect((await skald("-nope", "query")).stderr).toContain("CONFIG ERROR: unknown flag -nope");
});

describe("context", () => {
  it("is added, used, shown and removed; secrets are named, and never stored", async () => {
    const env = { SKALD_CONFIG: join(makeFolder(), "deep", "config.yaml"), TOKEN: "t" };
    const context = (...argv: string[]) => runProgram(binSkald, ["context", ...argv], { env });
    expect(
      await context("add", "a", "--addr=http://a:1", "--bearer-token-env=TOKEN"),
    ).toMatchObject({ code: 0 });
    expect(await context("add", "b", "--addr=http://b:2", "--org-id=shop")).toMatchObject({
      code: 0,
    });
    expect((await context("list")).stdout).toBe(
      "   name  address     tenant\n*  a     http://a:1\n   b     http://b:2  shop\n",
    );
    expect(await context("use", "b")).toMatchObject({ code: 0 });
    expect((await context("show")).stdout).toBe("addr: http://b:2\norg-id: shop\n");
    expect(await context("rm", "b")).toMatchObject({ code: 0 });
    expect(await context("show", "b")).toMatchObject({ code: 2, stdout: "" });
    expect(await context("add", "c", "--password=x")).toMatchObject({ code: 2 });
    expect(readFileSync(env.SKALD_CONFIG, "utf8")).not.toContain(": t\n");
  });

  it("gives a command its connection, and a flag counts more", async () => {
    const env = { SKALD_CONFIG: join(makeFolder(), "config.yaml") };
    await runProgram(binSkald, ["context", "add", "a", "--addr=http://a.invalid"], { env });
    const asked = (...argv: string[]) => runProgram(binSkald, ["labels", ...argv], { env });
    expect((await asked()).stderr).toContain("http://a.invalid was not reached");
    expect((await asked("--addr=http://127.0.0.1:9")).stderr).toContain("127.0.0.1:9 was not");
    writeFileSync(env.SKALD_CONFIG, "current: a\ncontexts: {a: {password: x}}");
    expect((await asked()).stderr).toMatch(
      /unknown key password; name a file or a variable: password-file/,
    );
  });
});

describe("config check", () => {
  it.each([
    ["a good file", "server: {http_listen_port: 1234}", 0],
    ["a wrong file", "servr: {}", 1],
  ])("%s", async (_name, text, code) => {
    const path = join(makeFolder(), "c.yaml");
    writeFileSync(path, text);
    const found = await skald("config", "check", path);
    expect(found.code).toBe(code);
    expect(found.stdout + found.stderr).toMatch(code === 0 ? /is good/ : /servr.*server/s);
  });
});

describe("completion", () => {
  const words = async (line: string) => {
    const { stdout } = await skald("completion", "bash");
    const script = `${stdout}\nCOMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _skald; echo "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", script], { encoding: "utf8" }).trim().split(" ");
  };

  it.each([
    ["commands", "skald ver", ["verify"]],
    ["commands of a group", "skald context r", ["rm"]],
    ["flags", "skald query --forw", ["--forward"]],
    ["flags of a command of a group", "skald context add --addr", ["--addr"]],
  ])("%s", async (_name, line, wanted) => {
    expect(await words(line)).toEqual(wanted);
  });

  it("is there for zsh and fish, and for no other", async () => {
    expect((await skald("completion", "zsh")).stdout).toContain("compdef _skald skald");
    expect((await skald("completion", "fish")).stdout).toContain("-l forward");
    expect(await skald("completion", "cmd")).toMatchObject({ code: 2 });
  });
});
