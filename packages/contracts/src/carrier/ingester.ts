import type { GrpcConnection, GrpcHandler, GrpcServer } from "@skald/transport/grpc";
import { empty, mapped } from "@skald/transport/protobuf";
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
import type { AnswerOf, HeldKind, Scanner, ScanOptions, TaskOf } from "../scan.js";
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
};

const measured = mapped(
  measureAnswer,
  (bytes: number) => ({ bytes }),
  ({ bytes }) => bytes,
);

/** How each kind of scan is sent. */
const scanMethods: {
  readonly [K in HeldKind]: Method<Shared<TaskOf<K>>, AnswerOf<K>>;
} = {
  scan: method("Scan", wireOf(scanCall), encodedWire),
  measure: method("Measure", wireOf(scanCall), wireOf(measured)),
  volumes: method("Volumes", wireOf(volumesCall), encodedWire),
  streams: method("Streams", wireOf(streamsCall), encodedWire),
  labels: method("Labels", wireOf(labelsCall), encodedWire),
  duplicates: method("Duplicates", wireOf(duplicatesCall), wireOf(rowMask)),
  matches: method("Matches", wireOf(matchesCall), wireOf(matchedRows)),
  digests: method("Digests", wireOf(digestsCall), wireOf(minuteDigests)),
  rowHashes: method("RowHashes", wireOf(rowHashesCall), wireOf(placedHashes)),
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
      ...serveScans(ingester),
    },
  });
}

function serveScans(ingester: Scanner): Record<string, GrpcHandler> {
  const handler = <K extends HeldKind>(kind: K) =>
    serve<Shared<TaskOf<K>>, AnswerOf<K>>(scanMethods[kind], ({ task, ...account }, options) =>
      ingester.run(kind, task, { ...options, ...account }),
    );
  const kinds = Object.keys(scanMethods) as HeldKind[];
  return Object.fromEntries(kinds.map((kind) => [nameOf(scanMethods[kind]), handler(kind)]));
}

function nameOf({ path }: { readonly path: string }): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The ingester at the other end of a connection. A large push goes as several, one after the other. */
export function remoteIngester(connection: GrpcConnection): Ingester {
  const call = <Request, Answer>(
    one: Method<Request, Answer>,
    value: Request,
    options: CallOptions,
  ) => callRemote(connection, one, value, options);
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
    run: <K extends HeldKind>(kind: K, task: TaskOf<K>, options: ScanOptions) => {
      const { share, background } = options;
      const shared: Shared<TaskOf<K>> =
        background === undefined ? { task, share } : { task, share, background };
      return call<Shared<TaskOf<K>>, AnswerOf<K>>(scanMethods[kind], shared, options);
    },
  };
}
