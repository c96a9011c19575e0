import type { JobContext } from "@skald/runtime";
import type { HttpBody, HttpResponse } from "@skald/transport";

/** What an answer begins with. */
export type AnswerHead = Required<Pick<HttpResponse, "status" | "headers">>;

/** How an answer ends: it is whole, or its head and pieces were handed over by the calls `head` and `write`. */
export type AnswerReply =
  | ({ readonly kind: "answer"; readonly body?: string | Uint8Array } & AnswerHead)
  | { readonly kind: "written" };

/** Hands an answer over, one piece at a time, and makes the next while one is sent; an answer of one piece goes at once. */
export async function writeAnswer(
  { status, headers = {}, body }: HttpResponse,
  { call, signal }: JobContext,
): Promise<AnswerReply> {
  const head: AnswerHead = { status, headers };
  if (body === undefined) return { kind: "answer", ...head };
  if (!isInPieces(body)) return { kind: "answer", ...head, body };
  let held: Uint8Array | undefined;
  let sending: Promise<unknown> | undefined;
  const send = async (piece: Uint8Array) => {
    if (sending === undefined) await call("head", head, { signal });
    await sending;
    sending = call("write", piece, { signal, transfer: ownBuffer(piece) });
    // The next wait gets the error, unless a piece that cannot be made comes first.
    sending.catch(() => undefined);
  };
  for await (const piece of body) {
    if (held !== undefined) await send(held);
    held = piece;
  }
  if (sending === undefined) return { kind: "answer", ...head, body: held ?? new Uint8Array(0) };
  if (held !== undefined) await send(held);
  await sending;
  return { kind: "written" };
}

function isInPieces(body: HttpBody): body is Exclude<HttpBody, string | Uint8Array> {
  return typeof body !== "string" && !(body instanceof Uint8Array);
}

/** The memory of a piece if the piece is all of it: it moves to the other thread. */
function ownBuffer({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}

/** Pieces of an answer on their way from a query thread to a client: one at a time, as fast as the client takes them. */
export class PieceChannel implements AsyncIterable<Uint8Array> {
  #piece: Uint8Array | undefined;
  #isEnded = false;
  #failure: unknown;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: () => void = () => undefined;

  /** Resolves when the piece was taken, and what came before it was sent. */
  async put(piece: Uint8Array): Promise<void> {
    this.#piece = piece;
    this.#wakeReader();
    while (this.#piece === piece && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** No more pieces come: because that was all, or because of a failure, with which reading then throws. */
  end(failure?: unknown): void {
    this.#isEnded = true;
    this.#failure = failure;
    this.#wakeReader();
    this.#wakeWriter();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = this.#piece;
        if (piece !== undefined) {
          yield piece;
          this.#piece = undefined;
          this.#wakeWriter();
        } else if (this.#isEnded) {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wakeReader = resolve;
          });
        }
      }
    } finally {
      // The reader has gone: nobody waits for more.
      this.#isEnded = true;
      this.#wakeWriter();
    }
  }
}
