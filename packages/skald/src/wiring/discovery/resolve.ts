import { lookup, resolveSrv } from "node:dns/promises";
import { isIP } from "node:net";

/** Where one instance of a service is called. */
export interface Peer {
  /** Host and port. */
  readonly address: string;
  /** The name by which it was found, which its certificate is of; absent for one that was given by its address. */
  readonly host?: string;
}

export interface Resolver {
  lookup(host: string): Promise<readonly string[]>;
  srv(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

const systemResolver: Resolver = {
  lookup: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  srv: (name) => resolveSrv(name),
};

const srvPrefix = /^dnssrv(noa)?\+/;
/** `dns+host:port`, and `dns:///host:port` as gRPC has it. */
const dnsPrefix = /^dns(\+|:\/{0,3})/;

/**
 * The instances behind addresses as they are configured, with commas between them: `host:port` and `dns+host:port` are all
 * addresses of the host, `dnssrv+name` is what the service records of the name say. Throws what the resolver does.
 */
export async function resolvePeers(
  text: string,
  resolver: Resolver = systemResolver,
): Promise<Peer[]> {
  const given = text.split(",").flatMap((one) => one.trim() || []);
  const found = (await Promise.all(given.map((one) => resolveOne(one, resolver)))).flat();
  const byAddress = new Map(found.map((peer) => [peer.address, peer]));
  return [...byAddress.values()].sort((a, b) => (a.address < b.address ? -1 : 1));
}

async function resolveOne(given: string, resolver: Resolver): Promise<Peer[]> {
  if (srvPrefix.test(given)) {
    const records = await resolver.srv(given.replace(srvPrefix, ""));
    const all = records.map(({ name, port }) => resolveHost(name, String(port), resolver));
    return (await Promise.all(all)).flat();
  }
  const { host, port } = splitAddress(given.replace(dnsPrefix, ""));
  return resolveHost(host, port, resolver);
}

async function resolveHost(host: string, port: string, resolver: Resolver): Promise<Peer[]> {
  if (isIP(host) !== 0) return [{ address: joinAddress(host, port) }];
  const addresses = await resolver.lookup(host);
  return addresses.map((address) => ({ address: joinAddress(address, port), host }));
}

function splitAddress(address: string): { host: string; port: string } {
  const at = address.lastIndexOf(":");
  const host = at < 0 ? address : address.slice(0, at);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: at < 0 ? "9095" : address.slice(at + 1) };
}

function joinAddress(host: string, port: string): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
