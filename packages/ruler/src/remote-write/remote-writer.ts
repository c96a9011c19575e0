import type { Labels } from "@skald/model";
import { type Logger, retry, sleep } from "@skald/runtime";
import { post } from "../send/post.js";
import type { RemoteClient } from "./clients.js";
import { encodeWriteRequest, type TimedSample } from "./encode.js";
import type { RemoteWriteMetrics } from "./metrics.js";
import type { LogPosition, SampleLog } from "./sample-log.js";
import { compressSnappy } from "./snappy.js";

export interface RemoteWriterDeps {
  readonly tenant: string;
  readonly client: RemoteClient;
  readonly log: SampleLog;
  /** Headers of each request beside the client's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly logger: Logger;
  readonly metrics: RemoteWriteMetrics;
}

/** What was answered and is not worth another try. */
class Refused extends Error {}

/** Sends what a log holds to one server, in order, until it was taken or refused for good. */
export class RemoteWriter {
  readonly #deps: RemoteWriterDeps;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  position: LogPosition = { file: 0, offset: 0 };
  /** Wakes the writer up. */
  #wake: (() => void) | undefined;
  #hasNews = true;

  constructor(deps: RemoteWriterDeps) {
    this.#deps = deps;
    this.#running = this.#run();
  }

  get client(): RemoteClient {
    return this.#deps.client;
  }

  /** Tells that the log has more. */
  notify(): void {
    this.#hasNews = true;
    this.#wake?.();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { client, log, logger } = this.#deps;
    const { signal } = this.#abort;
    this.position = await log.loadPosition(client.id);
    while (!signal.aborted) {
      if (!this.#hasNews) await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
      if (signal.aborted) return;
      this.#hasNews = false;
      try {
        // What the next rules record goes with it.
        await sleep(client.batchDeadlineMs, signal);
        await this.#sendAll();
      } catch (error) {
        if (signal.aborted) return;
        logger.error("the log of samples cannot be read", { error });
        this.#hasNews = true;
        await sleep(client.maxBackoffMs, signal).catch(() => undefined);
      }
    }
  }

  async #sendAll(): Promise<void> {
    const { client, log } = this.#deps;
    while (true) {
      const { samples, next } = await log.read(this.position);
      const wanted = this.#relabel(samples);
      for (let at = 0; at < wanted.length; at += client.maxSamplesPerSend)
        await this.#send(wanted.slice(at, at + client.maxSamplesPerSend));
      const hasMoved = next.file !== this.position.file || next.offset !== this.position.offset;
      this.position = next;
      if (hasMoved) await log.savePosition(client.id, next);
      if (samples.length === 0) return;
    }
  }

  #relabel(samples: readonly TimedSample[]): TimedSample[] {
    const { client, metrics } = this.#deps;
    const wanted = samples.flatMap((sample) => {
      const labels: Labels | undefined = client.relabel(sample.labels);
      return labels === undefined || labels.names.length === 0 ? [] : [{ ...sample, labels }];
    });
    metrics.dropped.inc(this.#labels, samples.length - wanted.length);
    return wanted;
  }

  async #send(samples: readonly TimedSample[]): Promise<void> {
    const { client, logger, metrics } = this.#deps;
    const { signal } = this.#abort;
    const body = compressSnappy(encodeWriteRequest(samples));
    const start = performance.now();
    try {
      await retry(() => this.#post(body), {
        ...{ maxRetries: Number.POSITIVE_INFINITY, signal },
        ...{ minBackoffMs: client.minBackoffMs, maxBackoffMs: client.maxBackoffMs },
        isRetriable: (error) => !(error instanceof Refused),
        onRetry: (error, attempt) => {
          metrics.retried.inc(this.#labels, samples.length);
          const isWorthALine = attempt === 0 || attempt % 16 === 0;
          if (isWorthALine)
            logger.warn("samples cannot be sent; they are tried again", {
              client: client.id,
              error,
            });
        },
      });
      metrics.sent.inc(this.#labels, samples.length);
      metrics.bytes.inc(this.#labels, body.length);
      metrics.highest.set(this.#labels, Math.max(...samples.map(({ timeMs }) => timeMs)) / 1000);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      metrics.failed.inc(this.#labels, samples.length);
      logger.error("samples were refused and are dropped", {
        client: client.id,
        samples: samples.length,
        error,
      });
    }
    metrics.seconds.observe(this.#labels, (performance.now() - start) / 1000);
  }

  async #post(body: Uint8Array): Promise<void> {
    const { client, headers } = this.#deps;
    const { connection, url, retriesOn429 } = client;
    const all = {
      ...headers,
      "content-encoding": "snappy",
      "content-type": "application/x-protobuf",
      "x-prometheus-remote-write-version": "0.1.0",
      ...connection.headers,
    };
    const { status, text } = await post(
      url,
      body,
      { ...connection, headers: all },
      this.#abort.signal,
    );
    if (status >= 200 && status < 300) return;
    const message = `answered ${status}: ${text.slice(0, 500)}`;
    const isTemporary = status >= 500 || (status === 429 && retriesOn429);
    throw isTemporary ? new Error(message) : new Refused(message);
  }

  get #labels() {
    return { tenant: this.#deps.tenant, remote_name: this.#deps.client.id };
  }
}
