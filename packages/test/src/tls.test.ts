import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { TestAuthority, type TestCertificate } from "@skald/testkit";
import { makeFolder, removeFolders, spawnServer, urlOf, waitFor } from "./testing/server.js";

afterAll(removeFolders);

const authority = new TestAuthority("authority");
const stranger = new TestAuthority("stranger");

/** Resolves with the status of the answer, or with 0 when there is no answer. */
function ask(url: string, path: string, client: Partial<TestCertificate>): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(
      new URL(path, url),
      { ca: authority.cert, agent: false, ...client },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    asked.on("error", () => resolve(0));
    asked.end();
  });
}

describe("a process with server.http_tls_config", () => {
  it("answers over TLS, and only clients with a certificate of its authority", async () => {
    const folder = makeFolder();
    const file = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const own = authority.issue("server");
    const started = spawnServer(folder, [
      `-server.http-tls-cert-path=${file("cert.pem", own.cert)}`,
      `-server.http-tls-key-path=${file("key.pem", own.key)}`,
      `-server.http-tls-ca-path=${file("ca.pem", authority.cert)}`,
      "-server.http-tls-client-auth=RequireAndVerifyClientCert",
      "-server.tls-min-version=VersionTLS13",
    ]);
    const plain = await urlOf(started);
    const url = plain.replace("http:", "https:");
    const client = authority.issue("client");
    await waitFor(async () => (await ask(url, "/ready", client)) === 200);
    expect(await ask(url, "/metrics", client)).toBe(200);
    expect(await ask(url, "/metrics", {})).toBe(0);
    expect(await ask(url, "/metrics", stranger.issue("client"))).toBe(0);
    expect(await ask(url, "/metrics", { ...client, maxVersion: "TLSv1.2" } as object)).toBe(0);
    await expect(fetch(`${plain}/metrics`)).rejects.toThrow();
    expect(await started.kill("SIGTERM")).toBe(0);
  });

  it("does not start without what it asks for", async () => {
    const folder = makeFolder();
    const cert = join(folder, "cert.pem");
    writeFileSync(cert, readFileSync(new URL(import.meta.url)));
    const started = spawnServer(folder, [
      `-server.http-tls-cert-path=${cert}`,
      `-server.http-tls-key-path=${cert}`,
    ]);
    await expect(urlOf(started)).rejects.toThrow(`certificate and key of ${cert}, ${cert} cannot`);
  });
});
