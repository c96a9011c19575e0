import { constants } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  createSecureContext,
  getCiphers,
  type SecureContextOptions,
  type SecureVersion,
  type Server,
  type TLSSocket,
} from "node:tls";

/** PEM text, or a file with it. */
export interface PemSource {
  readonly text?: string;
  readonly file?: string;
}

/** TLS of a listener, in the words of the configuration. */
export interface TlsOptions {
  readonly cert: PemSource;
  readonly key: PemSource;
  /** Authorities that sign the certificates of clients. */
  readonly clientCa?: PemSource;
  /** What clients must show: a key of `clientAuthKinds`. */
  readonly clientAuth: string;
  /** `VersionTLS12` or another key of `versions`; empty: that. */
  readonly minVersion: string;
  /** IANA names; empty: the default of Node. All suites of TLS 1.3 are allowed unless some are named. */
  readonly cipherSuites: readonly string[];
}

interface ClientAuth {
  /** Whether clients are asked for a certificate. */
  readonly asks: boolean;
  /** Whether they must have one. */
  readonly requires: boolean;
  /** Whether one that they give must be signed by an authority. */
  readonly verifies: boolean;
}

const none: ClientAuth = { asks: false, requires: false, verifies: false };
const requireAny: ClientAuth = { asks: true, requires: true, verifies: false };

/** What `client_auth_type` may say. */
const clientAuthKinds: ReadonlyMap<string, ClientAuth> = new Map([
  ["", none],
  ["NoClientCert", none],
  ["RequestClientCert", { asks: true, requires: false, verifies: false }],
  ["RequireClientCert", requireAny],
  ["RequireAnyClientCert", requireAny],
  ["VerifyClientCertIfGiven", { asks: true, requires: false, verifies: true }],
  ["RequireAndVerifyClientCert", { asks: true, requires: true, verifies: true }],
]);

const versions: ReadonlyMap<string, SecureVersion> = new Map([
  ["", "TLSv1.2"],
  ["VersionTLS10", "TLSv1"],
  ["VersionTLS11", "TLSv1.1"],
  ["VersionTLS12", "TLSv1.2"],
  ["VersionTLS13", "TLSv1.3"],
]);

const suitesOfTls13 = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
];

/** Whether a listener with these options speaks TLS. */
export function servesTls({ cert, key }: TlsOptions): boolean {
  return isGiven(cert) || isGiven(key);
}

/** The options that cannot be honoured, with the names of their keys; files are not read. */
export function checkTls(options: TlsOptions): string[] {
  const { cert, key, clientCa = {}, clientAuth, minVersion, cipherSuites } = options;
  const problems: string[] = [];
  for (const [name, source] of Object.entries({ cert, key, client_ca: clientCa }))
    if (source.text && source.file) problems.push(`${name} and ${name}_file exclude each other`);
  const auth = clientAuthKinds.get(clientAuth);
  if (auth === undefined) problems.push(`client_auth_type: unknown kind ${clientAuth}`);
  else if (auth.verifies && !isGiven(clientCa))
    problems.push(`client_auth_type: ${clientAuth} needs client_ca or client_ca_file`);
  else if (!auth.asks && isGiven(clientCa))
    problems.push("client_ca: needs a client_auth_type that asks clients for certificates");
  if (!versions.has(minVersion)) problems.push(`tls_min_version: unknown version ${minVersion}`);
  for (const suite of cipherSuites)
    if (cipherOf(suite) === undefined)
      problems.push(`tls_cipher_suites: ${suite} is unknown or not supported`);
  if (isGiven(cert) !== isGiven(key)) problems.push("certificate and key belong together");
  const asksForMore =
    clientAuth !== "" || isGiven(clientCa) || minVersion !== "" || cipherSuites.length > 0;
  if (!servesTls(options) && asksForMore) problems.push(withoutCertificate);
  return problems;
}

const withoutCertificate =
  "TLS is not served without a certificate; set cert_file and key_file, or remove client_auth_type, client_ca_file, tls_min_version and tls_cipher_suites";

/** The options of a TLS listener; reads the files. Throws an error that names what cannot be used. */
export function listenerOptions(options: TlsOptions) {
  const { asks, requires, verifies } = authOf(options);
  return {
    ...readContext(options),
    ALPNProtocols: ["h2", "http/1.1"],
    requestCert: asks,
    rejectUnauthorized: requires && verifies,
  };
}

/** The part of the options that may change while the listener runs. Throws an error that names what cannot be used. */
function readContext(options: TlsOptions): SecureContextOptions {
  const { cert, key, clientCa = {}, minVersion, cipherSuites } = options;
  const context: SecureContextOptions = {
    cert: read(cert),
    key: read(key),
    ...(isGiven(clientCa) ? { ca: read(clientCa) } : {}),
    ...tlsParameters(minVersion, cipherSuites),
    // A returning client must show its certificate again, because it may be invalid by now.
    ...(authOf(options).asks ? { secureOptions: constants.SSL_OP_NO_TICKET } : {}),
  };
  try {
    createSecureContext(context);
  } catch (cause) {
    const names = [cert, key, clientCa].flatMap(({ file }) => file || []);
    const from = names.length === 0 ? "" : ` of ${names.join(", ")}`;
    throw new Error(`certificate and key${from} cannot be used`, { cause });
  }
  return context;
}

/** Whether a client may continue after its handshake. */
export function mayConnect(socket: TLSSocket, options: TlsOptions): boolean {
  const { asks, requires, verifies } = authOf(options);
  if (!asks) return true;
  if (socket.getPeerX509Certificate() === undefined) return !requires;
  return !verifies || socket.authorized;
}

function authOf({ clientAuth }: TlsOptions): ClientAuth {
  const auth = clientAuthKinds.get(clientAuth);
  if (auth === undefined) throw new Error(`client_auth_type: unknown kind ${clientAuth}`);
  return auth;
}

/** The oldest version and the ciphers, as Node takes them. */
export function tlsParameters(
  minVersion: string,
  cipherSuites: readonly string[],
): Pick<SecureContextOptions, "minVersion" | "ciphers"> {
  const version = versions.get(minVersion);
  return {
    ...(version === undefined ? {} : { minVersion: version }),
    ...(cipherSuites.length > 0 ? { ciphers: ciphersOf(cipherSuites) } : {}),
  };
}

/** Whether there is any PEM text. */
export function isGiven({ text = "", file = "" }: PemSource): boolean {
  return text !== "" || file !== "";
}

/** The PEM text; throws when its file cannot be read. */
export function read({ text = "", file = "" }: PemSource): string {
  return text === "" ? readFileSync(file, "utf8") : text;
}

function ciphersOf(suites: readonly string[]): string {
  const ciphers = suites.map((suite) => cipherOf(suite) ?? suite);
  const newest = ciphers.filter((name) => name.startsWith("TLS_"));
  return [...ciphers, ...(newest.length === 0 ? suitesOfTls13 : [])].join(":");
}

/** The OpenSSL name of a suite; undefined if OpenSSL does not have it. */
function cipherOf(suite: string): string | undefined {
  if (suitesOfTls13.includes(suite)) return suite;
  const parts = /^TLS_(RSA|ECDHE_RSA|ECDHE_ECDSA)_WITH_(\w+)$/.exec(suite);
  if (parts === null) return undefined;
  const [, exchange = "", cipher = ""] = parts;
  const prefix = exchange === "RSA" ? "" : `${exchange.replace("_", "-")}-`;
  const name = prefix + cipherName(cipher);
  return getCiphers().includes(name.toLowerCase()) ? name : undefined;
}

/** `AES_128_CBC_SHA256` -> `AES128-SHA256`, `AES_128_GCM_SHA256` -> `AES128-GCM-SHA256`. */
function cipherName(cipher: string): string {
  if (cipher.startsWith("CHACHA20_POLY1305")) return "CHACHA20-POLY1305";
  return cipher
    .replace(/^AES_/, "AES")
    .replace("3DES_EDE_CBC_SHA", "DES-CBC3-SHA")
    .replace("_CBC_", "_")
    .replaceAll("_", "-");
}

/** Pause between two reads of the files. */
const periodMs = 10_000;

/** The certificates of a listener, whose files may be replaced while it runs. */
export class Certificates {
  readonly #tls: TlsOptions;
  readonly #onRead: ((error: unknown) => void) | undefined;
  /** The context that was read last, or the error of reading it. */
  #last: string;
  #timer: NodeJS.Timeout | undefined;
  /** The options of the listener. */
  readonly options: ReturnType<typeof listenerOptions>;

  /** Reads the files; throws an error that names what cannot be used. `onRead` is called when they have changed, with an error if they cannot be used. */
  constructor(tls: TlsOptions, onRead?: (error: unknown) => void) {
    this.#tls = tls;
    this.#onRead = onRead;
    this.#last = JSON.stringify(readContext(tls));
    this.options = listenerOptions(tls);
  }

  /** Reads the files again from time to time. */
  watch(server: Server): void {
    this.#timer = setInterval(() => this.reload(server), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Takes over changed certificates that can be used; open connections keep theirs. */
  reload(server: Server): void {
    let failure: unknown;
    let found: string;
    try {
      const context = readContext(this.#tls);
      found = JSON.stringify(context);
      if (found !== this.#last) server.setSecureContext(context);
    } catch (error) {
      failure = error;
      found = String(error);
    }
    if (found === this.#last) return;
    this.#last = found;
    this.#onRead?.(failure);
  }
}
