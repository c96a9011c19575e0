import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runForTest } from "./testing/run-command.js";
import { type Asked, StubServer } from "./testing/stub.js";

let server: StubServer;
let folder: string;
beforeEach(async () => {
  server = new StubServer();
  await server.open();
  folder = mkdtempSync(join(tmpdir(), "skald-flags-"));
});
afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const hour = ["--from=2026-11-20T10:00:00Z", "--to=2026-11-20T11:00:00Z"];
const startNs = 1_795_168_800_000_000_000n;

/** Runs a command line with the stub for its server. */
function skald(words: readonly string[], given: Parameters<typeof runForTest>[1] = {}) {
  const env = { SKALD_ADDR: server.url, SKALD_CONFIG: join(folder, "config.yaml"), ...given.env };
  return runForTest(words, { ...given, env });
}

/** An answer with one line. */
function lines(line = "hello", ns = startNs): string {
  const result = [{ stream: { app: "a" }, values: [[`${ns}`, line]] }];
  return JSON.stringify({ data: { resultType: "streams", result } });
}

const noValues = '{"data":{"resultType":"vector","result":[]}}';

describe("flags of a request", () => {
  it.each([
    ["query {a='b'} --interval 5s", { interval: "5" }],
    ["query {a='b'} --step 1m", { step: "60" }],
    ["fields {a='b'} --line-limit 7 --limit 3", { line_limit: "7", limit: "3" }],
    ["volume {a='b'} --by x,y --limit 4", { targetLabels: "x,y", limit: "4" }],
    ["volume {a='b'} --targetLabels x --targetLabels y", { targetLabels: "x,y" }],
    ["volume {a='b'} --aggregateByLabels", { aggregateBy: "labels" }],
    ["volume_range {a='b'} --step 10m", { step: "10m" }],
    ["labels --query {a='b'}", { query: "{a='b'}" }],
    ["explain {a='b'} --limit 5 --forward", { limit: "5", direction: "forward" }],
    ["explain {a='b'} --step 2m", { step: "120" }],
    ["delete create {a='b'} --max-interval 1h", { max_interval: "1h" }],
    ["delete cancel id --force", { request_id: "id", force: "true" }],
    ["tail {a='b'} --limit 0 --delay-for 3", { delay_for: "3" }],
  ])("%s", async (line, wanted) => {
    await skald(line.split(" "));
    expect(server.asked[0]?.params).toMatchObject(wanted);
  });

  it("patterns --limit", async () => {
    const data = [1, 2, 3].map((n) => ({ pattern: `p${n}`, samples: [[0, n]] }));
    server.answer = () => JSON.stringify({ data });
    const { out } = await skald(["patterns", "{}", "--limit=2"]);
    expect(out).toBe("lines  level  pattern\n    3         p3\n    2         p2\n");
  });

  it("fields --counts asks with the parser that finds the field", async () => {
    const fields = [{ label: "status", type: "int", cardinality: 2, parsers: ["json"] }];
    const result = ["200", "503"].map((status, i) => ({ metric: { status }, value: [0, `${i}`] }));
    server.answer = ({ path }) =>
      JSON.stringify(
        path.endsWith("/query") ? { data: { resultType: "vector", result } } : { fields },
      );
    const argv = ["fields", '{a="b"}', "status", "--counts", "--limit=9", ...hour, "-o", "csv"];
    expect(await skald(argv)).toEqual({ code: 0, err: "", out: "status,lines\n503,1\n200,0\n" });
    expect(server.asked[1]?.params.query).toBe(
      'topk(9, sum by (status) (count_over_time({a="b"} | json | status != "" | drop __error__, __error_details__ [3600000ms])))',
    );
  });
});

describe("flags without a meaning", () => {
  it.each([
    ["query {} --schema-store x", "schema-store"],
    ["query {} --memprofile x", "memprofile"],
    ["fields {a='b'} --step 10s", "step"],
  ])("%s says so", async (line, name) => {
    const { err } = await skald(line.split(" "));
    expect(err).toContain(`--${name} has no meaning here\n`);
    expect((await skald([...line.split(" "), "-q"])).err).not.toContain("no meaning");
  });
});

describe("flags of the connection", () => {
  const file = (text: string) => {
    writeFileSync(join(folder, "secret"), text);
    return join(folder, "secret");
  };
  const headers = () => server.asked.at(-1)?.headers;

  it("--bearer-token, and --bearer-token-file", async () => {
    await skald(["labels", "--bearer-token", "t"]);
    expect(headers()).toMatchObject({ authorization: "Bearer t" });
    await skald(["labels", "--bearer-token-file", file("u\n")]);
    expect(headers()).toMatchObject({ authorization: "Bearer u" });
  });

  it("--proxy-url, and --envproxy with NO_PROXY", async () => {
    await skald(["labels", "--addr=http://logs.invalid", "--proxy-url", server.url]);
    expect(headers()?.host).toBe("logs.invalid");
    const env = { HTTP_PROXY: server.url };
    await skald(["labels", "--addr=http://env.invalid", "--envproxy"], { env });
    expect(headers()?.host).toBe("env.invalid");
    const count = server.asked.length;
    const asked = ["labels", "--addr=http://no.invalid"];
    expect((await skald(asked, { env })).code).toBe(4);
    const except = { ...env, NO_PROXY: "x,.invalid" };
    expect((await skald([...asked, "--envproxy"], { env: except })).code).toBe(4);
    expect(server.asked).toHaveLength(count);
  });

  it("--max-backoff bounds each pause", async () => {
    let failures = 2;
    server.answer = () => (failures-- > 0 ? 503 : undefined);
    // Without the bound the first pause alone is longer than the test may take.
    const pauses = ["--retries=2", "--min-backoff=1h", "--max-backoff=1ms"];
    expect((await skald(["labels", ...pauses])).code).toBe(0);
  });

  it("a context has its password in a file or a variable", async () => {
    const path = file("p:w\n");
    const add = ["context", "add", "a", `--addr=${server.url}`, "--username=u"];
    const env = { SKALD_ADDR: "", SECRET: "v" };
    const basic = (text: string) => ({
      authorization: `Basic ${Buffer.from(text).toString("base64")}`,
    });
    await skald([...add, `--password-file=${path}`]);
    await skald(["labels"], { env });
    expect(headers()).toMatchObject(basic("u:p:w"));
    await skald(["context", "rm", "a"]);
    await skald([...add, "--password-env=SECRET"]);
    await skald(["labels"], { env });
    expect(headers()).toMatchObject(basic("u:v"));
  });

  it("SKALD_CONTEXT names the context, and --context counts more", async () => {
    await skald(["context", "add", "a", "--org-id=a"]);
    await skald(["context", "add", "b", "--org-id=b"]);
    await skald(["context", "add", "c", "--org-id=c"]);
    const tenant = async (...argv: string[]) => {
      await skald(["labels", ...argv], { env: { SKALD_CONTEXT: "b" } });
      return headers()?.["x-scope-orgid"];
    };
    expect([await tenant(), await tenant("--context=c")]).toEqual(["b", "c"]);
  });

  it("doctor --tenant-id", async () => {
    await skald(["doctor", server.url, "--tenant-id=shop", "--http-port=0"]);
    expect(headers()).toMatchObject({ "x-scope-orgid": "shop" });
  });

  it("canary --tenant-id, and --history, before which it checks nothing", async () => {
    const end = new AbortController();
    let pushes = 0;
    server.answer = ({ path }) => {
      if (!path.endsWith("/push")) return lines();
      if (++pushes === 5) end.abort();
      return "";
    };
    const flags = ["--tenant-id=shop", "--history=1ms", "--port=0"];
    const pauses = ["--interval=10ms", "--check-interval=1h"];
    await skald(["canary", server.url, ...flags, ...pauses], { signal: end.signal });
    expect(headers()).toMatchObject({ "x-scope-orgid": "shop" });
    const spans = server.asked
      .filter(({ path }) => path.endsWith("/query_range"))
      .map(({ params }) => BigInt(params.end!) - BigInt(params.start!));
    // One batch: the next one begins a millisecond later.
    expect(spans.length).toBeGreaterThan(0);
    for (const span of spans) expect(span).toBeLessThan(1_000_000n);
  });
});

describe("flags of parts", () => {
  it("--overwrite-completed-parts asks again", async () => {
    const prefix = join(folder, "part");
    const argv = ["query", "{}", ...hour, "-o", "raw", "-q", "--part-path-prefix", prefix];
    const text = () => readFileSync(join(folder, readdirSync(folder)[0]!), "utf8");
    for (const [line, more, wanted] of [
      ["one", [], "one\n"],
      ["two", [], "one\n"],
      ["two", ["--overwrite-completed-parts"], "two\n"],
    ] as const) {
      server.answer = () => lines(line);
      expect((await skald([...argv, ...more])).code).toBe(0);
      expect(text()).toBe(wanted);
    }
  });
});

describe("flags of push, export and import", () => {
  it("push --time-field", async () => {
    const line = '{"ts":"2026-11-20T10:00:00Z","seen":"2026-11-20T10:30:00Z"}\n';
    await skald(["push", "--time-field=seen"], { input: line });
    const { streams } = JSON.parse(server.asked[0]!.body);
    expect(streams[0].values[0][0]).toBe(`${startNs + 1_800_000_000_000n}`);
  });

  const answer = ({ path }: Asked) => {
    if (path.endsWith("/push")) return 204;
    if (path.endsWith("/query")) return noValues;
    return path.endsWith("/query_range") ? lines() : undefined;
  };
  const ranges = () => server.asked.filter(({ path }) => path.endsWith("/query_range"));

  it("export --form counts more than the name", async () => {
    server.answer = answer;
    const path = join(folder, "x.log");
    await skald(["export", "{a='b'}", "-o", path, "--form=csv", "--slice=1h", ...hour]);
    expect(readFileSync(path, "utf8")).toMatch(/^time,labels,line\n/);
  });

  it("export --slice", async () => {
    server.answer = answer;
    await skald(["export", "{a='b'}", "-o", join(folder, "x"), "--slice=20m", ...hour]);
    expect(ranges()).toHaveLength(3);
  });

  const copy = () => [
    ...["import", "loki", '{a="b"}', "--from-addr", server.url, ...hour],
    ...["--state", join(folder, "state")],
  ];

  it("import --slice, and --no-verify", async () => {
    server.answer = answer;
    expect((await skald([...copy(), "--slice=30m", "--no-verify"])).code).toBe(0);
    expect(ranges()).toHaveLength(2);
    const counts = () => server.asked.filter(({ path }) => path.endsWith("/query"));
    expect(counts()).toHaveLength(0);
    await skald([...copy(), "--slice=30m"]);
    expect(counts().length).toBeGreaterThan(0);
  });

  it("import --rate waits for its time", async () => {
    server.answer = answer;
    const end = new AbortController();
    let isDone = false;
    const argv = [...copy(), "--slice=1h", "--no-verify", "--rate=0.0000001"];
    const run = skald(argv, { signal: end.signal }).then((found) => {
      isDone = true;
      return found;
    });
    const isPushed = () => server.asked.some(({ path }) => path.endsWith("/push"));
    // Without the flag the command ends with the answer to the push, which comes before those of these requests.
    for (let after = 0; after < 50; after += isPushed() ? 1 : 0) await fetch(`${server.url}/turn`);
    expect(isDone).toBe(false);
    end.abort();
    expect((await run).code).toBe(130);
    expect(existsSync(join(folder, "state"))).toBe(false);
  });
});

describe("flags of the source of an import", () => {
  const source = async (...flags: string[]) => {
    const from = new StubServer();
    await from.open();
    from.answer = () => lines();
    try {
      const argv = ["import", '{a="b"}', "--from-addr", from.url, ...hour, "--slice=1h"];
      const state = ["--state", join(folder, "state"), "--no-verify"];
      const found = await skald([...argv, ...state, ...flags]);
      expect(found).toMatchObject({ code: 0 });
      return from.asked[0]?.headers;
    } finally {
      from.close();
    }
  };

  it("are those of a connection, and not of the target's", async () => {
    const user = ["--from-username=u", "--from-password=p", "--from-auth-header=X-Auth"];
    const others = ["--from-org-id=shop", "--from-header=X-Y: z", "--from-query-tags=t"];
    const found = await source(...user, ...others, "--from-compress", "--from-nocache");
    expect(found).toMatchObject({
      ...{ "x-auth": `Basic ${Buffer.from("u:p").toString("base64")}`, "x-scope-orgid": "shop" },
      ...{ "x-y": "z", "x-query-tags": "t", "cache-control": "no-cache" },
      "accept-encoding": "gzip, deflate",
    });
    const target = server.asked[0]?.headers ?? {};
    for (const name of ["x-auth", "x-scope-orgid", "x-y", "x-query-tags"])
      expect(target[name]).toBeUndefined();
  });

  it("--from-bearer-token, and --from-bearer-token-file", async () => {
    const token = "--from-bearer-token";
    expect(await source(`${token}=t`)).toMatchObject({ authorization: "Bearer t" });
    writeFileSync(join(folder, "token"), "u");
    expect(await source(`${token}-file=${join(folder, "token")}`)).toMatchObject({
      authorization: "Bearer u",
    });
  });
});
