import type { IncomingMessage, ServerResponse } from "node:http";
import { type PushMemory, PushMemoryPool, type PushStyle } from "@skald/push";
import { endResponse, readBody } from "@skald/transport";
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
export type PushHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  tenant: string,
  style: PushStyle,
) => Promise<void>;

const backfillHeader = "x-loki-backfill-shard";

/** Pushes over plain node:http: reads the bounded body, calls the distributor, writes 204 or a text. */
export function createPushHandler(options: PushHandlerOptions): PushHandler {
  const pool = new PushMemoryPool();
  return async (request, response, tenant, style) => {
    const { headers } = request;
    const push = new OnePush(options, pool);
    const shard = headers[backfillHeader];
    const contentType = headers["content-type"];
    const answer = await push.serve(tenant, {
      contentType,
      contentEncoding: headers["content-encoding"],
      style,
      backfillShard: typeof shard === "string" ? shard : undefined,
      read: () =>
        readBody(request, options.maxReceivedBytes, (bytes) => push.book(bytes), push.take),
    });
    send(response, answer, answerForm(style, contentType));
  };
}

interface PushInput {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly style: PushStyle;
  readonly backfillShard: string | undefined;
  readonly read: () => Promise<Uint8Array>;
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

  async serve(tenant: string, { read, ...head }: PushInput): Promise<PushResponse> {
    let isReusable = false;
    try {
      const { backfillShard, ...rest } = head;
      const body = await read();
      const answer = await this.#options.distributor.push(tenant, {
        ...rest,
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

function send(
  response: ServerResponse,
  { status, text, retryAfterSeconds }: PushResponse,
  form: AnswerForm,
): void {
  if (response.destroyed) return;
  response.statusCode = form === plainText ? status : retryableStatus(status);
  if (retryAfterSeconds !== undefined) response.setHeader("retry-after", String(retryAfterSeconds));
  if (text !== undefined) {
    response.setHeader("content-type", form.contentType);
    response.setHeader("x-content-type-options", "nosniff");
  }
  endResponse(response, text === undefined ? undefined : form.encode(text));
}
