import type { Batch } from "@skald/model";
import type { GrpcConnection, GrpcServer, Parts } from "@skald/transport/grpc";
import { empty } from "@skald/transport/protobuf";
import type { DigestTask, MinuteDigests, PlacedHashes, RowHashTask } from "../agreement.js";
import type { CallOptions } from "../call.js";
import { decodePush, encodePush, encodePushInParts, pushOutcome } from "../codec/push.js";
import {
  digestsCall,
  duplicatesCall,
  flushRequest,
  heldChanges,
  heldChangesRequest,
  labelsCall,
  matchedRows,
  matchesCall,
  measureAnswer,
  minuteDigests,
  placedHashes,
  releaseRequest,
  rowHashesCall,
  rowMask,
  type Shared,
  scanCall,
  selection,
  selectRequest,
  streamsCall,
  volumesCall,
} from "../codec/scan-messages.js";
import type {
  FlushRequest,
  Ingester,
  PushOutcome,
  PushRefusal,
  PushRequest,
  Selection,
  SelectRequest,
} from "../ingester.js";
import type { HeldChanges, HeldChangesRequest } from "../querier.js";
import type {
  DuplicateTask,
  LabelTask,
  MatchedRows,
  MatchTask,
  RowMask,
  ScanOptions,
  ScanTask,
  StreamTask,
  VolumeTask,
} from "../scan.js";
import type { SourceRef } from "../source.js";
import { callRemote, encodedWire, type Method, serve, type Wire, wireOf } from "./method.js";

const service = "skald.v1.Ingester";

function method<Request, Answer>(
  name: string,
  request: Wire<Request>,
  answer: Wire<Answer>,
): Method<Request, Answer> {
  return { path: `/${service}/${name}`, request, answer };
}

/** A push is sent in messages of about this at most: a server takes no more than 4 MB unless it is told to. */
const maxPushBytes = 2 * 1024 * 1024;

/** Of a push and its outcome, wherever it goes. */
export const pushWire: Wire<PushRequest> = { encode: encodePush, decode: decodePush };
export const pushOutcomeWire: Wire<PushOutcome> = wireOf(pushOutcome);

const nothing = wireOf(empty);
const methods = {
  push: method("Push", pushWire, pushOutcomeWire),
  select: method<SelectRequest, Selection>("Select", wireOf(selectRequest), wireOf(selection)),
  changes: method<HeldChangesRequest, HeldChanges>(
    "Changes",
    wireOf(heldChangesRequest),
    wireOf(heldChanges),
  ),
  release: method("Release", wireOf(releaseRequest), nothing),
  flush: method<FlushRequest, object>("Flush", wireOf(flushRequest), nothing),
  scan: method<Shared<ScanTask>, Uint8Array<ArrayBuffer>>("Scan", wireOf(scanCall), encodedWire),
  measure: method("Measure", wireOf(scanCall), wireOf(measureAnswer)),
  volumes: method<Shared<VolumeTask>, Uint8Array<ArrayBuffer>>(
    "Volumes",
    wireOf(volumesCall),
    encodedWire,
  ),
  streams: method<Shared<StreamTask>, Uint8Array<ArrayBuffer>>(
    "Streams",
    wireOf(streamsCall),
    encodedWire,
  ),
  labels: method<Shared<LabelTask>, Uint8Array<ArrayBuffer>>(
    "Labels",
    wireOf(labelsCall),
    encodedWire,
  ),
  duplicates: method<Shared<DuplicateTask>, RowMask>(
    "Duplicates",
    wireOf(duplicatesCall),
    wireOf(rowMask),
  ),
  matches: method<Shared<MatchTask>, MatchedRows>(
    "Matches",
    wireOf(matchesCall),
    wireOf(matchedRows),
  ),
  digests: method<Shared<DigestTask<SourceRef>>, MinuteDigests>(
    "Digests",
    wireOf(digestsCall),
    wireOf(minuteDigests),
  ),
  rowHashes: method<Shared<RowHashTask<SourceRef>>, PlacedHashes>(
    "RowHashes",
    wireOf(rowHashesCall),
    wireOf(placedHashes),
  ),
};

/** Lets other processes call an ingester. */
export function serveIngester(server: Pick<GrpcServer, "add">, ingester: Ingester): void {
  server.add({
    name: service,
    methods: {
      Push: serve(methods.push, (request, options) => ingester.push(request, options)),
      Select: serve(methods.select, (request, options) => ingester.select(request, options)),
      Changes: serve(methods.changes, (request, options) => ingester.changes(request, options)),
      Release: serve(methods.release, async ({ view }, options) => {
        await ingester.release(view, options);
        return {};
      }),
      Flush: serve(methods.flush, async (request, options) => {
        await ingester.flush(request, options);
        return {};
      }),
      Scan: serve(methods.scan, ({ task, ...account }, options) =>
        ingester.scan(task, { ...options, ...account }),
      ),
      Measure: serve(methods.measure, async ({ task, ...account }, options) => ({
        bytes: await ingester.measure(task, { ...options, ...account }),
      })),
      Volumes: serve(methods.volumes, ({ task, ...account }, options) =>
        ingester.volumes(task, { ...options, ...account }),
      ),
      Streams: serve(methods.streams, ({ task, ...account }, options) =>
        ingester.streams(task, { ...options, ...account }),
      ),
      Labels: serve(methods.labels, ({ task, ...account }, options) =>
        ingester.labels(task, { ...options, ...account }),
      ),
      Duplicates: serve(methods.duplicates, ({ task, ...account }, options) =>
        ingester.duplicates(task, { ...options, ...account }),
      ),
      Matches: serve(methods.matches, ({ task, ...account }, options) =>
        ingester.matches(task, { ...options, ...account }),
      ),
      Digests: serve(methods.digests, ({ task, ...account }, options) =>
        ingester.digests(task, { ...options, ...account }),
      ),
      RowHashes: serve(methods.rowHashes, ({ task, ...account }, options) =>
        ingester.rowHashes(task, { ...options, ...account }),
      ),
    },
  });
}

/** The ingester at the other end of a connection. A large push goes as several, one after the other. */
export function remoteIngester(connection: GrpcConnection): Ingester {
  const call = <Request, Answer>(
    one: Method<Request, Answer>,
    value: Request,
    options: CallOptions,
  ) => callRemote(connection, one, value, options);
  const shared = <Task>(task: Task, { share, background }: ScanOptions): Shared<Task> => ({
    task,
    share,
    ...(background === undefined ? {} : { background }),
  });
  return {
    push: (request, options) => pushTo(connection, methods.push, request, options),
    select: (request, options) => call(methods.select, request, options),
    changes: (request, options) => call(methods.changes, request, options),
    release: async (view, options) => void (await call(methods.release, { view }, options)),
    flush: async (request, options) => void (await call(methods.flush, request, options)),
    scan: (task, options) => call(methods.scan, shared(task, options), options),
    measure: async (task, options) =>
      (await call(methods.measure, shared(task, options), options)).bytes,
    volumes: (task, options) => call(methods.volumes, shared(task, options), options),
    streams: (task, options) => call(methods.streams, shared(task, options), options),
    labels: (task, options) => call(methods.labels, shared(task, options), options),
    duplicates: (task, options) => call(methods.duplicates, shared(task, options), options),
    matches: (task, options) => call(methods.matches, shared(task, options), options),
    digests: (task, options) => call(methods.digests, shared(task, options), options),
    rowHashes: (task, options) => call(methods.rowHashes, shared(task, options), options),
  };
}

/** Sends a push, in as many messages as it takes. A batch that goes to several ingesters is encoded once. */
export async function pushTo(
  connection: GrpcConnection,
  push: Method<PushRequest, PushOutcome>,
  request: PushRequest,
  options: CallOptions,
): Promise<PushOutcome> {
  const messages = messagesOf(request);
  const outcomes: PushOutcome[] = [];
  for (let i = 0; ; i++) {
    const parts = messages.at(i);
    if (parts === undefined) break;
    outcomes.push(await callRemote(connection, sent(push, parts), request, options));
  }
  const [only] = outcomes;
  if (outcomes.length === 1 && only !== undefined) return only;
  return { refusals: mergeRefusals(outcomes.flatMap(({ refusals }) => refusals)) };
}

/** By the batch, for as long as that is there: what was encoded of it so far. */
const encoded = new WeakMap<Batch, PushMessages>();

function messagesOf(request: PushRequest): PushMessages {
  const known = encoded.get(request.batch);
  if (known?.tenant === request.tenant) return known;
  const messages = new PushMessages(request);
  encoded.set(request.batch, messages);
  return messages;
}

/** The messages of a push, each encoded when it is first asked for. */
class PushMessages {
  readonly tenant: string;
  readonly #made: Parts[] = [];
  readonly #rest: Iterator<Parts>;

  constructor(request: PushRequest) {
    this.tenant = request.tenant;
    this.#rest = encodeMessages(request);
  }

  /** Undefined behind the last one. */
  at(place: number): Parts | undefined {
    while (this.#made.length <= place) {
      const { done, value } = this.#rest.next();
      if (done === true) return undefined;
      this.#made.push(value);
    }
    return this.#made[place];
  }
}

function* encodeMessages(request: PushRequest): Generator<Parts, void> {
  const { batch } = request;
  // What is surely too large is not tried as a whole.
  if (batch.lineBytes <= maxPushBytes || batch.rowCount <= 1) {
    const whole = encodePush(request);
    const size = whole.reduce((total, { length }) => total + length, 0);
    if (size <= maxPushBytes || batch.rowCount <= 1) {
      yield whole;
      return;
    }
  }
  yield* encodePushInParts(request, maxPushBytes);
}

/** The method for a request that is encoded already. */
function sent<Answer>(
  push: Method<PushRequest, Answer>,
  parts: Parts,
): Method<PushRequest, Answer> {
  return { ...push, request: { ...push.request, encode: () => parts } };
}

/** Refusals with the same text as one. */
function mergeRefusals(refusals: readonly PushRefusal[]): PushRefusal[] {
  const merged = new Map<string, PushRefusal>();
  for (const one of refusals) {
    const key = JSON.stringify([one.status, one.reason, one.message]);
    const { entries = 0, bytes = 0 } = merged.get(key) ?? {};
    merged.set(key, { ...one, entries: entries + one.entries, bytes: bytes + one.bytes });
  }
  return [...merged.values()];
}
