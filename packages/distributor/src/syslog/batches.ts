import type { RawPush } from "@skald/kernels";
import { type SyslogMapping, SyslogRows } from "@skald/push";

/** A batch is sent when it has this much, or when its first message has waited for this long. */
const maxBatchBytes = 1024 * 1024;
const maxWaitMs = 200;
/** Bounds of what a batch may cost beside its bytes; a push beyond its own bounds would be refused as a whole. */
const maxPairs = 16 * 1024;
const maxStreams = 4096;
/** Batches that are on their way at a time. */
const maxSending = 4;

/** Numbers since they were last told. */
export interface SyslogCounts {
  /** Messages that were taken, and their bytes. */
  messages: number;
  bytes: number;
  /** Messages whose header could not be read. */
  malformed: number;
  /** Messages that were longer than allowed, or whose connection ended within them. */
  cut: number;
  /** Datagrams for which there was no room. */
  dropped: number;
  /** Connections that were closed because of what they sent, of their number, or of their certificate. */
  refused: number;
  /** Connections that are open. */
  connections: number;
}

/**
 * Collects the messages of a listener into batches and sends them. A few batches may be on their way; while they are, and the next
 * one is full, there is no room, and who brings messages must wait or drop them.
 */
export class SyslogBatches {
  readonly counts: SyslogCounts = {
    ...{ messages: 0, bytes: 0, malformed: 0, cut: 0, dropped: 0, refused: 0, connections: 0 },
  };
  readonly #rows: SyslogRows;
  readonly #send: (push: RawPush) => Promise<void>;
  readonly #onRoom: () => void;
  #sending = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Whether the batch shall be sent as soon as another has arrived. */
  #isDue = false;
  #onEmpty: (() => void) | undefined;

  /** `send` resolves when the batch was stored or given up. */
  constructor(
    mapping: SyslogMapping,
    send: (push: RawPush) => Promise<void>,
    onRoom: () => void = () => undefined,
  ) {
    this.#rows = new SyslogRows(mapping);
    this.#send = send;
    this.#onRoom = onRoom;
  }

  get hasRoom(): boolean {
    return this.#sending < maxSending || !this.#isFull;
  }

  /** Adds a message, whether there is room or not: the pieces of a connection that have arrived are taken to their end. */
  add(bytes: Uint8Array, start: number, end: number, peer: Uint8Array): void {
    const { counts } = this;
    counts.messages++;
    counts.bytes += end - start;
    this.#rows.add(bytes, start, end, peer, Date.now());
    if (this.#isFull) this.#sendNow();
    else if (this.#rows.rowCount === 1) {
      this.#timer = setTimeout(() => this.#sendNow(), maxWaitMs);
    }
  }

  /** Sends what there is; resolves when nothing is on its way any more. */
  async flush(): Promise<void> {
    this.#sendNow();
    if (this.#sending === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  get #isFull(): boolean {
    const rows = this.#rows;
    return (
      rows.bytes >= maxBatchBytes || rows.pairCount >= maxPairs || rows.streamCount >= maxStreams
    );
  }

  #sendNow(): void {
    clearTimeout(this.#timer);
    if (this.#rows.rowCount === 0) return;
    this.#isDue = this.#sending >= maxSending;
    if (this.#isDue) return;
    this.counts.malformed += this.#rows.malformed;
    const push = this.#rows.take();
    this.#sending++;
    void this.#send(push)
      .catch(() => undefined)
      .then(() => this.#arrived());
  }

  #arrived(): void {
    this.#sending--;
    if (this.#isDue) this.#sendNow();
    if (this.#sending === 0) this.#onEmpty?.();
    this.#onRoom();
  }
}
