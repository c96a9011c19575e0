import { availableParallelism } from "node:os";
import type {
  ScanPlan,
  ScanTask,
  ScheduledCall,
  Scheduler,
  SegmentScanner,
} from "@skald/contracts";
import { RetriedCalls } from "@skald/frontend";
import { type SegmentRef, systemClock } from "@skald/model";
import { listedSince, QueryLanes } from "@skald/querier";
import { connectionOptionsOf, remoteScheduler } from "@skald/rpc";
import {
  type HostFunction,
  MemoryBudget,
  memoryBytes,
  repeat,
  Service,
  WorkerPool,
} from "@skald/runtime";
import { FairQueue } from "@skald/scheduler";
import { AskedTexts } from "@skald/storage";
import type { Config } from "../../config/root.js";
import type { DamagedSegment } from "../../query/query-worker.js";
import { threadScripts } from "../../thread-scripts.js";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";
import type { PeerBook } from "../peers.js";
import { PeerCalls } from "../peers.js";
import { countCosts, maxQueuedJobs } from "./base.js";
import { forPeer, schedulerBook, unknownPeers } from "./peers.js";

/** Small jobs that one thread has in hand at the same time. */
const maxSmallQueries = 64;
/** A second large query does not wait for the first; more than there are cores only hold more memory at a time. */
const minThreads = 2;
/** Heap of a query thread; a query that needs more ends with its thread. */
const maxQueryHeapMib = 512;
/** Of a longer list no text is asked for by itself. */
const maxNotedAlternatives = 4;
/** Pause between writes of what was asked. */
const notePauseMs = 10 * 60_000;
/** A part of the memory that queries may hold together when nobody says. */
const shareOfQueries = 8;
const maxQueryMemory = 384 * 1024 * 1024;

/** The threads that answer queries. */
export function buildQuerier(parts: Parts, { config, log, metrics }: ModuleContext): BuiltModule {
  const { ingester, scanner, pool, deletes } = parts;
  const { sinceLeftMs } = parts;
  const catalog =
    sinceLeftMs === undefined ? parts.catalog : listedSince(parts.catalog, sinceLeftMs);
  const { max_concurrent, max_query_memory } = config.querier;
  const lost = metrics.counter("query_threads_lost_total", "Query threads that died.");
  const memory = new MemoryBudget(
    max_query_memory || Math.min(maxQueryMemory, memoryBytes() / shareOfQueries),
  );
  const held = "Memory that queries hold, by their own count.";
  metrics.gaugeOf("query_memory_bytes", held, () => memory.bytes);
  metrics.gaugesOf("tenant_query_memory_bytes", held, ["tenant"], () => memory.holdings());
  const threads = new WorkerPool({
    url: threadScripts.queries,
    size: Math.min(max_concurrent, Math.max(minThreads, availableParallelism())),
    urgentJobs: maxSmallQueries,
    lazy: true,
    maxQueued: maxQueuedJobs,
    maxHeapMib: maxQueryHeapMib,
    queues: fairQueues(config, memory),
    onUsed: countCosts(metrics),
    onThreadLost: (error) => {
      lost.inc();
      log.error("a query thread died; another takes its place", { error });
    },
  });
  const help = "Segments that queries found damaged and left out.";
  const corrupt = metrics.counter("querier_corrupt_segments_total", help);
  const schedulers = schedulersOf(parts, { config, log, metrics });
  const asked = new AskedTexts({ store: parts.store, clock: systemClock });
  const onError = (error: unknown) => log.warn("what was asked for cannot be stored", { error });
  const service = new Service({
    name: "querier",
    run: (signal) =>
      schedulers?.book.run(signal) ??
      repeat(() => asked.flush({ signal }), { pauseMs: notePauseMs, signal, onError }),
    stop: () => threads.close(),
  });
  const { hidesRows, deletesOf } = parts;
  const lanes = { pool: threads, memory, threads: pool.size, hidesRows, deletesOf };
  if (schedulers !== undefined) {
    parts.lanes = new QueryLanes({ ...lanes, host: { schedule: schedulers.schedule } });
    const unready = () => unknownPeers(schedulers.book, "query scheduler");
    return { service, unready, warm: () => threads.warm() };
  }
  const onCorrupt = (found: DamagedSegment) => {
    corrupt.inc();
    log.error("a segment is damaged; queries leave it out", { ...found });
    return { value: undefined };
  };
  const noting = notingTexts(scanner as SegmentScanner, asked);
  const services = { ingester, catalog, scanner: noting, deletes };
  parts.lanes = new QueryLanes({
    ...{ ...lanes, services, host: { corrupt: onCorrupt } },
    onCorrupt: (segment, error) => onCorrupt({ segment, reason: (error as Error).message }),
  });
  return { service, warm: () => threads.warm() };
}

/** Notes the texts of the line filters that scans of the store ask for. */
export function notingTexts(scanner: SegmentScanner, asked: AskedTexts): SegmentScanner {
  return {
    run(kind, task, options) {
      if (kind === "scan") noteTexts(task as ScanTask<ScanPlan, SegmentRef>, asked);
      return scanner.run(kind, task, options);
    },
  };
}

function noteTexts({ plan, sources }: ScanTask<ScanPlan, SegmentRef>, asked: AskedTexts): void {
  const tenant = sources[0]?.ref.tenant;
  if (tenant === undefined) return;
  const stages = "log" in plan ? plan.log.stages : plan.stages;
  const parser = stages.findIndex(({ kind }) => kind === "json" || kind === "logfmt");
  if (parser >= 0) {
    const filtered = stages
      .slice(parser)
      .flatMap((stage) => (stage.kind === "label_filter" ? labelsOf(stage.filter) : []));
    const leaf =
      "log" in plan ? [] : [plan.unwrap?.label ?? [], plan.grouping?.labels ?? []].flat();
    for (const name of new Set([...filtered, ...leaf])) asked.noteField(tenant, name);
  }
  for (const stage of stages) {
    if (stage.kind !== "line_filter") return;
    if (stage.op !== "|=" && stage.op !== "!=") continue;
    for (const { kind, value } of stage.alternatives.slice(0, maxNotedAlternatives))
      if (kind === "text") asked.note(tenant, value);
  }
}

type LabelFilter = Extract<LogPlanStage, { kind: "label_filter" }>["filter"];
type LogPlanStage = Extract<ScanPlan, { log: unknown }>["log"]["stages"][number];

function labelsOf(filter: LabelFilter): readonly string[] {
  if (filter.kind === "and" || filter.kind === "or")
    return [...labelsOf(filter.left), ...labelsOf(filter.right)];
  return [filter.kind === "string" ? filter.matcher.name : filter.name];
}

/** Has calls answered by queriers of other processes, in one that is a frontend and no querier; else undefined. */
function schedulersOf(
  parts: Parts,
  { config, log, metrics }: Pick<ModuleContext, "config" | "log" | "metrics">,
): { readonly book: PeerBook; readonly schedule: HostFunction } | undefined {
  const { scheduler_address, scheduler_dns_lookup_period, grpc_client_config } = config.frontend;
  const options = connectionOptionsOf("", grpc_client_config);
  const named = { text: scheduler_address, periodMs: scheduler_dns_lookup_period };
  const { target, query_range } = config;
  const retried = new RetriedCalls({ maxRetries: query_range.max_retries, metrics });
  // Of others only those that are told where schedulers are have their rules evaluated elsewhere.
  const isAsking = scheduler_address !== "" || target.includes("query-frontend");
  const isOnlyFrontend = !target.some((name) => queriers.includes(name));
  const book =
    isOnlyFrontend && isAsking ? schedulerBook(parts, { config, log }, named) : undefined;
  if (book === undefined) return undefined;
  const schedulers = new PeerCalls<Scheduler>({
    ...{ book, name: "query scheduler" },
    connect: (peer) => remoteScheduler(parts.connections.to(peer.address, forPeer(options, peer))),
  });
  const schedule: HostFunction = async (asked: ScheduledCall, { signal }) => {
    const run = (call: ScheduledCall) =>
      schedulers.call((scheduler) => scheduler.run(call, { signal }), { signal });
    return { value: await retried.run(asked, run, signal) };
  };
  return { book, schedule };
}

/** Targets that answer queries themselves. */
const queriers = ["all", "read", "querier"];

function fairQueues({ query_scheduler }: Config, memory: MemoryBudget) {
  const maxLevels = query_scheduler.max_queue_hierarchy_levels;
  const maxOutstandingPerTenant = query_scheduler.max_outstanding_requests_per_tenant;
  return {
    urgent: new FairQueue({ maxLevels, maxOutstandingPerTenant }),
    // Where memory is scarce a query has it already: the next begins when that ends.
    query: new FairQueue({ maxLevels, maxOutstandingPerTenant, isHeld: () => memory.isScarce }),
  };
}
