import { describe, expect, it } from "@jest/globals";
import { loadTest, tree, warnings } from "./testing/settings.js";

describe("keys without effect", () => {
  it("names those that differ from their default, once per section", () => {
    const yaml = "server: {tls: true, port: 1}\nring: {store: x, client: {host: y}}";
    expect(warnings(loadTest(yaml))).toEqual([
      "server: no TLS yet: tls",
      "ring: needs no ring: store, client.host",
    ]);
    expect(warnings(loadTest("server: {tls: false}\nring: {store: inmemory}"))).toEqual([]);
    expect(warnings(loadTest("", "-ring.store=x"))).toEqual(["ring: needs no ring: store"]);
  });

  it("says nothing about a value that holds all the same", () => {
    expect(warnings(loadTest("server: {workers: 1}"))).toEqual([]);
    expect(warnings(loadTest("server: {workers: 2}"))).toEqual([
      "server: one thread is used: workers",
    ]);
  });

  it("looks into lists and maps of sections, and names a key once", () => {
    const yaml = "clients: [{proxy: a}, {proxy: b}]\nnamed: {x: {proxy: c}}";
    expect(warnings(loadTest(yaml))).toEqual([
      "clients[]: no proxy is used: proxy",
      "named[]: no proxy is used: proxy",
    ]);
  });

  it("does not start where ignoring a key would be unsafe", () => {
    const problem = "CONFIG ERROR: server.certs: use a proxy: cert\n";
    expect(tree(loadTest("server: {certs: {cert: x}}"))).toBe(problem);
    expect(tree(loadTest("", "-server.cert=x"))).toBe(problem);
    expect(warnings(loadTest("server: {certs: {cert: ''}}"))).toEqual([]);
  });

  it("accepts keys that are not there any more with their reason", () => {
    const yaml = `
limits_config: {unordered_writes: true}
clients: [{old: {a: [1]}}]
named: {a: {sse_kind: 1}}
bloom: {enabled: true}`;
    expect(warnings(loadTest(yaml))).toEqual([
      "c.yaml:2:17: limits_config.unordered_writes: removed",
      "c.yaml:3:12: clients[].old: use url",
      "c.yaml:4:13: named[].sse_kind: use sse",
      "c.yaml:5:1: bloom: an experiment",
    ]);
  });

  it("is silent about such a section that is switched off", () => {
    expect(warnings(loadTest("bloom: {enabled: false, x: 1}"))).toEqual([]);
    expect(warnings(loadTest("bloom:"))).toEqual([]);
  });

  it("accepts flags that are not there any more", () => {
    expect(warnings(loadTest("", "-legacy-read-mode=false"))).toEqual([
      "flag -legacy-read-mode: removed",
    ]);
  });
});
