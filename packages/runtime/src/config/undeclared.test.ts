import { describe, expect, it } from "@jest/globals";
import { loadTest, tree, warnings } from "./testing/settings.js";

describe("keys without effect", () => {
  it("are named once for each reason, with their places, whatever they hold", () => {
    const yaml = `
ring: {host: y, store: x, client: {a: [1], b: , c: {}, d: 0}}
bloom: &b {enabled: false}
server: {gone: *b}`;
    expect(warnings(loadTest(yaml, "-ring.host=z"))).toEqual([
      "needs no ring; no effect: ring.host (c.yaml:2:8), ring.client.a (c.yaml:2:36), ring.client.d (c.yaml:2:56), -ring.host",
      "an experiment; no effect: bloom.enabled (c.yaml:3:12), server.gone.enabled (c.yaml:3:12)",
    ]);
  });

  it("may stand in items of a list, and are named with their first place", () => {
    const yaml = "clients: [{old: {a: 1}, url: u}, {old: {a: 2}, url_old: 3}]";
    const loaded = loadTest(yaml);
    expect(warnings(loaded)).toEqual([
      "use url; no effect: clients[].old.a (c.yaml:1:18), clients[].url_old (c.yaml:1:48)",
    ]);
    expect(tree(loaded)).toMatchObject({ clients: [{ url: "u" }, { url: "" }] });
  });

  it("are nothing when the section is empty", () => {
    expect(warnings(loadTest("bloom:\nring: {client: {}}"))).toEqual([]);
  });

  it("hide neither declared keys nor typing errors in other sections", () => {
    expect(tree(loadTest("ring: {store: x}"))).toMatchObject({ ring: { store: "x" } });
    expect(tree(loadTest("server: {gona: 1}"))).toBe(
      'CONFIG ERROR: c.yaml:1:10: unknown key "gona" in server\n',
    );
    expect(tree(loadTest("", "-blom.enabled"))).toBe(
      "CONFIG ERROR: unknown flag -blom.enabled; -help lists all\n",
    );
  });

  it("hold an alias that stands for itself without an end", () => {
    expect(tree(loadTest("bloom: &a {b: *a}"))).not.toBeUndefined();
  });

  it.each([
    [["-ring.host"]],
    [["-ring.host=-1"]],
    [["-ring.host", "x"]],
    [["-ring.host", "-1"]],
    [["-ring.host", "-"]],
    [["--ring.host", "-server.port=7"]],
    [["-ring.host", "--server.port=7"]],
  ])("may be flags: %j", (argv) => {
    const loaded = loadTest("", ...argv, "-server.tls");
    expect(warnings(loaded)).toEqual(["needs no ring; no effect: -ring.host"]);
    const port = argv.join(" ").includes("port") ? 7 : 3100;
    expect(tree(loaded)).toMatchObject({ server: { tls: true, port } });
  });
});

describe("values that must not be ignored", () => {
  it("do not start", () => {
    const problem = "CONFIG ERROR: server.cert: use a proxy\n";
    expect(tree(loadTest("server: {cert: unsafe}"))).toBe(problem);
    expect(tree(loadTest("", "-server.cert=unsafe"))).toBe(problem);
    expect(tree(loadTest("server: {cert: unsafe}", "-server.cert=x"))).toMatchObject({});
    expect(warnings(loadTest("server: {cert: x}"))).toEqual([]);
  });
});
