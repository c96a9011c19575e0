import { type Batch, errorCodeOf } from "@skald/model";
import { PushMemoryPool } from "@skald/push";
import type { GrpcConnection, GrpcHandler, Parts } from "@skald/transport/grpc";
import type { CallOptions } from "../call.js";
import {
  decodePush,
  encodePush,
  encodePushInParts,
  type IngesterOutcome,
  ingesterOutcome,
  pushOutcome,
} from "../codec/push.js";
import { decodePushBody, encodePushBody } from "../codec/push-body.js";
import type { Ingester, PushOutcome, PushRefusal, PushRequest } from "../ingester.js";
import { callRemote, type Method, type Wire, wireOf } from "./method.js";

/** A push is sent in messages of about this at most: a server takes no more than 4 MB unless it is told to. */
const maxPushBytes = 2 * 1024 * 1024;

export const pushWire: Wire<PushRequest> = { encode: encodePush, decode: decodePush };
export const pushOutcomeWire: Wire<PushOutcome> = wireOf(pushOutcome);
/** Bodies that were encoded already, and that are decoded where there is memory for them. */
export const pushBodyWire: Wire<Parts> = { encode: (parts) => parts, decode: (bytes) => [bytes] };

export const outcomeWire: Wire<IngesterOutcome> = wireOf(ingesterOutcome);

/** The two ways of a push to an ingester: in columns, or as its body. */
export interface PushMethods {
  readonly push: Method<PushRequest, IngesterOutcome>;
  readonly pushBody: Method<Parts, IngesterOutcome>;
}

/** Decodes bodies into memory that is used again when the ingester has their rows. */
export function serveBodies(
  method: PushMethods["pushBody"],
  ingester: Pick<Ingester, "push">,
): GrpcHandler {
  const pool = new PushMemoryPool();
  return async (encoded, call) => {
    const memory = pool.take();
    const request = decodePushBody(encoded, (length) => memory.take(length));
    const outcome = await ingester.push(request, call);
    // After a fault somebody may still be at it: then the memory is garbage.
    pool.give(memory);
    call.giveBack();
    return method.answer.encode({ ...outcome, takesBodies: true });
  };
}

/** Sends pushes to an ingester: as bodies, once it has said that it takes them, where that costs less. */
export class IngesterPushes {
  readonly #connection: GrpcConnection;
  readonly #push: Method<PushRequest, IngesterOutcome>;
  readonly #pushBody: Method<Parts, IngesterOutcome>;
  #takesBodies = false;

  constructor(connection: GrpcConnection, methods: PushMethods) {
    this.#connection = connection;
    this.#push = methods.push;
    this.#pushBody = methods.pushBody;
  }

  async push(request: PushRequest, options: CallOptions): Promise<PushOutcome> {
    try {
      const { refusals, takesBodies } = await this.#send(request, options);
      this.#takesBodies = takesBodies;
      return { refusals };
    } catch (error) {
      // Who comes back at the address may be older.
      if (errorCodeOf(error) === "unavailable") this.#takesBodies = false;
      throw error;
    }
  }

  async #send(request: PushRequest, options: CallOptions): Promise<IngesterOutcome> {
    const body = this.#takesBodies ? messagesOf(request).body : undefined;
    if (body !== undefined) return callRemote(this.#connection, this.#pushBody, body, options);
    let takesBodies = false;
    const decode = (bytes: Uint8Array) => {
      const outcome = outcomeWire.decode(bytes);
      takesBodies = outcome.takesBodies;
      return outcome;
    };
    const method = { ...this.#push, answer: { ...outcomeWire, decode } };
    const { refusals } = await pushTo(this.#connection, method, request, options);
    return { refusals, takesBodies };
  }
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
  readonly #encodeBody: () => Parts | undefined;
  #body: { readonly parts: Parts | undefined } | undefined;

  constructor(request: PushRequest) {
    this.tenant = request.tenant;
    this.#rest = encodeMessages(request);
    this.#encodeBody = () => encodePushBody(request);
  }

  /** The push as its body; undefined where its columns are better sent. */
  get body(): Parts | undefined {
    if (this.#body === undefined) {
      const parts = this.#encodeBody();
      this.#body = {
        parts: parts !== undefined && sizeOf(parts) <= maxPushBytes ? parts : undefined,
      };
    }
    return this.#body.parts;
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

function sizeOf(parts: Parts): number {
  return parts.reduce((total, { length }) => total + length, 0);
}

function* encodeMessages(request: PushRequest): Generator<Parts, void> {
  const { batch } = request;
  // What is surely too large is not tried as a whole.
  if (batch.lineBytes <= maxPushBytes || batch.rowCount <= 1) {
    const whole = encodePush(request);
    if (sizeOf(whole) <= maxPushBytes || batch.rowCount <= 1) {
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
