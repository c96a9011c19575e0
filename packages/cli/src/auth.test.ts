import { Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { runAuth } from "./auth.js";

async function run(argv: readonly string[], input = "") {
  const [out, err]: string[][] = [[], []];
  const code = await runAuth(argv, {
    stdin: Readable.from([input]),
    stdout: { write: (text) => out?.push(text) },
    stderr: { write: (text) => err?.push(text) },
  });
  return { code, out: out?.join(""), err: err?.join("") };
}

describe("skald auth", () => {
  it("hashes the line that it reads", async () => {
    const { code, out } = await run(["hash"], "secret\n");
    expect([code, out]).toEqual([0, expect.stringMatching(/^\$scrypt\$ln=14,r=8,p=1\$\S+\n$/)]);
    expect((await run(["hash"], "secret")).out).not.toBe(out);
  });

  it.each(["", "\n", "two\nlines"])("refuses %j", async (input) => {
    const { code, err } = await run(["hash"], input);
    expect([code, err]).toEqual([2, expect.stringContaining("one line, and not empty")]);
  });

  it("makes a token", async () => {
    const { code, out } = await run(["token"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^token: [\w-]{43}\nusers file: sha256:[0-9a-f]{64}\n$/);
    expect((await run(["token"])).out).not.toBe(out);
  });

  it("explains itself", async () => {
    expect(await run(["-help"])).toMatchObject({ code: 0, out: expect.stringContaining("Usage") });
    for (const argv of [[], ["other"], ["hash", "secret"]])
      expect(await run(argv)).toMatchObject({ code: 2, err: expect.stringContaining("Usage") });
  });
});
