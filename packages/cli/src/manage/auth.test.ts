import { describe, expect, it } from "@jest/globals";
import { runForTest } from "../testing/run-command.js";

const run = (words: readonly string[], input = "") => runForTest(["auth", ...words], { input });

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

  it.each([["hash", "secret"], ["token", "x"], ["other"]])(
    "takes no argument: %s",
    async (...words) => {
      expect(await run(words)).toMatchObject({ code: 2, out: "" });
    },
  );
});
