import type {
  CallOptions,
  FoundPatterns,
  PatternIngester,
  PatternsRequest,
} from "@skald/contracts";
import { unavailable } from "@skald/model";
import { LineSampler, mergePatterns } from "@skald/patterns";
import { type Ring, type RingInstance, ringKey } from "@skald/ring";
import { connectionOptionsOf, remotePatternIngester } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { type BuiltModule, isCluster, type ModuleContext, type Parts } from "../../module.js";
import { patternIdOf, watchPatternRing } from "../../rings.js";

/** Lines of a tenant and a second that patterns are looked for in; of more, each stands for several. */
const maxPatternLines = 4_000;

type Call = (instance: Pick<RingInstance, "id" | "address">) => PatternIngester;

/** Those who find patterns: the one of this process, or those of the ring. */
export function buildPatternIngesters(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log } = context;
  if (!config.pattern_ingester.enabled) return {};
  const { ownPatterns } = parts;
  if (!isCluster(config) && ownPatterns !== undefined) {
    parts.patterns = ownPatterns;
    parts.sampler = samplerOf(() => ownPatterns, context);
    return {};
  }
  const watched =
    parts.ownPatternRing === undefined ? watchPatternRing({ config, log }) : undefined;
  const ring = (parts.ownPatternRing ?? watched)?.ring as Ring;
  const call = callsOf(parts, context);
  parts.patterns = { patterns: (request, options) => askAll(ring, call, request, options) };
  parts.sampler = samplerOf((tenant, stream) => ownerOf(ring, tenant, stream, call), context);
  const service = new Service({
    name: "pattern-ingesters",
    start: async () => watched?.start(),
    stop: async () => watched?.stop(),
  });
  return { service };
}

/** Calls to members of the ring; that of this process is called without a detour. */
function callsOf(
  { connections, ownPatterns, ownPatternRing }: Parts,
  { config }: ModuleContext,
): Call {
  const { grpc_client_config, remote_timeout } = config.pattern_ingester.client_config;
  const options = connectionOptionsOf("", grpc_client_config);
  const ownId = ownPatternRing === undefined ? undefined : patternIdOf(config);
  // The same object for the same address: lines that go to one place go in one call.
  const known = new Map<string, PatternIngester>();
  return ({ id, address }) => {
    if (ownPatterns !== undefined && id === ownId) return ownPatterns;
    const found = known.get(address);
    if (found !== undefined) return found;
    const remote = remotePatternIngester(connections.to(address, options));
    const within = ({ signal }: CallOptions): CallOptions => ({
      signal: AbortSignal.any([signal, AbortSignal.timeout(remote_timeout)]),
    });
    const called: PatternIngester = {
      learn: (lines, call) => remote.learn(lines, within(call)),
      patterns: (request, call) => remote.patterns(request, within(call)),
    };
    known.set(address, called);
    return called;
  };
}

function samplerOf(
  learnerOf: (tenant: string, stream: string) => PatternIngester,
  { config, log, metrics }: ModuleContext,
): LineSampler {
  const lost = metrics.counter(
    "pattern_failed_batches_total",
    "Batches of lines that nobody took to find patterns in.",
  );
  return new LineSampler({
    learnerOf,
    maxLines: maxPatternLines,
    maxLineBytes: config.pattern_ingester.max_allowed_line_length,
    onError: (error) => {
      lost.inc();
      log.warn("patterns were not looked for in some lines", { error });
    },
  });
}

/** Throws unavailable while there is nobody. */
function ownerOf(ring: Ring, tenant: string, stream: string, call: Call): PatternIngester {
  const owner = ring.view.ownerOf(ringKey(tenant, stream));
  if (owner === undefined) throw unavailable("no pattern ingester is in the ring");
  return call(owner);
}

/** What all of them found; those that are gone have nothing to tell. */
async function askAll(
  ring: Ring,
  call: Call,
  request: PatternsRequest,
  options: CallOptions,
): Promise<FoundPatterns> {
  const members = ring.view.instances.filter(
    ({ state, isHealthy }) => isHealthy && state === "ACTIVE",
  );
  if (members.length === 0) throw unavailable("no pattern ingester is in the ring");
  return mergePatterns(
    await Promise.all(members.map((member) => call(member).patterns(request, options))),
  );
}
