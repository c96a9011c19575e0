import { type ConnectionOptions, createSecureContext } from "node:tls";
import { isGiven, type PemSource, read, tlsParameters } from "../http/tls.js";

/** TLS of a client, in the words of the configuration. */
export interface ClientTlsOptions {
  /** What the client shows of itself; none: it shows nothing. */
  readonly cert?: PemSource;
  readonly key?: PemSource;
  /** Authorities that are trusted; none: those that Node trusts. */
  readonly ca?: PemSource;
  /** Name expected in the certificate of the server; empty: that of the address. */
  readonly serverName?: string;
  /** Accepts any certificate. */
  readonly skipVerify?: boolean;
  /** As in `TlsOptions`. */
  readonly minVersion?: string;
  readonly cipherSuites?: readonly string[];
}

/** What is wrong with the options; none: they can be honoured. */
export function checkClientTls({ cert = {}, key = {} }: ClientTlsOptions): string[] {
  return isGiven(cert) === isGiven(key) ? [] : ["certificate and key belong together"];
}

/** What a connection is made with; files are read now. Throws an error that names what cannot be used. */
export function clientTls(options: ClientTlsOptions): ConnectionOptions {
  const { cert = {}, key = {}, ca = {}, serverName = "", skipVerify = false } = options;
  const secureContext = createSecureContext({
    ...(isGiven(cert) ? { cert: read(cert) } : {}),
    ...(isGiven(key) ? { key: read(key) } : {}),
    ...(isGiven(ca) ? { ca: read(ca) } : {}),
    ...tlsParameters(options.minVersion ?? "", options.cipherSuites ?? []),
  });
  return {
    secureContext,
    ...(serverName === "" ? {} : { servername: serverName }),
    ...(skipVerify ? { rejectUnauthorized: false } : {}),
  };
}
