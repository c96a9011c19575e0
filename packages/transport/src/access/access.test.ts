import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { Access, type Need, type RefusalReason } from "./access.js";
import { hashToken, readUsers } from "./users-file.js";

const password = "$scrypt$ln=10,r=8,p=1$MTIzNDU2Nzg$X9lvMM9+jnN+RVNXgdLV/hVpQxuadcUowkZD8lIeyoU";
const file = `
users:
  - name: grafana
    password: ${password}
    tenants: [a, b]
    rights: [read]
  - name: agent
    tokens: ["${hashToken("token-1")}", "${hashToken("token-2")}"]
    tenants: [a]
    rights: [write]
  - name: admin
    password: ${password}
    tokens: ["${hashToken("root")}"]
    tenants: ["*"]
    rights: [read, write, rules, delete, operate]
  - name: watchman
    tokens: ["${hashToken("watch")}"]
    rights: [operate]
`;
const folder = mkdtempSync(join(tmpdir(), "skald-access-"));
afterAll(() => rmSync(folder, { recursive: true }));

function open(text = file, authEnabled = true) {
  const path = join(folder, "users.yaml");
  writeFileSync(path, text);
  const refusals: RefusalReason[] = [];
  const reloads: unknown[] = [];
  const access = new Access({
    file: path,
    tenancy: { authEnabled, noAuthTenant: "fake" },
    onRefusal: (reason) => void refusals.push(reason),
    onReload: (error) => void reloads.push(error),
  });
  /** The status that a request gets, 200 for none. */
  const ask = async (need: Need, authorization?: string, tenant?: string) => {
    const headers: IncomingHttpHeaders = {
      ...(authorization === undefined ? {} : { authorization }),
      ...(tenant === undefined ? {} : { "x-scope-orgid": tenant }),
    };
    return access.authorize(headers, need).then(
      () => ({ status: 200, text: "", tenant: headers["x-scope-orgid"] }),
      ({ status, message: text }) => ({ status, text, tenant }),
    );
  };
  return { access, path, refusals, reloads, ask };
}

function basic(user: string, secret: string): string {
  return `Basic ${Buffer.from(`${user}:${secret}`).toString("base64")}`;
}

describe("Access", () => {
  const grafana = basic("grafana", "secret");
  const all = basic("admin", "secret");

  it.each<[string, Need, string | undefined, string | undefined, number]>([
    ["nobody", "read", undefined, "a", 401],
    ["nobody at an open path", "open", undefined, undefined, 200],
    ["a user", "read", grafana, "a", 200],
    ["a user of both tenants", "read", grafana, "a|b", 200],
    ["a user with metadata of a tenant", "read", grafana, "a:k=v", 200],
    ["a user of another tenant", "read", grafana, "c", 403],
    ["a user of one tenant too many", "read", grafana, "a|c", 403],
    ["a user without the right", "write", grafana, "a", 403],
    ["a user with a tenant that is none", "read", grafana, "a/b", 400],
    ["a user with a wrong password", "read", basic("grafana", "Secret"), "a", 401],
    ["a user without a password", "read", basic("agent", ""), "a", 401],
    ["an unknown user", "read", basic("nobody", "secret"), "a", 401],
    ["a token", "write", "Bearer token-1", "a", 200],
    ["another token of the user", "write", "bearer  token-2 ", "a", 200],
    ["a token of a collector", "write", "Splunk token-1", "a", 200],
    ["a token of another tenant", "write", "Bearer token-1", "b", 403],
    ["an unknown token", "write", "Bearer token-3", "a", 401],
    ["the hash of a token", "write", `Bearer ${hashToken("token-1")}`, "a", 401],
    ["a token as a password", "write", basic("agent", "token-1"), "a", 401],
    ["another scheme", "write", "Digest token-1", "a", 401],
    ["no secret", "write", "Bearer", "a", 401],
    ["a very long secret", "write", `Bearer ${"x".repeat(5000)}`, "a", 401],
    ["a user of every tenant", "delete", all, "z", 200],
    ["an operator", "operate", "Bearer watch", undefined, 200],
    ["an operator who reads", "read", "Bearer watch", "a", 403],
    ["a reader of some tenants, of metrics", "read all", grafana, undefined, 403],
    ["a reader of every tenant, of metrics", "read all", all, undefined, 200],
  ])("answers %s", async (_, need, authorization, tenant, status) => {
    const { ask, refusals } = open();
    expect((await ask(need, authorization, tenant)).status).toBe(status);
    expect(refusals).toHaveLength(status === 401 || status === 403 ? 1 : 0);
  });

  it("takes the key of an agent of Datadog as a token", async () => {
    const { access } = open();
    await expect(access.authorize({ "dd-api-key": "token-1" }, "write")).resolves.toBeUndefined();
    await expect(access.authorize({ "dd-api-key": "token-3" }, "write")).rejects.toThrow(/token/);
  });

  it("says what is missing", async () => {
    const { ask, refusals } = open();
    const texts = [
      await ask("read"),
      await ask("read", "Bearer x", "a"),
      await ask("delete", grafana, "a"),
      await ask("read", grafana, "c"),
      await ask("read all", grafana),
    ].map(({ text }) => text);
    expect(texts).toEqual([
      "this needs a user: send Authorization: Basic or Bearer",
      "unknown user, password or token",
      "user grafana may not do this: it needs the right delete",
      "user grafana may not name tenant c",
      "user grafana may not do this: it needs every tenant (*)",
    ]);
    expect(refusals).toEqual(["no_credentials", "bad_credentials", "right", "tenant", "tenant"]);
  });

  it("names the tenant of a user who has one", async () => {
    const { ask } = open();
    expect((await ask("write", "Bearer token-1")).tenant).toBe("a");
    expect((await ask("read", grafana)).tenant).toBeUndefined();
    expect((await ask("write", all)).tenant).toBeUndefined();
  });

  it("checks the tenant of a process that has only one", async () => {
    const { ask } = open(file, false);
    expect((await ask("read", grafana, "a")).status).toBe(403);
    const own = open(file.replace("[a, b]", "[fake]"), false);
    expect((await own.ask("read", grafana)).status).toBe(200);
  });

  it("takes over a changed file, and keeps the old users while it is wrong or gone", async () => {
    const { access, path, ask, reloads } = open();
    const statuses = async () => [
      (await ask("write", "Bearer token-1", "a")).status,
      (await ask("write", "Bearer new", "a")).status,
    ];
    await access.reload();
    expect(reloads).toEqual([]);
    const changed = file.replace(hashToken("token-1"), hashToken("new"));
    writeFileSync(path, changed);
    await access.reload();
    expect([reloads, await statuses()]).toEqual([[undefined], [401, 200]]);
    writeFileSync(path, "users: []");
    await access.reload();
    await access.reload();
    rmSync(path);
    await access.reload();
    expect(reloads).toEqual([
      undefined,
      expect.objectContaining({ message: expect.stringContaining("it has no users") }),
      expect.objectContaining({ code: "ENOENT" }),
    ]);
    expect(await statuses()).toEqual([401, 200]);
    writeFileSync(path, changed);
    await access.reload();
    expect(reloads).toHaveLength(4);
  });

  it("is not opened with a file that is missing or wrong", () => {
    expect(() => open("")).toThrow(/it has no users/);
    const missing = { file: join(folder, "none.yaml") };
    const tenancy = { authEnabled: true, noAuthTenant: "fake" };
    expect(() => new Access({ ...missing, tenancy })).toThrow(/ENOENT/);
  });
});

describe("readUsers", () => {
  const user = { name: "u", tokens: [hashToken("t")], tenants: ["a"], rights: ["read"] };
  it.each([
    ["no YAML", "{", /u\.yaml:1:\d+: /],
    ["an unknown key", { ...user, right: "read" }, /unknown key "right".*did you mean "rights"/],
    ["no name", { ...user, name: "" }, /user 1: name must have 1 to 100 letters/],
    ["a name with a colon", { ...user, name: "a:b" }, /user 1: name must/],
    ["no secret", { ...user, tokens: [] }, /user u: needs a password or tokens/],
    ["a plain password", { ...user, password: "hunter2" }, /user u: password must be \$scrypt/],
    ["a plain token", { ...user, tokens: ["hunter2"] }, /user u: a token must be sha256:/],
    ["no rights", { ...user, rights: [] }, /user u: needs rights, some of read, write, rules/],
    ["an unknown right", { ...user, rights: ["admin"] }, /user u: unknown right "admin"/],
    ["no tenants", { ...user, tenants: [] }, /user u: needs tenants, or \*/],
    [
      "every tenant and one",
      { ...user, tenants: ["*", "a"] },
      /user u: tenants must be \* or names/,
    ],
    ["a tenant that is none", { ...user, tenants: ["a/b"] }, /unsupported character '\/'/],
  ])("refuses %s", (_, given, message) => {
    const text = typeof given === "string" ? given : JSON.stringify({ users: [given] });
    expect(() => readUsers(text, "u.yaml")).toThrow(message);
    expect(() => readUsers(text, "u.yaml")).not.toThrow(/hunter2/);
  });

  it("refuses a name or a token that is there twice", () => {
    const text = JSON.stringify({ users: [user, user] });
    expect(() => readUsers(text, "u.yaml")).toThrow(
      /user u: the name is there twice; user u: a token is there twice/,
    );
  });
});
