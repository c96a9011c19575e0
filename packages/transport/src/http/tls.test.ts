import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { TestAuthority, type TestCertificate } from "@skald/testkit";
import { type Route, textResponse } from "./route.js";
import { startTestServer, stopTestServers } from "./testing/server.js";
import { checkTls, type TlsOptions } from "./tls.js";

const authority = new TestAuthority("authority");
const stranger = new TestAuthority("stranger");
const own = authority.issue("server");
const known = authority.issue("client");
const unknown = stranger.issue("client");
const folder = mkdtempSync(join(tmpdir(), "skald-tls-"));
const base: TlsOptions = {
  cert: { text: own.cert },
  key: { text: own.key },
  clientAuth: "",
  minVersion: "",
  cipherSuites: [],
};
const routes: Route[] = [
  { methods: ["GET"], path: "/x", handler: () => textResponse(200, "secret") },
];

afterEach(stopTestServers);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The answer, or the code of the failure. */
async function ask(port: number, client?: TestCertificate, options: object = {}): Promise<string> {
  return new Promise((resolve) => {
    const asked = request(
      {
        host: "127.0.0.1",
        port,
        path: "/x",
        ca: authority.cert,
        agent: false,
        ...client,
        ...options,
      },
      (response: IncomingMessage) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve(text));
      },
    );
    asked.on("error", (error: NodeJS.ErrnoException) => resolve(`failed: ${error.code}`));
    asked.end();
  });
}

const failed = expect.stringMatching(/^failed: /);
const secret = "secret";

describe("a server with a certificate", () => {
  it("speaks TLS, and answers nobody without", async () => {
    const { port, url } = await startTestServer({ routes, tls: base });
    expect(await ask(port)).toBe(secret);
    await expect(fetch(`${url}/x`)).rejects.toThrow();
  });

  it.each([
    ["", secret, secret, secret],
    ["NoClientCert", secret, secret, secret],
    ["RequestClientCert", secret, secret, secret],
    ["RequireAnyClientCert", failed, secret, secret],
    ["RequireClientCert", failed, secret, secret],
    ["VerifyClientCertIfGiven", secret, secret, failed],
    ["RequireAndVerifyClientCert", failed, secret, failed],
  ] as const)("and client_auth_type %j", async (clientAuth, none, good, bad) => {
    const clientCa = clientAuth === "" || clientAuth === "NoClientCert" ? {} : authorities();
    const { port } = await startTestServer({ routes, tls: { ...base, ...clientCa, clientAuth } });
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"]) {
      expect(await ask(port, undefined, { maxVersion })).toEqual(none);
      expect(await ask(port, known, { maxVersion })).toEqual(good);
      expect(await ask(port, unknown, { maxVersion })).toEqual(bad);
    }
  });

  it("asks for the certificate of a client again when that comes back", async () => {
    const tls = { ...base, ...authorities(), clientAuth: "RequireAndVerifyClientCert" };
    const { port } = await startTestServer({ routes, tls });
    const sessions: Buffer[] = [];
    const open = (options: object) =>
      new Promise<TLSSocket>((resolve, reject) => {
        const socket = connect({ host: "127.0.0.1", port, ca: authority.cert, ...options });
        socket.on("session", (session) => sessions.push(session));
        socket.on("error", reject);
        socket.write("GET /x HTTP/1.1\r\nhost: a\r\n\r\n");
        socket.once("data", () => resolve(socket));
      });
    (await open(known)).destroy();
    const session = sessions.at(-1);
    await expect(open({ session })).rejects.toThrow();
  });

  it.each([
    ["VersionTLS12", "TLSv1.2", secret],
    ["VersionTLS13", "TLSv1.2", failed],
    ["VersionTLS13", "TLSv1.3", secret],
  ] as const)("and tls_min_version %s, asked with %s", async (minVersion, maxVersion, want) => {
    const { port } = await startTestServer({ routes, tls: { ...base, minVersion } });
    expect(await ask(port, undefined, { maxVersion })).toEqual(want);
  });

  it.each([
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384", secret],
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", failed],
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.3", "TLS_AES_128_GCM_SHA256", secret],
    ["TLS_AES_256_GCM_SHA384", "TLSv1.3", "TLS_AES_256_GCM_SHA384", secret],
    ["TLS_AES_256_GCM_SHA384", "TLSv1.3", "TLS_AES_128_GCM_SHA256", failed],
  ])("and tls_cipher_suites %s, asked with %s %s", async (suite, maxVersion, ciphers, want) => {
    const { port } = await startTestServer({ routes, tls: { ...base, cipherSuites: [suite] } });
    expect(await ask(port, undefined, { maxVersion, ciphers })).toEqual(want);
  });

  it("takes certificates from files, again when these change, and keeps the last good ones", async () => {
    const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    const write = ({ cert, key }: TestCertificate) => {
      writeFileSync(files.cert, cert);
      writeFileSync(files.key, key);
    };
    write(own);
    const failures: unknown[] = [];
    const tls = { ...base, cert: { file: files.cert }, key: { file: files.key } };
    const { server, port } = await startTestServer({
      routes,
      tls,
      onCertificates: (error) => failures.push(error),
    });
    write(stranger.issue("server"));
    server.reloadCertificates();
    expect(await ask(port)).toEqual(failed);
    expect(await ask(port, undefined, { ca: stranger.cert })).toBe(secret);
    write({ ...own, key: "none" });
    server.reloadCertificates();
    server.reloadCertificates();
    expect(await ask(port, undefined, { ca: stranger.cert })).toBe(secret);
    write(own);
    server.reloadCertificates();
    expect(await ask(port)).toBe(secret);
    expect(failures).toEqual([undefined, expect.any(Error), undefined]);
  });

  it("does not start with files that are missing or no certificates", async () => {
    const missing = { ...base, cert: { file: join(folder, "missing.pem") } };
    await expect(startTestServer({ routes, tls: missing })).rejects.toThrow(/missing\.pem/);
    const other = { ...base, key: { text: known.key } };
    await expect(startTestServer({ routes, tls: other })).rejects.toThrow(/key/);
  });
});

describe("what cannot be honoured is refused", () => {
  it.each<[string, Partial<TlsOptions>, string]>([
    ["a certificate without its key", { key: {} }, "certificate and key belong together"],
    ["a key without its certificate", { cert: {} }, "certificate and key belong together"],
    [
      "two certificates",
      { cert: { text: "a", file: "b" } },
      "cert and cert_file exclude each other",
    ],
    ["a kind that is none", { clientAuth: "Require" }, "client_auth_type: unknown kind Require"],
    [
      "a kind that nothing can be verified by",
      { clientAuth: "RequireAndVerifyClientCert" },
      "client_auth_type: RequireAndVerifyClientCert needs client_ca or client_ca_file",
    ],
    [
      "authorities that verify nothing",
      authorities(),
      "client_ca: needs a client_auth_type that asks clients for certificates",
    ],
    ["a version that is none", { minVersion: "1.2" }, "tls_min_version: unknown version 1.2"],
    [
      "a cipher suite that is none",
      { cipherSuites: ["AES128"] },
      "tls_cipher_suites: AES128 is unknown or not supported",
    ],
    [
      "a cipher suite that is not built",
      { cipherSuites: ["TLS_RSA_WITH_RC4_128_SHA"] },
      "tls_cipher_suites: TLS_RSA_WITH_RC4_128_SHA is unknown or not supported",
    ],
  ])("%s", (_name, options, text) => {
    expect(checkTls({ ...base, ...options }).join()).toContain(text);
  });

  it("anything, where there is no certificate", () => {
    const none: TlsOptions = { ...base, cert: {}, key: {} };
    expect(checkTls(none)).toEqual([]);
    for (const options of [
      { clientAuth: "RequireAnyClientCert" },
      { minVersion: "VersionTLS13" },
      { cipherSuites: ["TLS_AES_128_GCM_SHA256"] },
      authorities(),
    ])
      expect(checkTls({ ...none, ...options }).join()).toContain("without a certificate");
  });

  it("and nothing else", () => {
    const cipherSuites = [
      "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
      "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
      "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
      "TLS_RSA_WITH_AES_128_CBC_SHA256",
      "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
      "TLS_CHACHA20_POLY1305_SHA256",
    ];
    for (const minVersion of ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"])
      expect(checkTls({ ...base, minVersion, cipherSuites })).toEqual([]);
  });
});

function authorities(): Pick<TlsOptions, "clientCa"> {
  return { clientCa: { text: authority.cert } };
}
