import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@skald/model";
import { type Logger, repeat } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import type { RecordedSample } from "../evaluate/series-ends.js";
import {
  type ClientConfigs,
  type RemoteWriteMetrics,
  RemoteWriter,
  readClients,
  remoteWriteMetrics,
} from "./remote-writer.js";
import { SampleLog } from "./sample-log.js";

interface RemoteWriteOptions {
  readonly directory: string;
  readonly clients: ClientConfigs;
  readonly addsTenantHeader: boolean;
  readonly refreshMs: number;
  readonly truncateMs: number;
  readonly minAgeMs: number;
  readonly maxAgeMs: number;
  /** Logs of tenants without rules are deleted after `minAgeMs`. A check runs every `periodMs`; 0: never. */
  readonly cleaner: { readonly minAgeMs: number; readonly periodMs: number };
  /** Most bytes on disk of one tenant's log. */
  readonly maxLogBytes: number;
}

/** The limits of a tenant on remote write. */
export interface TenantRemoteWrite {
  readonly ruler_remote_write_disabled: boolean;
  readonly ruler_remote_write_config: ClientConfigs;
}

interface RemoteWriteDeps {
  readonly options: RemoteWriteOptions;
  readonly limitsOf: (tenant: string) => TenantRemoteWrite;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Whether a tenant has rules. */
  readonly isUsed: (tenant: string) => boolean;
}

interface TenantPart {
  readonly tenant: string;
  readonly directory: string;
  readonly log: SampleLog;
  /** By id. */
  readonly writers: Map<string, RemoteWriter>;
  /** The settings that the writers were made from. */
  made: string;
}

const tenantFile = "tenant";

/** Writes samples of recording rules and the history of alerts to a log for each tenant, and sends them from there. */
export class RemoteWrite {
  readonly #deps: RemoteWriteDeps;
  readonly #metrics: RemoteWriteMetrics;
  readonly #parts = new Map<string, Promise<TenantPart>>();
  readonly #abort = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(deps: RemoteWriteDeps) {
    this.#deps = deps;
    this.#metrics = remoteWriteMetrics(deps.metrics);
  }

  /** Continues with the logs of earlier runs. Throws invalid_argument for a bad client configuration. */
  async start(): Promise<void> {
    const { options } = this.#deps;
    readClients(options.clients, {});
    await mkdir(options.directory, { recursive: true });
    for (const name of await readdir(options.directory)) {
      const path = join(options.directory, name, tenantFile);
      const tenant = await readFile(path, "utf8").catch(() => "");
      if (tenant === "" || directoryOf(tenant) !== name) continue;
      await this.#partOf(tenant).catch((error: unknown) => this.#tellFailure(tenant, error));
    }
    this.#loops = Promise.all([
      this.#every(options.refreshMs, (part) => this.#refresh(part)),
      this.#every(options.truncateMs, (part) => this.#truncate(part)),
      this.#every(options.cleaner.periodMs, (part) => this.#clean(part)),
    ]);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#loops;
    for (const part of await Promise.all(this.#parts.values())) {
      await Promise.all([...part.writers.values()].map((writer) => writer.stop()));
      await part.log.close();
    }
  }

  /** Opens the log of a tenant with rules. */
  async prepare(tenant: string): Promise<void> {
    await this.#partOf(tenant);
  }

  /** Resolves when the samples of one time are in the log. Does nothing for a tenant that must not send. */
  async append(tenant: string, timeMs: number, samples: readonly RecordedSample[]): Promise<void> {
    if (this.#deps.limitsOf(tenant).ruler_remote_write_disabled || samples.length === 0) return;
    const part = await this.#partOf(tenant);
    const dropped = await part.log.append(samples.map((sample) => ({ ...sample, timeMs })));
    this.#metrics.appended.inc({ tenant }, samples.length);
    this.#metrics.newest.set({ tenant }, timeMs / 1000);
    this.#tellSize(part, dropped);
    for (const writer of part.writers.values()) writer.notify();
  }

  #partOf(tenant: string): Promise<TenantPart> {
    let part = this.#parts.get(tenant);
    if (part === undefined) {
      part = this.#open(tenant);
      this.#parts.set(tenant, part);
      // The next append tries again.
      part.catch(() => this.#parts.delete(tenant));
    }
    return part;
  }

  async #open(tenant: string): Promise<TenantPart> {
    const { clock, options } = this.#deps;
    const directory = join(options.directory, directoryOf(tenant));
    const log = new SampleLog(directory, {
      maxBytes: options.maxLogBytes,
      nowMs: () => clock.nowMs(),
    });
    await log.open();
    await writeFile(join(directory, tenantFile), tenant);
    const part: TenantPart = { tenant, directory, log, writers: new Map(), made: "" };
    await this.#refresh(part);
    this.#metrics.ready.set({ tenant }, 1);
    this.#tellSize(part, 0);
    return part;
  }

  /** Replaces the writers when the limits have changed. */
  async #refresh(part: TenantPart): Promise<void> {
    const { limitsOf, log: logger, metrics: _, options } = this.#deps;
    const { tenant, log, writers } = part;
    const { ruler_remote_write_config: own, ruler_remote_write_disabled: isOff } = limitsOf(tenant);
    const made = JSON.stringify([own, isOff]);
    if (made === part.made) return;
    const clients = isOff ? [] : readClients(options.clients, own);
    part.made = made;
    await Promise.all([...writers.values()].map((writer) => writer.stop()));
    writers.clear();
    const headers: Record<string, string> = options.addsTenantHeader
      ? { "x-scope-orgid": tenant }
      : {};
    for (const client of clients) {
      const deps = { tenant, client, log, headers, metrics: this.#metrics };
      writers.set(client.id, new RemoteWriter({ ...deps, logger: logger.child({ tenant }) }));
    }
  }

  async #truncate(part: TenantPart): Promise<void> {
    const positions = [...part.writers.values()].map(({ position }) => position);
    if (positions.length === 0) positions.push({ file: Number.MAX_SAFE_INTEGER, offset: 0 });
    const unread = await part.log.truncate(positions, this.#deps.options);
    this.#tellSize(part, unread);
  }

  /** Deletes the log of a tenant without rules. */
  async #clean({ tenant, directory, log, writers }: TenantPart): Promise<void> {
    const { clock, isUsed, options } = this.#deps;
    if (isUsed(tenant) || clock.nowMs() - log.lastWriteMs < options.cleaner.minAgeMs) return;
    this.#parts.delete(tenant);
    await Promise.all([...writers.values()].map((writer) => writer.stop()));
    await log.close();
    await rm(directory, { recursive: true, force: true });
    this.#metrics.ready.remove({ tenant });
    this.#metrics.diskSize.remove({ tenant });
  }

  #tellSize({ tenant, log }: TenantPart, dropped: number): void {
    this.#metrics.diskSize.set({ tenant }, log.sizeBytes);
    if (dropped === 0) return;
    this.#metrics.overflow.inc({ tenant }, dropped);
    this.#deps.log.error("samples were dropped unsent: their log is full or too old", {
      tenant,
      bytes: dropped,
    });
  }

  #tellFailure(tenant: string | undefined, error: unknown): void {
    this.#deps.log.error("remote write does not work as it should", { tenant, error });
  }

  async #every(pauseMs: number, work: (part: TenantPart) => Promise<void>): Promise<void> {
    if (pauseMs === 0) return;
    const all = async () => {
      for (const part of await Promise.all(this.#parts.values()))
        await work(part).catch((error: unknown) => this.#tellFailure(part.tenant, error));
    };
    const onError = (error: unknown) => this.#tellFailure(undefined, error);
    await repeat(all, { pauseMs, signal: this.#abort.signal, onError });
  }
}

const maxDirectoryBytes = 200;

function directoryOf(tenant: string): string {
  const name = encodeURIComponent(tenant);
  if (name.length <= maxDirectoryBytes) return name;
  return createHash("sha256").update(tenant).digest("hex");
}
