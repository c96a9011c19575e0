import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { build } from "esbuild";
import * as everything from "./index.js";
import * as syntax from "./syntax.js";

const here = new URL("./", import.meta.url);
const faces: Readonly<Record<string, URL>> = {
  "@skald/model": new URL("../../model/dist/index.js", import.meta.url),
};

/** The modules that a module loads, itself among them; those of a package of this repository one by one. */
function loadedBy(url: URL, seen = new Set<string>()): Set<string> {
  if (seen.has(url.href)) return seen;
  seen.add(url.href);
  const imports = readFileSync(url, "utf8").matchAll(/(?:from |import |import\()"([^"]+)"/g);
  for (const [, name] of imports) {
    const local = name!.startsWith(".") ? new URL(name!, url) : faces[name!];
    if (local !== undefined) loadedBy(local, seen);
    else seen.add(name!);
  }
  return seen;
}

/** The code of a page that has these lines. */
async function bundle(contents: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(here) },
    ...{ bundle: true, minify: true, write: false, format: "esm", platform: "browser" },
  });
  return outputFiles[0]!.contents;
}

function load(code: Uint8Array): Promise<typeof syntax> {
  return import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);
}

describe("the syntax face", () => {
  const loaded = [...loadedBy(new URL("./syntax.js", here))];

  it("loads of this package nothing but the syntax and the numbers of Go", () => {
    const own = loaded.flatMap((name) =>
      name.startsWith(here.href) ? [name.slice(here.href.length)] : [],
    );
    expect(own.length).toBeGreaterThan(10);
    expect(own.filter((path) => !path.startsWith("syntax"))).toEqual(["go/numbers.js"]);
  });

  it("loads nothing of Node, and no package but what the model needs", () => {
    const packages = loaded.filter((name) => !name.startsWith("file:")).sort();
    expect(packages).toEqual(["lru-cache", "re2js"]);
  });

  it("is at most 22 KB in a page, which loads no regular expressions with it", async () => {
    const code = await bundle('export * from "./syntax.js"');
    expect(gzipSync(code, { level: 9 }).length).toBeLessThan(22_000);
    const { parseQuery } = await load(code);
    expect(parseQuery('{a=~"("} |~ "[" | regexp "x"')).toMatchObject({ kind: "log" });
    const checked = await load(
      await bundle('import "./syntax/regex.js"; export * from "./syntax.js"'),
    );
    expect(() => checked.parseQuery('{a=~"("}')).toThrow("missing closing )");
  });

  it("is part of the package's face", () => {
    expect(Object.keys(everything)).toEqual(expect.arrayContaining(Object.keys(syntax)));
  });

  it("colours, completes, explains and formats", () => {
    const text = 'sum(rate({a="b"}[5m]))';
    expect(syntax.tokenize(text).map(({ type }) => syntax.classOf(type))).toEqual([
      ..."function operator function operator operator name operator string operator number".split(
        " ",
      ),
      ..."operator operator end".split(" "),
    ]);
    expect(syntax.functionWords).toContain("rate");
    expect(syntax.formatQuery(syntax.parseQuery(text))).toBe('sum(rate({a="b"}[5m]))');
    expect(() => syntax.parseQuery("{a=}")).toThrow(
      expect.objectContaining({
        detail: expect.objectContaining({ kind: "parse_error", reason: expect.any(String) }),
      }),
    );
  });
});
