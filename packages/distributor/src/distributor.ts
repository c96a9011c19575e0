import type {
  Distributor as Contract,
  PushOutcome,
  PushRefusal,
  PushRequest,
} from "@skald/contracts";
import type { RawPush, TakeBytes } from "@skald/kernels";
import { formatRfc3339, invalidArgument, SkaldError } from "@skald/model";
import {
  assembleBatchSteps,
  ByteCache,
  decodeBody,
  type PushBody,
  parsePushHeaders,
  rawOfBatch,
  resolveMetadataNames,
  runInTurns,
} from "@skald/push";
import { discoverLevels } from "./levels/discover-levels.js";
import { otlpMappingOf } from "./otlp-mapping.js";
import {
  failedResponse,
  type PushResponse,
  pushResponse,
  rateLimited,
  refusalsOf,
  type StoredPush,
} from "./push-response.js";
import type { PushLimits } from "./settings/limits.js";
import type { DistributorOptions, IncomingPush } from "./settings/options.js";
import type { TenantState } from "./tenant/tenant-state.js";
import { TenantStates } from "./tenant/tenant-state.js";
import {
  ArrivalTimes,
  incrementDuplicateTimestamps,
  truncateLines,
} from "./validate/alter-rows.js";
import { withoutDropped } from "./validate/dropped-rows.js";
import type { DiscardReason } from "./validate/reasons.js";
import { resolveStreams } from "./validate/resolve-streams.js";
import { rowRulesOf } from "./validate/row-rules.js";
import type { PushStream } from "./validate/stream-rules.js";
import { type Validated, validate } from "./validate/validate.js";

/** Bodies above these sizes are decoded in a worker: about 5 ms of this thread. */
const inlineBytes = {
  identity: 2 * 1024 * 1024,
  gzip: 256 * 1024,
  deflate: 256 * 1024,
  zstd: 256 * 1024,
  lz4: 256 * 1024,
} as const;
/** The same for OTLP, which takes longer to read. */
const otlpShare = 4;
/** Rows that were decoded are stored, also when whoever sent them is gone. */
const neverStopped = new AbortController().signal;
/** What a small body may become on this thread: about 20 ms of it. */
const maxInlineDecodedBytes = 16 * 1024 * 1024;
const maxBackfillShardBytes = 128;
const streamCacheBounds = { maxEntries: 128 * 1024, maxKeyBytes: 32 * 1024 * 1024 };

/** Takes pushes: decodes them, holds them against the limits of their tenant, and hands what is left to the ingesters. */
export class Distributor implements Contract {
  readonly #options: DistributorOptions;
  readonly #tenants: TenantStates;
  readonly #arrivals = new ArrivalTimes();
  readonly #streams = new ByteCache<PushStream>(streamCacheBounds);

  constructor(options: DistributorOptions) {
    this.#options = options;
    this.#tenants = new TenantStates(options.limitsOf, options.distributorCount ?? (() => 1));
  }

  /**
   * Serves one push. Everything that a client can do wrong, and every SkaldError of an ingester, becomes an answer;
   * rejects only on faults of the program.
   */
  async push(tenant: string, request: IncomingPush): Promise<PushResponse> {
    try {
      const body = {
        ...parsePushHeaders(request),
        body: request.body,
        ...this.#reading(tenant, request),
      };
      checkBackfillShard(request.backfillShard);
      const push = await this.#decode(tenant, body, request.take);
      const { backfillShard, hold } = request;
      const stored = await this.#store({ tenant, body, push, backfillShard, hold });
      return pushResponse(stored);
    } catch (error) {
      if (error instanceof SkaldError && error.status === 500) {
        this.#options.onFailure?.(error, tenant);
      }
      return failedResponse(error);
    }
  }

  /** Streams of the batch must hold all of its rows in order. */
  async pushBatch({ tenant, batch }: PushRequest): Promise<PushOutcome> {
    const push = rawOfBatch(batch);
    const { validated, refusals } = await this.#store({ tenant, push, backfillShard: undefined });
    return { refusals: [...refusalsOf(validated), ...refusals] };
  }

  /** What an OTLP body is read with; nothing for other ones. */
  #reading(tenant: string, { style }: IncomingPush): Pick<PushBody, "otlp"> {
    if (style !== "otlp") return {};
    const { limitsOf, otlpIndexLabels = [] } = this.#options;
    return { otlp: { mapping: otlpMappingOf(limitsOf(tenant), otlpIndexLabels) } };
  }

  async #decode(tenant: string, body: PushBody, take?: TakeBytes): Promise<RawPush> {
    const { decodeInWorker, maxDecompressedBytes, metrics } = this.#options;
    try {
      if (decodeInWorker === undefined) return decodeBody(body, maxDecompressedBytes, take);
      const share = body.otlp === undefined ? 1 : otlpShare;
      const isSmall = body.body.length <= inlineBytes[body.encoding] / share;
      const push = isSmall ? decodeInline(body, maxDecompressedBytes, take) : undefined;
      return push ?? (await decodeInWorker(body, maxDecompressedBytes));
    } catch (error) {
      if (error instanceof SkaldError && error.code === "too_large") {
        const reason: DiscardReason = "request_body_too_large";
        metrics.discarded(tenant, reason, { bytes: body.body.length });
      }
      throw error;
    }
  }

  async #store(input: StoreInput): Promise<StoredPush> {
    const { tenant, push } = input;
    if (push.streamCount === 0) {
      throw new SkaldError(
        "unprocessable",
        "error at least one valid stream is required for ingestion",
      );
    }
    const nowMs = this.#options.clock.nowMs();
    const state = this.#tenants.get(tenant, nowMs);
    const stamped = input.body?.otlp !== undefined && this.#arrivals.stamp(push, nowMs);
    const truncated = this.#truncate(tenant, push, state.limits);
    const rules = state.rulesFor(input.backfillShard);
    const streams = await runInTurns(
      resolveStreams(push, input.body?.format ?? "protobuf", rules, this.#streams),
    );
    const blockedText = blockedTextOf(tenant, state.limits, nowMs);
    const validated = await runInTurns(
      validate({
        push,
        streams,
        rules: rowRulesOf(state.limits, nowMs, input.backfillShard !== undefined),
        ...(blockedText === undefined ? {} : { blockedText }),
      }),
    );
    this.#count(tenant, validated);
    this.#limitRate(tenant, state, push, validated);
    const { limits } = state;
    if (validated.streams.length === 0) return { validated, refusals: [], limits };
    const moved = this.#increment(push, validated, limits);
    const isChanged = stamped || truncated || moved;
    const refusals = await this.#append({ ...input, streams, validated, isChanged, state });
    return { validated, refusals, limits };
  }

  /** Cuts lines that are too long, where the tenant asked for it. */
  #truncate(tenant: string, push: RawPush, limits: PushLimits): boolean {
    const { max_line_size: maxBytes, max_line_size_truncate_identifier: identifier } = limits;
    if (!limits.max_line_size_truncate || maxBytes === 0) return false;
    const cut = truncateLines(push, maxBytes, identifier);
    if (cut.rows === 0) return false;
    const labels = { reason: "line_too_long" satisfies DiscardReason, tenant };
    this.#options.metrics.mutatedSamples.inc(labels, cut.rows);
    this.#options.metrics.mutatedBytes.inc(labels, cut.bytes);
    return true;
  }

  #increment(push: RawPush, validated: Validated, limits: PushLimits): boolean {
    if (!limits.increment_duplicate_timestamp) return false;
    return incrementDuplicateTimestamps(push, validated.streams, validated.dropped) > 0;
  }

  /** Throws rate_limited when the tenant may not send what is left of a push now. */
  #limitRate(tenant: string, state: TenantState, push: RawPush, validated: Validated): void {
    const { bucket } = state;
    const bytes = validated.acceptedBytes;
    const lines = push.rowCount - validated.dropped.length;
    if (lines === 0 || bucket.take(bytes, this.#options.clock.nowMs())) return;
    this.#options.metrics.discarded(tenant, "rate_limited", { entries: lines, bytes });
    const secondsUntil = bucket.secondsUntil(bytes);
    throw rateLimited({ tenant, ratePerSecond: bucket.ratePerSecond, lines, bytes, secondsUntil });
  }

  /** Finds levels, puts the batch together and hands it over; returns what ingesters refused of it. */
  async #append(input: AppendInput): Promise<readonly PushRefusal[]> {
    const { tenant, push, validated, streams, state } = input;
    const names = await runInTurns(resolveMetadataNames(push));
    const { levels, foreign } = await runInTurns(
      discoverLevels({ push, streams, names, limits: state.limits }),
    );
    const isForeign = !foreign.isEmpty;
    const assembly = assembleBatchSteps(isForeign ? foreign.applied() : push, {
      streams: validated.streams,
      dropped: validated.dropped,
      levels: withoutDropped(levels, validated.dropped),
      ...(isForeign ? {} : { names }),
      ...(isForeign || input.isChanged || input.body === undefined ? {} : { source: input.body }),
    });
    const batch = await runInTurns(assembly);
    const { metrics, ingester, ingesterName, onStored } = this.#options;
    const labels = ingesterName === undefined ? undefined : { ingester: ingesterName };
    if (labels !== undefined) metrics.ingesterAppends.inc(labels);
    try {
      const options = { signal: neverStopped, hold: input.hold };
      const { refusals } = await ingester.push({ tenant, batch }, options);
      for (const refusal of refusals) metrics.discarded(tenant, refusal.reason, refusal);
      onStored?.({ tenant, batch });
      return refusals;
    } catch (error) {
      if (labels !== undefined) metrics.ingesterAppendFailures.inc(labels);
      throw error;
    }
  }

  #count(tenant: string, { received, receivedInternal, refusals, blocked }: Validated): void {
    const { metrics } = this.#options;
    if (received.rows > 0) metrics.received(tenant, received, false);
    if (receivedInternal.rows > 0) metrics.received(tenant, receivedInternal, true);
    for (const kind of [...refusals.kinds, ...blocked.kinds])
      metrics.discarded(tenant, kind.reason, kind);
  }
}

interface StoreInput {
  readonly tenant: string;
  /** As it came; absent for rows that did not come as a body. */
  readonly body?: PushBody;
  readonly push: RawPush;
  readonly backfillShard: string | undefined;
  readonly hold?: IncomingPush["hold"];
}

interface AppendInput extends StoreInput {
  readonly streams: readonly PushStream[];
  readonly validated: Validated;
  readonly state: TenantState;
  /** Whether rows are no longer as the body says. */
  readonly isChanged: boolean;
}

/** Decodes on this thread; undefined when that becomes more than it has time for. */
function decodeInline(body: PushBody, maxBytes: number, take?: TakeBytes): RawPush | undefined {
  const share = body.otlp === undefined ? 1 : otlpShare;
  try {
    return decodeBody(body, Math.min(maxBytes, maxInlineDecodedBytes / share), take);
  } catch (error) {
    const isLarge = error instanceof SkaldError && error.code === "too_large";
    if (isLarge && maxBytes > maxInlineDecodedBytes / share) return undefined;
    throw error;
  }
}

function checkBackfillShard(shard: string | undefined): void {
  if (shard === undefined) return;
  const length = Buffer.byteLength(shard);
  if (length > 0 && length <= maxBackfillShardBytes) return;
  throw invalidArgument(
    `X-Loki-Backfill-Shard must have 1 to ${maxBackfillShardBytes} bytes, not ${length}`,
  );
}

function blockedTextOf(tenant: string, limits: PushLimits, nowMs: number): string | undefined {
  const { block_ingestion_until: untilMs, block_ingestion_status_code: status } = limits;
  if (untilMs <= nowMs) return undefined;
  const until = formatRfc3339(BigInt(untilMs) * 1_000_000n);
  return `ingestion blocked for user '${tenant}' until '${until}' with status code '${status}'`;
}
