import type {
  HeldKind,
  Ingester,
  PartTaker,
  PushOutcome,
  PushPart,
  PushRefusal,
  ScanOptions,
  TaskOf,
} from "@skald/contracts";
import { decodePush, encodePush, encodePushBody, encodePushInParts } from "@skald/contracts/codec";
import { type PushMemory, PushMemoryPool, takeStreams } from "@skald/push";
import { within } from "@skald/runtime/tracing";
import type { GrpcConnection, OutgoingCall } from "./client.js";
import { encodedWire, type Method, methodsOf } from "./methods.js";
import type { GrpcServer, Handlers, IncomingCall } from "./server.js";

const schema = methodsOf("Ingester");
/** Bytes that the merge of partial results decodes, or that were encoded for several ingesters at once. */
const methods = {
  ...schema,
  Push: { ...schema.Push, request: encodedWire },
  Scan: { ...schema.Scan, answer: encodedWire },
  Volumes: { ...schema.Volumes, answer: encodedWire },
  Streams: { ...schema.Streams, answer: encodedWire },
  Labels: { ...schema.Labels, answer: encodedWire },
};

/** The method of each kind of scan. */
const scanMethods = {
  scan: "Scan",
  measure: "Measure",
  volumes: "Volumes",
  streams: "Streams",
  labels: "Labels",
  duplicates: "Duplicates",
  matches: "Matches",
  digests: "Digests",
  rowHashes: "RowHashes",
} as const satisfies Record<HeldKind, keyof typeof methods>;

/** Lets other processes call an ingester. */
export function serveIngester(server: Pick<GrpcServer, "add">, ingester: Ingester): void {
  const scan = Object.entries(scanMethods).map(([kind, method]) => [
    method,
    ({ task, ...account }: ScanCall, call: IncomingCall) =>
      ingester.run(kind as HeldKind, task, { ...call, ...account }),
  ]);
  server.add("Ingester", methods, {
    ...(Object.fromEntries(scan) as Pick<Handlers<typeof methods>, ScanMethod>),
    Push: servePushes(ingester),
    Select: (request, call) => ingester.select(request, call),
    Changes: (request, call) => ingester.changes(request, call),
    Release: async ({ views }, call) => {
      await Promise.all(views.map((view) => ingester.release(view, call)));
      return {};
    },
    Flush: async (request, call) => {
      await ingester.flush(request, call);
      return {};
    },
  });
}

type ScanMethod = (typeof scanMethods)[HeldKind];
type ScanCall = Pick<ScanOptions, "share" | "background"> & { readonly task: TaskOf<HeldKind> };

/** Decodes bodies into memory that is used again when the ingester has their rows. */
function servePushes(ingester: Pick<Ingester, "push">) {
  const pool = new PushMemoryPool();
  return async (encoded: Uint8Array, call: IncomingCall): Promise<PushOutcome> => {
    const memory = pool.take();
    const request = decodePush(encoded, (length) => memory.take(length));
    const outcome = await ingester.push(request, call);
    // After a fault somebody may still read the memory: then it is garbage.
    pool.give(memory);
    return outcome;
  };
}

/** The ingester at the other end of a connection. A large push goes as several, one after the other. */
export function remoteIngester(connection: GrpcConnection): Ingester & PartTaker {
  const { signal } = new AbortController();
  const releases = new Releases((views) => connection.call(methods.Release, { views }, { signal }));
  return {
    push: ({ tenant, batch }, options) =>
      pushTo(connection, methods.Push, { tenant, whole: batch }, options),
    pushPart: (part, options) => pushTo(connection, methods.Push, part, options),
    select: (request, options) => connection.call(methods.Select, request, options),
    changes: (request, options) => connection.call(methods.Changes, request, options),
    release: async (view) => releases.add(view),
    flush: async (request, options) =>
      void (await connection.call(methods.Flush, request, options)),
    run: <K extends HeldKind>(kind: K, task: TaskOf<K>, options: ScanOptions) => {
      const { share, background } = options;
      const method = methods[scanMethods[kind]] as Method<unknown, never>;
      return connection.call(method, { task, share, background }, options);
    },
  };
}

/** The largest message of a push, about: by default a server takes no more than 4 MB. */
const maxPushBytes = 2 * 1024 * 1024;

/** Sends a push in as many messages as it takes. A part for several ingesters is encoded once. */
export async function pushTo(
  connection: GrpcConnection,
  method: Method<Uint8Array, PushOutcome>,
  part: PushPart,
  options: OutgoingCall,
): Promise<PushOutcome> {
  const messages = messagesOf(part);
  const outcomes: PushOutcome[] = [];
  messages.users++;
  for (let i = 0; ; i++) {
    const message = messages.at(i);
    if (message === undefined) break;
    outcomes.push(await connection.call(method, message, options));
  }
  messages.users--;
  if (messages.users === 0) {
    encoded.delete(part);
    messages.free();
  }
  const [only] = outcomes;
  if (outcomes.length === 1 && only !== undefined) return only;
  return { refusals: mergeRefusals(outcomes.flatMap(({ refusals }) => refusals)) };
}

/** Memory of messages. */
const pool = new PushMemoryPool();

/** The messages of a part that were encoded so far, for as long as the part is there. */
const encoded = new WeakMap<PushPart, PushMessages>();

function messagesOf(part: PushPart): PushMessages {
  const known = encoded.get(part);
  if (known !== undefined) return known;
  const messages = new PushMessages(part);
  encoded.set(part, messages);
  return messages;
}

/** The messages of a part, each encoded when it is first asked for. */
class PushMessages {
  /** Those who send them. After a failure somebody may still read a message, so that one that failed counts for ever. */
  users = 0;
  readonly #memory = pool.take();
  readonly #made: Uint8Array[] = [];
  readonly #rest: Iterator<Uint8Array>;

  constructor(part: PushPart) {
    this.#rest = encodeMessages(part, this.#memory);
  }

  /** Gives the memory back, when nobody sends them any more. */
  free(): void {
    pool.give(this.#memory);
  }

  /** Undefined behind the last one. */
  at(place: number): Uint8Array | undefined {
    while (this.#made.length <= place) {
      const { done, value } = this.#rest.next();
      if (done === true) return undefined;
      this.#made.push(value);
    }
    return this.#made[place];
  }
}

function* encodeMessages(part: PushPart, memory: PushMemory): Generator<Uint8Array, void> {
  const { tenant, whole, streams } = part;
  const take = (length: number) => memory.take(length);
  if ((whole.source?.body.length ?? 0) <= maxPushBytes) {
    const body = encodePushBody(part, take);
    if (body !== undefined && body.length <= maxPushBytes) {
      yield body;
      return;
    }
  }
  const batch = streams === undefined ? whole : takeStreams(whole, streams);
  const request = { tenant, batch };
  if (batch.lineBytes <= maxPushBytes || batch.rowCount <= 1) {
    const columns = encodePush(request, take);
    if (columns.length <= maxPushBytes || batch.rowCount <= 1) {
      yield columns;
      return;
    }
  }
  yield* encodePushInParts(request, maxPushBytes);
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

/** Views wait this long for others; an ingester may keep what they hold meanwhile. */
const maxWaitMs = 2000;
/** Views of one call. */
const maxViews = 100;

/** Runs something later, outside of any trace, and without keeping the process alive. */
function later(run: () => void, ms: number): void {
  within(undefined, () => void setTimeout(run, ms).unref());
}

/** Gives views back, several in a call: nobody waits for that, and a call for each would cost as much as a query asks for. */
export class Releases {
  readonly #send: (views: readonly string[]) => Promise<unknown>;
  readonly #later: typeof later;
  #views: string[] = [];
  #isPlanned = false;

  constructor(send: (views: readonly string[]) => Promise<unknown>, runLater = later) {
    this.#send = send;
    this.#later = runLater;
  }

  add(view: string): void {
    this.#views.push(view);
    if (this.#views.length >= maxViews) this.#flush();
    else if (!this.#isPlanned) {
      this.#isPlanned = true;
      this.#later(() => {
        this.#isPlanned = false;
        this.#flush();
      }, maxWaitMs);
    }
  }

  #flush(): void {
    const views = this.#views;
    if (views.length === 0) return;
    this.#views = [];
    // An ingester forgets views in time.
    void this.#send(views).catch(() => undefined);
  }
}
