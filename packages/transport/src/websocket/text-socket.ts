import { SkaldError } from "@skald/model";
import { WebSocket } from "ws";

export interface TextSocketOptions {
  /** Pause between pings. */
  readonly pingPeriodMs: number;
  /** Time after which a client that takes nothing, or does not answer pings, is cut off. */
  readonly maxSilenceMs: number;
}

/** Longest reason of a close: more does not fit a control frame. */
const maxReasonBytes = 123;

/** A WebSocket that texts are sent on; what the client says is read and thrown away. */
export class TextSocket {
  /** Aborted once nobody listens any more. */
  readonly signal: AbortSignal;
  readonly #socket: WebSocket;
  readonly #options: TextSocketOptions;
  readonly #gone = new AbortController();
  readonly #pings: NodeJS.Timeout;
  #heardMs = performance.now();
  #sentBytes = 0;

  constructor(socket: WebSocket, options: TextSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    this.signal = this.#gone.signal;
    socket.on("pong", () => this.#hear());
    socket.on("message", () => this.#hear());
    socket.on("error", () => this.cut());
    socket.once("close", () => this.#end());
    this.#pings = setInterval(() => this.#ping(), options.pingPeriodMs);
  }

  /** Bytes of the texts that were sent. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Resolves when the system has taken the text; rejects as cancelled when the client is gone or takes nothing for too long. */
  send(text: Uint8Array): Promise<void> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    this.#sentBytes += text.length;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.cut(), this.#options.maxSilenceMs);
      const onGone = () => settle(this.signal.reason);
      const settle = (error?: unknown) => {
        clearTimeout(late);
        this.signal.removeEventListener("abort", onGone);
        if (error === undefined || error === null) resolve();
        else reject(clientGone(error));
      };
      this.signal.addEventListener("abort", onGone, { once: true });
      this.#socket.send(text, { binary: false }, settle);
    });
  }

  /** Says why it ends and ends; the client has a while to say the same. */
  close(code: number, reason: string): void {
    this.#socket.close(code, shorten(reason));
  }

  /** Ends without a word. */
  cut(): void {
    this.#socket.terminate();
  }

  #ping(): void {
    if (performance.now() - this.#heardMs > this.#options.maxSilenceMs) this.cut();
    else if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  #hear(): void {
    this.#heardMs = performance.now();
  }

  #end(): void {
    clearInterval(this.#pings);
    this.#gone.abort(clientGone());
  }
}

function clientGone(cause?: unknown): SkaldError {
  return new SkaldError("cancelled", "the client is gone", { cause });
}

/** The text as far as it fits, in whole characters. */
function shorten(text: string): string {
  if (Buffer.byteLength(text) <= maxReasonBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxReasonBytes));
  return text.slice(0, read);
}
