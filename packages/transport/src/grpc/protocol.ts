import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { SkaldError, unavailable } from "@skald/model";

/**
 * What this version speaks. It counts up when a message changes so that an older version would misunderstand it; fields
 * and methods that are added need no new number. See docs/formats/rpc.md.
 */
export const protocolVersion = 1;
/** The oldest that it still understands. */
export const oldestProtocolVersion = 1;

const versionKey = "skald-protocol";
const clusterKey = "skald-cluster";

/** What a client may say in its headers, and a server in its trailers. */
export const maxHeaderBytes = 64 * 1024;

/** What both sides say of themselves at the start of a call. */
export interface Hello {
  readonly version?: number;
  /** Name of the cluster that a client belongs to; empty: it does not say. */
  readonly cluster?: string;
}

/** The headers of a call or an answer. */
export function sayHello({
  version = protocolVersion,
  cluster = "",
}: Hello = {}): OutgoingHttpHeaders {
  return {
    "content-type": "application/grpc",
    [versionKey]: String(version),
    ...(cluster === "" ? {} : { [clusterKey]: cluster }),
  };
}

/** Throws unavailable when the other side speaks a protocol that this one does not understand, or none. */
export function checkVersion(headers: IncomingHttpHeaders, peer: string): void {
  const given = headers[versionKey];
  const version = Number(given);
  if (given !== undefined && version >= oldestProtocolVersion) return;
  const spoken = given === undefined ? "no protocol of ours" : `protocol ${String(given)}`;
  throw unavailable(
    `${peer} speaks ${spoken}, and this process understands ${oldestProtocolVersion} to ${protocolVersion}; upgrade it`,
  );
}

/** Throws unauthenticated when a call was meant for another cluster. `names`: ours; none: calls are not looked at. */
export function checkCluster(headers: IncomingHttpHeaders, names: readonly string[]): void {
  if (names.length === 0) return;
  const { [clusterKey]: given = "" } = headers;
  if (names.includes(String(given))) return;
  throw new SkaldError(
    "unauthenticated",
    `the call is for the cluster "${String(given)}", and this is "${names[0]}"; see cluster_validation`,
  );
}
