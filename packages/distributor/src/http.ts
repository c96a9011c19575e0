import type { IncomingMessage, ServerResponse } from "node:http";
import { type PushMemory, PushMemoryPool, type PushStyle } from "@skald/push";
import type { Claim, Ledger } from "@skald/runtime";
import { endResponse, readBody } from "@skald/transport";
import type { Distributor, IncomingPush, IncomingRecords } from "./distributor.js";
import { failedResponse, type PushResponse } from "./push-response.js";
import { encodeRpcStatus } from "./rpc-status.js";

export interface PushDoorOptions {
  readonly distributor: Pick<Distributor, "push" | "pushRecords">;
  /** Largest body as received; above it 413. */
  readonly maxReceivedBytes: number;
  /** Shared by all doors of the process. */
  readonly ledger: Ledger;
}

/** A push of which nothing was read yet. */
export interface ArrivingPush {
  isGone(): boolean;
  /** Reads the body; `book` must be called with the size of each chunk before it is kept, and may throw. */
  read(
    maxBytes: number,
    book: (bytes: number) => void,
    take: Take,
  ): Promise<ReadPush | ReadRecords>;
}

type Take = (length: number) => Uint8Array<ArrayBuffer>;
/** What a push says of itself, and its body. */
export type ReadPush = Pick<
  IncomingPush,
  "contentType" | "contentEncoding" | "style" | "body" | "backfillShard"
>;

/** The same of a body of records. */
export type ReadRecords = Pick<
  IncomingRecords,
  "contentEncoding" | "format" | "mapping" | "piece" | "body"
>;

/** Where pushes come in, over whatever protocol: bounds the memory of each while it is served. */
export class PushDoor {
  readonly #options: PushDoorOptions;
  readonly #pool = new PushMemoryPool();

  constructor(options: PushDoorOptions) {
    this.#options = options;
  }

  /** Reads and stores one push of a tenant; rejects only on program faults. */
  serve(tenant: string, push: ArrivingPush): Promise<PushResponse> {
    return new OnePush(this.#options, this.#pool, tenant).serve(push);
  }
}

/** One push with the memory that it holds while it is served. */
class OnePush {
  readonly #options: PushDoorOptions;
  readonly #pool: PushMemoryPool;
  readonly #tenant: string;
  readonly #claim: Claim;
  #memory: PushMemory | undefined;
  #held: Promise<unknown>[] | undefined;

  constructor(options: PushDoorOptions, pool: PushMemoryPool, tenant: string) {
    this.#options = options;
    this.#pool = pool;
    this.#tenant = tenant;
    this.#claim = options.ledger.open(tenant);
  }

  async serve(push: ArrivingPush): Promise<PushResponse> {
    const { distributor, maxReceivedBytes } = this.#options;
    let isReusable = true;
    try {
      const read = await push.read(maxReceivedBytes, this.#book, this.#take);
      isReusable = false;
      const own = {
        take: this.#take,
        hold: this.#hold,
        inflated: this.#inflated,
        isGone: () => push.isGone(),
      };
      const answer = await ("format" in read
        ? distributor.pushRecords(this.#tenant, {
            ...{ ...read, ...own },
            ownsBody: this.#memory?.holds(read.body) === true,
          })
        : distributor.push(this.#tenant, { ...read, ...own }));
      // After a fault some work may still use the memory.
      isReusable = answer.status < 500;
      return answer;
    } catch (error) {
      return failedResponse(error);
    } finally {
      // Work that continues after the answer counts as in flight until it ends.
      if (this.#held === undefined) this.#release(isReusable);
      else void Promise.allSettled(this.#held).then(() => this.#release(isReusable));
    }
  }

  /** Counts bytes when they arrive, so that a declared length alone reserves nothing. */
  readonly #book = (bytes: number): void => {
    this.#claim.receive(bytes);
  };

  readonly #inflated = (bytes: number): void => {
    this.#claim.inflate(bytes);
  };

  readonly #take = (length: number): Uint8Array<ArrayBuffer> => {
    this.#memory ??= this.#pool.take();
    return this.#memory.take(length);
  };

  readonly #hold = (until: Promise<unknown>): void => {
    this.#held ??= [];
    this.#held.push(until);
  };

  #release(isReusable: boolean): void {
    if (this.#memory !== undefined && isReusable) this.#pool.give(this.#memory);
    this.#claim.close();
  }
}

/** Serves one push request of a tenant; rejects only on program faults, before an answer is begun. */
export type PushHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  tenant: string,
  style: PushStyle,
) => Promise<void>;

const backfillHeader = "x-loki-backfill-shard";

/** Serves pushes over plain node:http: reads the bounded body, calls the distributor, writes 204 or a text. */
export function createPushHandler(door: Pick<PushDoor, "serve">): PushHandler {
  return async (request, response, tenant, style) => {
    const { headers } = request;
    const contentType = headers["content-type"];
    const shard = headers[backfillHeader];
    const answer = await door.serve(tenant, {
      isGone: () => response.destroyed,
      read: async (maxBytes, book, take) => ({
        body: await readBody(request, maxBytes, book, take),
        contentType,
        contentEncoding: headers["content-encoding"],
        style,
        ...(typeof shard === "string" ? { backfillShard: shard } : {}),
      }),
    });
    send(response, answer, answerForm(style, contentType));
  };
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

/** The encoding of the text of an answer. */
interface AnswerForm {
  readonly contentType: string;
  readonly encode: (text: string) => Uint8Array;
}

const plainText: AnswerForm = {
  contentType: "text/plain; charset=utf-8",
  encode: (text) => Buffer.from(`${text}\n`),
};

/** OTLP answers with a google.rpc.Status in the encoding of the request, without its code, which the HTTP status gives. */
const statusJson: AnswerForm = {
  contentType: "application/json",
  encode: (message) => Buffer.from(JSON.stringify({ message })),
};

const statusProtobuf: AnswerForm = {
  contentType: "application/x-protobuf",
  encode: (message) => encodeRpcStatus({ message }),
};

export function answerForm(style: PushStyle, contentType: string | undefined): AnswerForm {
  if (style !== "otlp") return plainText;
  return contentType?.startsWith("application/json") === true ? statusJson : statusProtobuf;
}

/** OTLP collectors retry after a 503 and drop a push that got a 500. */
export function retryableStatus(status: number): number {
  return status === 500 ? 503 : status;
}
