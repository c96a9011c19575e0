import { createSecureContext } from "node:tls";
import { type ChannelCredentials, credentials } from "@grpc/grpc-js";
import { isGiven, type PemSource, read, tlsParameters } from "@skald/transport/tls";

/** TLS of a client, with the names of the configuration. */
export interface ClientTlsOptions {
  /** The certificate that the client shows; none: it shows nothing. */
  readonly cert?: PemSource;
  readonly key?: PemSource;
  /** Trusted authorities; none: those that Node trusts. */
  readonly ca?: PemSource;
  /** Name expected in the certificate of the server; empty: that of the address. */
  readonly serverName?: string;
  /** Accepts any certificate. */
  readonly skipVerify?: boolean;
  /** As in `TlsOptions`. */
  readonly minVersion?: string;
  readonly cipherSuites?: readonly string[];
}

/** Credentials of a channel; files are read now. Throws an error that names what cannot be used. */
export function credentialsOf(options: ClientTlsOptions): ChannelCredentials {
  const { cert = {}, key = {}, ca = {}, skipVerify = false } = options;
  const context = createSecureContext({
    ...(isGiven(cert) ? { cert: read(cert) } : {}),
    ...(isGiven(key) ? { key: read(key) } : {}),
    ...(isGiven(ca) ? { ca: read(ca) } : {}),
    ...tlsParameters(options.minVersion ?? "", options.cipherSuites ?? []),
  });
  return credentials.createFromSecureContext(context, { rejectUnauthorized: !skipVerify });
}
