import type { Server } from "node:tls";
import { listenerOptions, readContext, type TlsOptions } from "./tls.js";

/** How often files are read again. */
const periodMs = 10_000;

/** The certificates of a listener, which may be replaced on the disk while it runs. */
export class Certificates {
  readonly #tls: TlsOptions;
  readonly #onRead: ((error: unknown) => void) | undefined;
  /** What was read last, or why it could not be used. */
  #last: string;
  #timer: NodeJS.Timeout | undefined;
  /** What the listener is made with. */
  readonly options: ReturnType<typeof listenerOptions>;

  /** Reads them; throws an error that names what cannot be used. `onRead` is told when they changed, or why they cannot be used. */
  constructor(tls: TlsOptions, onRead?: (error: unknown) => void) {
    this.#tls = tls;
    this.#onRead = onRead;
    this.#last = JSON.stringify(readContext(tls));
    this.options = listenerOptions(tls);
  }

  /** Looks for others from time to time. */
  watch(server: Server): void {
    this.#timer = setInterval(() => this.reload(server), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Takes over others that can be used; connections that are open keep theirs. */
  reload(server: Server): void {
    let failure: unknown;
    let found: string;
    try {
      const context = readContext(this.#tls);
      found = JSON.stringify(context);
      if (found !== this.#last) server.setSecureContext(context);
    } catch (error) {
      failure = error;
      found = String(error);
    }
    if (found === this.#last) return;
    this.#last = found;
    this.#onRead?.(failure);
  }
}
