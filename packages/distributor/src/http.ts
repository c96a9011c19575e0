import type { IncomingMessage, ServerResponse } from "node:http";
import type { PushStyle } from "@skald/push";
import { endResponse, readBody } from "@skald/transport";
import { type AnswerForm, answerForm, plainText, retryableStatus } from "./answer-form.js";
import type { Distributor } from "./distributor.js";
import type { InflightBytes } from "./inflight.js";
import { type PushMemory, PushMemoryPool } from "./push-memory.js";
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
    const reservation = new Reservation(options.inflight);
    const form = answerForm(style, request.headers["content-type"]);
    let memory: PushMemory | undefined;
    const held: Promise<unknown>[] = [];
    let isReusable = false;
    const take = (length: number) => {
      memory ??= pool.take();
      return memory.take(length);
    };
    try {
      // Booked when they come: a length that is only declared costs nobody anything.
      const book = (bytes: number) => reservation.take(bytes);
      const body = await readBody(request, options.maxReceivedBytes, book, take);
      const shard = request.headers[backfillHeader];
      const answer = await options.distributor.push(tenant, {
        contentType: request.headers["content-type"],
        contentEncoding: request.headers["content-encoding"],
        style,
        body,
        take,
        hold: (until) => void held.push(until),
        ...(typeof shard === "string" ? { backfillShard: shard } : {}),
      });
      send(response, answer, form);
      // After a fault somebody may still be at it.
      isReusable = answer.status < 500;
    } catch (error) {
      send(response, failedResponse(error), form);
    } finally {
      const release = () => {
        if (memory !== undefined && isReusable) pool.give(memory);
        reservation.release();
      };
      // What goes on behind the answer counts as in flight for as long as it does.
      if (held.length === 0) release();
      else void Promise.allSettled(held).then(release);
    }
  };
}

/** What one request holds of the bytes in flight. */
class Reservation {
  readonly #inflight: InflightBytes;
  #bytes = 0;

  constructor(inflight: InflightBytes) {
    this.#inflight = inflight;
  }

  take(bytes: number): void {
    this.#inflight.take(bytes);
    this.#bytes += bytes;
  }

  release(): void {
    this.#inflight.give(this.#bytes);
    this.#bytes = 0;
  }
}

function send(response: ServerResponse, answer: PushResponse, form: AnswerForm): void {
  if (response.destroyed) return;
  response.statusCode = form === plainText ? answer.status : retryableStatus(answer.status);
  if (answer.retryAfterSeconds !== undefined) {
    response.setHeader("retry-after", answer.retryAfterSeconds);
  }
  if (answer.text === undefined) {
    endResponse(response);
    return;
  }
  response.setHeader("content-type", form.contentType);
  response.setHeader("x-content-type-options", "nosniff");
  endResponse(response, form.encode(answer.text));
}
