import type { IncomingMessage, ServerResponse } from "node:http";
import { type PushMemory, PushMemoryPool, type PushStyle } from "@skald/push";
import { type DirectRequest, type DirectResponse, endResponse, readBody } from "@skald/transport";
import { type AnswerForm, answerForm, plainText, retryableStatus } from "./answer-form.js";
import type { Distributor } from "./distributor.js";
import type { InflightBytes } from "./inflight.js";
import { failedResponse, type PushResponse } from "./push-response.js";

export interface PushHandlerOptions {
  readonly distributor: Pick<Distributor, "push">;
  /** Largest body as received; above it 413. */
  readonly maxReceivedBytes: number;
  /** Shared by all handlers of the process. */
  readonly inflight: InflightBytes;
}

/** Serves one push request of a tenant; rejects only on faults of the program, before anything was answered. */
export interface PushHandler {
  (
    request: IncomingMessage,
    response: ServerResponse,
    tenant: string,
    style: PushStyle,
  ): Promise<void>;
  /** The same for one that is there as a whole, and not above `maxReceivedBytes`. */
  direct(request: DirectRequest, tenant: string, style: PushStyle): Promise<DirectResponse>;
}

const backfillHeader = "x-loki-backfill-shard";

/** Pushes over plain node:http: reads the bounded body, calls the distributor, writes 204 or a text. */
export function createPushHandler(options: PushHandlerOptions): PushHandler {
  const pool = new PushMemoryPool();
  const handle = async (
    request: IncomingMessage,
    response: ServerResponse,
    tenant: string,
    style: PushStyle,
  ) => {
    const { headers } = request;
    const push = new OnePush(options, pool);
    const shard = headers[backfillHeader];
    const read = () =>
      readBody(request, options.maxReceivedBytes, (bytes) => push.book(bytes), push.take);
    const contentType = headers["content-type"];
    const contentEncoding = headers["content-encoding"];
    const backfillShard = typeof shard === "string" ? shard : undefined;
    const answer = await push.serve(tenant, {
      head: { contentType, contentEncoding, style, backfillShard },
      read,
    });
    send(response, answer, answerForm(style, contentType));
  };
  const direct = async (
    { headers, body }: DirectRequest,
    tenant: string,
    style: PushStyle,
  ): Promise<DirectResponse> => {
    const push = new OnePush(options, pool);
    const contentType = headers.get("content-type");
    const contentEncoding = headers.get("content-encoding");
    const backfillShard = headers.get(backfillHeader);
    const read = () => {
      push.book(body.length);
      return body;
    };
    const answer = await push.serve(tenant, {
      head: { contentType, contentEncoding, style, backfillShard },
      read,
    });
    return written(answer, answerForm(style, contentType));
  };
  return Object.assign(handle, { direct });
}

interface PushInput {
  readonly head: {
    readonly contentType: string | undefined;
    readonly contentEncoding: string | undefined;
    readonly style: PushStyle;
    readonly backfillShard: string | undefined;
  };
  readonly read: () => Uint8Array | Promise<Uint8Array>;
}

/** What one push holds while it is served: bytes in flight, and memory. */
class OnePush {
  readonly #options: PushHandlerOptions;
  readonly #pool: PushMemoryPool;
  #memory: PushMemory | undefined;
  #bytes = 0;
  #held: Promise<unknown>[] | undefined;

  constructor(options: PushHandlerOptions, pool: PushMemoryPool) {
    this.#options = options;
    this.#pool = pool;
  }

  /** Counts bytes when they come: a length that is only declared costs nobody anything. */
  book(bytes: number): void {
    this.#options.inflight.take(bytes);
    this.#bytes += bytes;
  }

  readonly take = (length: number): Uint8Array<ArrayBuffer> => {
    this.#memory ??= this.#pool.take();
    return this.#memory.take(length);
  };

  readonly #hold = (until: Promise<unknown>): void => {
    this.#held ??= [];
    this.#held.push(until);
  };

  async serve(tenant: string, { head, read }: PushInput): Promise<PushResponse> {
    let isReusable = false;
    try {
      const { contentType, contentEncoding, style, backfillShard } = head;
      const body = await read();
      const answer = await this.#options.distributor.push(tenant, {
        contentType,
        contentEncoding,
        style,
        body,
        take: this.take,
        hold: this.#hold,
        ...(backfillShard === undefined ? {} : { backfillShard }),
      });
      // After a fault somebody may still be at it.
      isReusable = answer.status < 500;
      return answer;
    } catch (error) {
      return failedResponse(error);
    } finally {
      // What goes on behind the answer counts as in flight for as long as it does.
      if (this.#held === undefined) this.#release(isReusable);
      else void Promise.allSettled(this.#held).then(() => this.#release(isReusable));
    }
  }

  #release(isReusable: boolean): void {
    if (this.#memory !== undefined && isReusable) this.#pool.give(this.#memory);
    this.#options.inflight.give(this.#bytes);
    this.#bytes = 0;
  }
}

/** An answer as HTTP has it. */
function written(
  { status, text, retryAfterSeconds }: PushResponse,
  form: AnswerForm,
): DirectResponse {
  const retry =
    retryAfterSeconds === undefined ? undefined : { "retry-after": String(retryAfterSeconds) };
  const code = form === plainText ? status : retryableStatus(status);
  if (text === undefined)
    return { status: code, ...(retry === undefined ? {} : { headers: retry }) };
  const type = { "content-type": form.contentType, "x-content-type-options": "nosniff" };
  return { status: code, headers: { ...retry, ...type }, body: form.encode(text) };
}

function send(response: ServerResponse, answer: PushResponse, form: AnswerForm): void {
  if (response.destroyed) return;
  const { status, headers = {}, body } = written(answer, form);
  response.statusCode = status;
  for (const name in headers) response.setHeader(name, headers[name] as string);
  endResponse(response, body as Uint8Array | undefined);
}
