import type {
  CallOptions,
  Distributor as Contract,
  PushOutcome,
  PushRefusal,
  PushRequest,
} from "@skald/contracts";
import type { RawPush, TakeBytes } from "@skald/kernels";
import { type Clock, formatRfc3339, type OtlpMapping, SkaldError } from "@skald/model";
import {
  assembleBatchSteps,
  type BodyEncoding,
  type BulkPush,
  ByteCache,
  type DoorBody,
  type DoorFormat,
  type DoorPush,
  decodeBody,
  decodeDoor,
  type FieldMapping,
  type PieceOfBody,
  type PushBody,
  type PushStyle,
  parseDoorEncoding,
  parsePushHeaders,
  rawOfBatch,
  resolveMetadataNames,
  runInTurns,
  withoutRows,
} from "@skald/push";
import { markWork } from "@skald/runtime";
import {
  ArrivalTimes,
  incrementDuplicateTimestamps,
  truncateLines,
  withoutMetadata,
} from "./alter-rows.js";
import type { PushLimits } from "./config.js";
import { discoverLevels } from "./levels.js";
import type { DistributorMetrics } from "./metrics.js";
import {
  type DiscardReason,
  failedResponse,
  type PushResponse,
  pushResponse,
  rateLimited,
  recordsResponse,
  refusalsOf,
  type StoredPush,
} from "./push-response.js";
import { checkBackfillShard, type PushStream, resolveStreams } from "./stream-rules.js";
import { type TenantState, TenantStates } from "./tenant-state.js";
import { rowRulesOf, type Validated, validate } from "./validate.js";

export interface DistributorOptions {
  readonly ingester: PushTarget;
  readonly limitsOf: (tenant: string) => PushLimits;
  readonly metrics: DistributorMetrics;
  readonly clock: Clock;
  /** OTLP resource attributes that become labels unless a tenant's rules say otherwise; none by default. */
  readonly otlpIndexLabels?: readonly string[];
  /** Largest size of a body in memory; above it 413. */
  readonly maxDecompressedBytes: number;
  /** Number of distributors that share a global rate; default 1. */
  readonly distributorCount?: () => number;
  /** Decodes bodies that would block this thread for long. Must reject as `decodeBody` throws. */
  readonly decodeInWorker?: (tenant: string, input: PushBody, maxBytes: number) => Promise<RawPush>;
  /** The same for bodies of records; must reject as `decodeDoor` throws. The memory of one that `movesBody` may be moved. */
  readonly decodeRecordsInWorker?: (
    tenant: string,
    input: DoorBody,
    maxBytes: number,
    movesBody: boolean,
  ) => Promise<DoorPush | BulkPush>;
  /** Is called for failures that are not the client's fault (500). */
  readonly onFailure?: (error: SkaldError, tenant: string) => void;
  /** Is called with rows that were stored; must copy what it keeps of them. */
  readonly onStored?: (request: PushRequest) => void;
  /** Value of the `ingester` label of the append counters; absent when the target counts for itself. */
  readonly ingesterName?: string;
}

/** Stores checked rows: the ingester of this process, or the ingesters of a ring behind one interface. */
export interface PushTarget {
  push(request: PushRequest, options: PushTargetOptions): Promise<PushOutcome>;
}

export interface PushTargetOptions extends CallOptions {
  /** Must be called with a promise that settles when nobody reads the batch any more, if that may be after the answer. */
  readonly hold?: ((until: Promise<unknown>) => void) | undefined;
}

/** A push as it came over HTTP. */
export interface IncomingPush extends IncomingBody {
  readonly contentType: string | undefined;
  readonly style: PushStyle;
  /** Header `X-Loki-Backfill-Shard`: the rows may be old and get a stream of their own. */
  readonly backfillShard?: string;
}

/** Records of an agent that speaks neither Loki's push nor OTLP. */
export interface IncomingRecords extends IncomingBody {
  readonly format: DoorFormat;
  readonly mapping: FieldMapping;
  /** Given for a piece of a body. */
  readonly piece?: PieceOfBody;
  /** Whether nobody else reads the memory of the body, so that it can be moved to another thread. */
  readonly ownsBody?: boolean;
}

interface IncomingBody {
  readonly contentEncoding: string | undefined;
  readonly body: Uint8Array;
  /** Memory to decode into. Nobody reads it any more once the push succeeded and the promises given to `hold` settled. */
  readonly take?: TakeBytes;
  readonly hold?: (until: Promise<unknown>) => void;
  /** Is called with the memory that the decoded push takes. */
  readonly inflated?: (bytes: number) => void;
  /** Whether the client has left: then nothing is stored, if it was not yet handed on. */
  readonly isGone?: () => boolean;
}

/** Larger bodies are decoded on another thread; decoding these takes about 5 ms of this one. */
const inlineBytes = {
  identity: 2 * 1024 * 1024,
  gzip: 256 * 1024,
  deflate: 256 * 1024,
  zstd: 256 * 1024,
  lz4: 256 * 1024,
  zlib: 256 * 1024,
} as const satisfies Record<BodyEncoding, number>;
/** Small bodies may grow to this size on this thread; that takes about 5 ms. */
const maxInlineDecodedBytes = 4 * 1024 * 1024;
/** Once bodies have taken this long between two turns of the event loop, only tiny ones are still decoded on this thread. */
const maxDecodingMs = 8;
const tinyBytes = 16 * 1024;
/** What a tiny body may grow to then: 16 KB of gzip can be 16 MB. */
const maxTinyDecodedBytes = 128 * 1024;
/** How many times longer than protobuf a format takes to decode. */
const otlpCost = 4;
const recordsCost = 16;
const jsonCost = 2;
/** Bytes of the columns of a decoded push. */
const bytesPerStream = 12;
const bytesPerRow = 24;
const bytesPerPair = 16;
/** The name of the work of this class for the recorder of stretches. */
const workName = "push";
const streamCacheBounds = { maxEntries: 128 * 1024, maxKeyBytes: 32 * 1024 * 1024 };
/** A push with more names of metadata is stored in parts. The log gets these as columns, because it keeps a body as a whole. */
const maxBodyNames = 4096;
/** Decoded rows are stored even when the client has gone. */
const neverStopped = new AbortController().signal;

/** Decodes pushes, checks them against the limits of their tenant, and sends the accepted rows to the ingesters. */
export class Distributor implements Contract {
  readonly #options: DistributorOptions;
  readonly #tenants: TenantStates;
  readonly #arrivals = new ArrivalTimes();
  readonly #streams = new ByteCache<PushStream>(streamCacheBounds);
  readonly #otlpMappings = new WeakMap<PushLimits["otlp_config"], OtlpMapping>();

  constructor(options: DistributorOptions) {
    this.#options = options;
    const { ingesterName: ingester, metrics } = options;
    if (ingester !== undefined) {
      // A rate needs the series before its first failure.
      metrics.ingesterAppendFailures.inc({ ingester }, 0);
      metrics.ingesterAppendTimeouts.inc({ ingester }, 0);
    }
    this.#tenants = new TenantStates(options.limitsOf, options.distributorCount ?? (() => 1));
  }

  /** Serves one push. Client errors and every SkaldError of an ingester become an answer; rejects only on program faults. */
  async push(tenant: string, request: IncomingPush): Promise<PushResponse> {
    const { limitsOf, onFailure } = this.#options;
    const { backfillShard, hold, isGone } = request;
    try {
      const headers = parsePushHeaders(request);
      const body: PushBody =
        request.style === "otlp"
          ? {
              ...headers,
              body: request.body,
              otlp: { mapping: this.#otlpMapping(limitsOf(tenant)) },
            }
          : { ...headers, body: request.body };
      checkBackfillShard(backfillShard);
      const push = await this.#decodePush(tenant, body, request.take);
      request.inflated?.(bytesOf(push));
      const isStamped = body.otlp !== undefined;
      return pushResponse(
        await this.#store({ tenant, body, push, isStamped, backfillShard, hold, isGone }),
      );
    } catch (error) {
      if (error instanceof SkaldError && error.status === 500) onFailure?.(error, tenant);
      return failedResponse(error);
    }
  }

  /** Serves a body of records in the same way; the answer says what became of each. */
  async pushRecords(tenant: string, request: IncomingRecords): Promise<PushResponse> {
    const { format, mapping, piece, take, hold, isGone, ownsBody = false } = request;
    try {
      const encoding = parseDoorEncoding(request.contentEncoding);
      const { body } = request;
      const input = { format, encoding, body, mapping, ...(piece === undefined ? {} : { piece }) };
      const records = await this.#decodeRecords(tenant, input, ownsBody, take);
      const { push } = records;
      request.inflated?.(bytesOf(push));
      const { length: entries } = records.refused;
      if (entries > 0) {
        const reason: DiscardReason = "unreadable_record";
        this.#options.metrics.discarded(tenant, reason, { entries, bytes: 0 });
      }
      if (push.rowCount === 0) return recordsResponse(records);
      return recordsResponse(
        records,
        await this.#store({
          ...{ tenant, push, hold, isGone },
          isStamped: true,
          namesDropped: true,
          // Its sender reads no answer.
          keepsLines: format === "journal",
        }),
      );
    } catch (error) {
      if (error instanceof SkaldError && error.status === 500) {
        this.#options.onFailure?.(error, tenant);
      }
      return failedResponse(error);
    }
  }

  /** Stores rows that never were a body. The streams of the batch must hold all its rows in order. */
  pushBatch({ tenant, batch }: PushRequest): Promise<PushOutcome> {
    return this.pushRows(tenant, rawOfBatch(batch));
  }

  /** The same for rows as columns, which may be pushed again; metadata that the tenant may not have is left out. */
  async pushRows(tenant: string, push: RawPush): Promise<PushOutcome> {
    const { validated, refusals } = await this.#store({ tenant, push, keepsLines: true });
    return { refusals: [...refusalsOf(validated), ...refusals] };
  }

  #decodePush(tenant: string, body: PushBody, take?: TakeBytes): Promise<RawPush> {
    const { decodeInWorker } = this.#options;
    const cost = costOf(body);
    return this.#decode(tenant, {
      ...body,
      cost,
      growthCost: body.otlp === undefined ? 1 : otlpCost,
      here: (maxBytes) => decodeBody(body, maxBytes, take),
      there: decodeInWorker && ((maxBytes) => decodeInWorker(tenant, body, maxBytes)),
    });
  }

  #decodeRecords(
    tenant: string,
    input: DoorBody,
    ownsBody: boolean,
    take?: TakeBytes,
  ): Promise<DoorPush | BulkPush> {
    const { decodeRecordsInWorker } = this.#options;
    return this.#decode<DoorPush | BulkPush>(tenant, {
      ...input,
      cost: recordsCost,
      growthCost: recordsCost,
      here: (maxBytes) => decodeDoor(input, maxBytes, take),
      there:
        decodeRecordsInWorker &&
        ((maxBytes) => decodeRecordsInWorker(tenant, input, maxBytes, ownsBody)),
    });
  }

  async #decode<T>(tenant: string, work: Decoding<T>): Promise<T> {
    const { maxDecompressedBytes: maxBytes, metrics } = this.#options;
    const { body, here, there } = work;
    // A body that moved has no length any more.
    const { length: bytes } = body;
    try {
      if (there === undefined) return here(maxBytes);
      const decoded = decodingTime.spend(work, maxBytes);
      return decoded ?? (await there(maxBytes));
    } catch (error) {
      if (error instanceof SkaldError && error.code === "too_large") {
        const reason: DiscardReason = "request_body_too_large";
        metrics.discarded(tenant, reason, { bytes });
      }
      throw error;
    }
  }

  /**
   * The rules for a tenant's OTLP attributes: the index labels of this process first, then the rules of the tenant. Returns the
   * same object for the same limits, because the compiled form is cached by object.
   */
  #otlpMapping({ otlp_config }: PushLimits): OtlpMapping {
    let mapping = this.#otlpMappings.get(otlp_config);
    if (mapping === undefined) {
      const { otlpIndexLabels = [] } = this.#options;
      const { ignore_defaults, attributes_config } = otlp_config.resource_attributes;
      const defaults = [{ action: "index_label", attributes: otlpIndexLabels, regex: "" } as const];
      mapping = {
        resource: [...(ignore_defaults ? [] : defaults), ...attributes_config],
        scope: otlp_config.scope_attributes,
        log: otlp_config.log_attributes,
        severityTextAsLabel: otlp_config.severity_text_as_label,
      };
      this.#otlpMappings.set(otlp_config, mapping);
    }
    return mapping;
  }

  async #store(input: StoreInput): Promise<StoredPush> {
    const { tenant, backfillShard } = input;
    if (input.push.streamCount === 0) {
      throw new SkaldError(
        "unprocessable",
        "error at least one valid stream is required for ingestion",
      );
    }
    const nowMs = this.#options.clock.nowMs();
    const state = this.#tenants.get(tenant, nowMs);
    const { limits } = state;
    const push = this.#withoutMetadata(input, limits);
    const turns = { queue: tenant, isGone: input.isGone };
    const stamped = input.isStamped === true && this.#arrivals.stamp(push, nowMs);
    const truncated = this.#truncate(tenant, push, limits);
    const format = input.body?.format ?? "protobuf";
    const streams = await runInTurns(
      resolveStreams(push, format, state.rulesFor(backfillShard), this.#streams),
      turns,
    );
    markWork(workName, tenant);
    const rules = rowRulesOf(limits, nowMs, backfillShard !== undefined);
    const blockedText = blockedTextOf(tenant, limits, nowMs);
    const { namesDropped } = input;
    const validated = await runInTurns(
      validate({ push, streams, rules, blockedText, namesDropped }),
      { ...turns, goesOn: true },
    );
    markWork(workName, tenant);
    this.#count(tenant, validated);
    this.#limitRate(tenant, state, push, validated);
    if (validated.streams.length === 0) return { validated, refusals: [], limits };
    const moved =
      limits.increment_duplicate_timestamp &&
      incrementDuplicateTimestamps(push, validated.streams, validated.dropped) > 0;
    const isChanged = stamped || truncated || moved;
    const refusals = await this.#append({ ...input, push, streams, validated, isChanged, limits });
    return { validated, refusals, limits };
  }

  /** The rows of a sender that cannot be told, without the metadata for which they would be refused. */
  #withoutMetadata({ tenant, push, keepsLines }: StoreInput, limits: PushLimits): RawPush {
    if (!keepsLines || limits.allow_structured_metadata || push.pairCount === 0) return push;
    const reason: DiscardReason = "disallowed_structured_metadata";
    const bare = withoutMetadata(push);
    this.#options.metrics.mutated(tenant, reason, bare);
    return bare.push;
  }

  /** Cuts lines that are too long when the tenant wants that. */
  #truncate(tenant: string, push: RawPush, limits: PushLimits): boolean {
    const { max_line_size: maxBytes, max_line_size_truncate_identifier: identifier } = limits;
    if (!limits.max_line_size_truncate || maxBytes === 0) return false;
    const cut = truncateLines(push, maxBytes, identifier);
    const reason: DiscardReason = "line_too_long";
    if (cut.rows > 0) this.#options.metrics.mutated(tenant, reason, cut);
    return cut.rows > 0;
  }

  #count(tenant: string, { received, receivedInternal, refusals, blocked }: Validated): void {
    const { metrics } = this.#options;
    if (received.rows > 0) metrics.received(tenant, received, false);
    if (receivedInternal.rows > 0) metrics.received(tenant, receivedInternal, true);
    for (const kind of [...refusals.kinds, ...blocked.kinds])
      metrics.discarded(tenant, kind.reason, kind);
  }

  /** Throws rate_limited when the tenant may not send the accepted rows now. */
  #limitRate(tenant: string, { bucket }: TenantState, push: RawPush, validated: Validated): void {
    const { clock, metrics } = this.#options;
    const bytes = validated.acceptedBytes;
    const lines = push.rowCount - validated.dropped.length;
    if (lines === 0 || bucket.take(bytes, clock.nowMs())) return;
    metrics.discarded(tenant, "rate_limited", { entries: lines, bytes });
    const secondsUntil = bucket.secondsUntil(bytes);
    throw rateLimited({ tenant, ratePerSecond: bucket.ratePerSecond, lines, bytes, secondsUntil });
  }

  /** Finds levels, assembles the batch and sends it; returns the refusals of the ingesters. */
  async #append(input: AppendInput): Promise<readonly PushRefusal[]> {
    const { tenant, body, push, validated, streams, limits } = input;
    const turns = { queue: tenant, isGone: input.isGone, goesOn: true };
    const names = await runInTurns(resolveMetadataNames(push), turns);
    const isWide = names.names.length > maxBodyNames;
    const searching = discoverLevels({ push, streams, names, limits });
    const { levels, foreign } = await runInTurns(searching, turns);
    const isForeign = !foreign.isEmpty;
    const assembly = assembleBatchSteps(isForeign ? foreign.applied() : push, {
      streams: validated.streams,
      dropped: validated.dropped,
      levels: withoutRows(levels, validated.dropped),
      ...(isForeign ? {} : { names }),
      ...(isForeign || input.isChanged || body === undefined || isWide ? {} : { source: body }),
    });
    const batch = await runInTurns(assembly, turns);
    markWork(workName, tenant);
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
}

interface StoreInput {
  readonly tenant: string;
  /** The body as received; absent for rows that did not come as a body. */
  readonly body?: PushBody;
  readonly push: RawPush;
  /** Whether rows may lack a time, which is that of their arrival then. */
  readonly isStamped?: boolean;
  /** Whether rows lose metadata that the tenant may not have, instead of being refused. */
  readonly keepsLines?: boolean;
  /** Whether the reason of each refused row is wanted. */
  readonly namesDropped?: boolean;
  readonly backfillShard?: string | undefined;
  readonly hold?: IncomingPush["hold"];
  readonly isGone?: IncomingPush["isGone"];
}

interface AppendInput extends StoreInput {
  readonly streams: readonly PushStream[];
  readonly validated: Validated;
  readonly limits: PushLimits;
  /** Whether rows differ from the body. */
  readonly isChanged: boolean;
}

/** The time that bodies took of this thread in this turn of the event loop. */
class DecodingTime {
  #spentMs = 0;

  /** Decodes a body, if there is time left for one of this size. */
  spend<T>(work: Decoding<T>, maxBytes: number): T | undefined {
    const isSpent = this.#spentMs > maxDecodingMs;
    if (isSpent && work.body.length > tinyBytes) return undefined;
    if (this.#spentMs === 0) setImmediate(() => (this.#spentMs = 0));
    const start = performance.now();
    try {
      const most = isSpent ? maxTinyDecodedBytes : maxInlineDecodedBytes;
      return decodeInline(work, maxBytes, most);
    } finally {
      this.#spentMs += performance.now() - start;
    }
  }
}

const decodingTime = new DecodingTime();

/** A body that may be decoded on this thread or on another. */
interface Decoding<T> {
  readonly encoding: BodyEncoding;
  readonly body: Uint8Array;
  /** How many times longer than protobuf it takes. */
  readonly cost: number;
  /** How many times longer than protobuf what it grows to takes. */
  readonly growthCost: number;
  readonly here: (maxBytes: number) => T;
  readonly there: ((maxBytes: number) => Promise<T>) | undefined;
}

/** Decodes on this thread; returns undefined for a body that would take too long. */
function decodeInline<T>(work: Decoding<T>, maxBytes: number, most: number): T | undefined {
  const { body, encoding, cost, growthCost, here } = work;
  const maxInlineBytes = most / growthCost;
  if (body.length > inlineBytes[encoding] / cost) return undefined;
  // Finding out by inflating what fits would take as long as decoding it.
  if (encoding === "gzip" && announcedBytes(body) > maxInlineBytes) return undefined;
  try {
    return here(Math.min(maxBytes, maxInlineBytes));
  } catch (error) {
    const isLarge = error instanceof SkaldError && error.code === "too_large";
    if (isLarge && maxBytes > maxInlineBytes) return undefined;
    throw error;
  }
}

/** The size that the end of a gzip file gives, true or not (RFC 1952, ISIZE). */
function announcedBytes(body: Uint8Array): number {
  const at = body.byteOffset + body.length - 4;
  return body.length < 4 ? 0 : new DataView(body.buffer, at, 4).getUint32(0, true);
}

function costOf({ format, otlp }: PushBody): number {
  if (otlp !== undefined) return otlpCost;
  return format === "protobuf" ? 1 : jsonCost;
}

/** What a decoded push takes: its texts, and its columns. */
function bytesOf({ bytes, streamCount, rowCount, pairCount }: RawPush): number {
  return (
    bytes.length + streamCount * bytesPerStream + rowCount * bytesPerRow + pairCount * bytesPerPair
  );
}

function blockedTextOf(tenant: string, limits: PushLimits, nowMs: number): string | undefined {
  const { block_ingestion_until: untilMs, block_ingestion_status_code: status } = limits;
  if (untilMs <= nowMs) return undefined;
  const until = formatRfc3339(BigInt(untilMs) * 1_000_000n);
  return `ingestion blocked for user '${tenant}' until '${until}' with status code '${status}'`;
}
