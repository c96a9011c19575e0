import { unavailable } from "@skald/model";
import { sleep } from "@skald/runtime";
import { Sealer, type SealerContext } from "./sealer.js";
import { Uploader, type UploaderContext } from "./uploader.js";

/** A flush gathers segments for this long before it uploads them. */
const uploadPauseMs = 50;

/** Moves rows out of memory: heads become segments on the local disk, and segments go to the object store. */
export class Flusher {
  readonly sealer: Sealer;
  readonly uploader: Uploader;
  readonly #context: SealerContext;

  constructor(context: SealerContext & UploaderContext) {
    this.#context = context;
    this.sealer = new Sealer(context);
    this.uploader = new Uploader(context);
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. Rejects with `unavailable`. */
  async flush(tenant?: string): Promise<void> {
    let isSealed = false;
    const sealing = this.#context.heads.seal(tenant).finally(() => {
      isSealed = true;
    });
    sealing.catch(() => undefined);
    // Sealed heads are uploaded while others are being sealed.
    for (;;) {
      const done = new AbortController();
      const pause = (this.#context.sleep ?? sleep)(uploadPauseMs, done.signal);
      pause.catch(() => undefined);
      await Promise.race([sealing, pause]).finally(() => done.abort());
      if (isSealed) break;
      await this.uploader.flush(tenant, { early: true });
    }
    await sealing;
    await this.uploader.flush(tenant);
  }

  /** Flushes everything before the end of the process, within a time limit; never rejects. */
  async flushAtEnd(): Promise<void> {
    const done = new AbortController();
    const { maxStopFlushMs } = this.#context.options.bounds;
    const late = (this.#context.sleep ?? sleep)(maxStopFlushMs, done.signal).then(() => {
      throw unavailable(`it has taken longer than ${maxStopFlushMs / 1000}s`);
    });
    const flush = this.flush();
    // Both continue after the race, and nobody awaits them any more.
    for (const one of [flush, late]) one.catch(() => undefined);
    try {
      await Promise.race([flush, late]);
    } catch (error) {
      const text = "flushing at the end failed; the rest stays on the local disk";
      this.#context.log.error(text, { error });
    } finally {
      done.abort();
    }
  }

  /** Stops sealing and uploading. Unsealed rows stay in the log, unuploaded segments on the local disk. */
  async close(): Promise<void> {
    await this.sealer.close();
    await this.uploader.close();
  }
}
