import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { empty } from "@skald/transport/protobuf";
import type { DigestTask, MinuteDigests, PlacedHashes, RowHashTask } from "../agreement.js";
import type { CallOptions } from "../call.js";
import {
  flushRequest,
  heldChanges,
  heldChangesRequest,
  measureAnswer,
  released,
  releaseRequest,
  selection,
  selectRequest,
} from "../codec/ingester-messages.js";
import { minuteDigests, placedHashes } from "../codec/scan/digests.js";
import { matchedRows, rowMask } from "../codec/scan/row-masks.js";
import {
  digestsCall,
  duplicatesCall,
  labelsCall,
  matchesCall,
  rowHashesCall,
  type Shared,
  scanCall,
  streamsCall,
  volumesCall,
} from "../codec/scan/tasks.js";
import type { FlushRequest, Ingester, Selection, SelectRequest } from "../ingester.js";
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
import { IngesterPushes, outcomeWire, pushBodyWire, pushWire, serveBodies } from "./pushes.js";
import { Releases } from "./releases.js";

const service = "skald.v1.Ingester";

function method<Request, Answer>(
  name: string,
  request: Wire<Request>,
  answer: Wire<Answer>,
): Method<Request, Answer> {
  return { path: `/${service}/${name}`, request, answer };
}

/** Of a push and its outcome, wherever it goes. */
const nothing = wireOf(empty);
const methods = {
  push: method("Push", pushWire, outcomeWire),
  pushBody: method("PushBody", pushBodyWire, outcomeWire),
  select: method<SelectRequest, Selection>("Select", wireOf(selectRequest), wireOf(selection)),
  changes: method<HeldChangesRequest, HeldChanges>(
    "Changes",
    wireOf(heldChangesRequest),
    wireOf(heldChanges),
  ),
  release: method("Release", wireOf(releaseRequest), wireOf(released)),
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
      Push: serve(methods.push, async (request, options) => ({
        ...(await ingester.push(request, options)),
        takesBodies: true,
      })),
      PushBody: serveBodies(methods.pushBody, ingester),
      Select: serve(methods.select, (request, options) => ingester.select(request, options)),
      Changes: serve(methods.changes, (request, options) => ingester.changes(request, options)),
      Release: serve(methods.release, async ({ view, more }, options) => {
        await Promise.all([view, ...more].map((one) => ingester.release(one, options)));
        return { takesMany: true };
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
  const pushes = new IngesterPushes(connection, methods);
  const { signal } = new AbortController();
  const releases = new Releases(([view = "", ...more]) =>
    call(methods.release, { view, more }, { signal }),
  );
  return {
    push: (request, options) => pushes.push(request, options),
    select: (request, options) => call(methods.select, request, options),
    changes: (request, options) => call(methods.changes, request, options),
    release: (view) => releases.add(view),
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
