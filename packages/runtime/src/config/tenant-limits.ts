import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { invalidArgument, tooLarge, unavailable } from "@skald/model";
import { isMap, type YAMLMap } from "yaml";
import type { Logger } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { Service } from "../service.js";
import { deadline, repeat, type Sleep } from "../waiting.js";
import * as field from "./field.js";
import { type Limits, limitsConfig } from "./limits.js";
import { leavesOf, readSchema, type SectionNode } from "./settings.js";
import { IgnoredKeys, type IgnoredRow, ignoredWarnings } from "./undeclared.js";
import { YamlReader } from "./yaml-reader.js";

/** `runtime_config`: overrides that can change while the process runs. */
export const runtimeConfig = field.section("Overrides that can change while the process runs.", {
  file: field.list([], "files or http(s) addresses; later ones win", "runtime-config.file"),
  period: field.duration("10s", "pause between looks at them", "runtime-config.reload-period", {
    min: 1,
  }),
});

/** Where limits come from. */
export interface TenantLimitsOptions {
  /** `limits_config`: the limits of tenants without overrides. */
  readonly limits: Limits;
  /** Files or http(s) addresses with overrides; later ones win key by key. */
  readonly files: readonly string[];
  /** Limits that are accepted and have no effect. */
  readonly ignored: readonly IgnoredRow[];
  /** Pause between two looks at the files. */
  readonly periodMs: number;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly read?: (location: string, signal?: AbortSignal) => Promise<string>;
  readonly sleep?: Sleep;
}

/**
 * The limits of each tenant: `limits_config` overlaid by the tenant's entry in the overrides files, which are read again
 * every period. A bad file is fatal at the start; later it is refused as a whole, and the limits stay as they were.
 */
export class TenantLimits {
  /** Reads the files at its start and watches them while it runs. */
  readonly service: Service;
  readonly #options: TenantLimitsOptions;
  #overrides: ReadonlyMap<string, Limits> = new Map();
  #texts: readonly string[] = [];

  constructor(options: TenantLimitsOptions) {
    this.#options = options;
    const { files, log, metrics, periodMs, sleep } = options;
    const healthy = metrics.gauge(
      "runtime_config_last_reload_successful",
      "Whether the last look at the overrides files found them good.",
    );
    if (files.length === 0) healthy.set(1);
    const load = async (signal?: AbortSignal): Promise<void> => {
      try {
        await this.load(signal);
        healthy.set(1);
      } catch (error) {
        healthy.set(0);
        throw error;
      }
    };
    const onError = (error: unknown): void =>
      log.error("kept the old limits, because the overrides are bad", { error });
    const watch = (signal: AbortSignal): Promise<void> =>
      repeat(() => load(signal), { pauseMs: periodMs, signal, onError, ...(sleep && { sleep }) });
    const name = "runtime-config";
    this.service = new Service(files.length === 0 ? { name } : { name, start: load, run: watch });
  }

  /** The same object until something changed for the tenant. */
  of(tenant: string): Limits {
    return this.#overrides.get(tenant) ?? this.#options.limits;
  }

  /** Tenants with an entry of their own. */
  tenants(): string[] {
    return [...this.#overrides.keys()];
  }

  /** Reads the files and, when they are good, replaces the limits; throws what is wrong with them. */
  async load(signal?: AbortSignal): Promise<void> {
    const read = this.#options.read ?? readLocation;
    const texts = await Promise.all(this.#options.files.map((file) => read(file, signal)));
    if (isDeepStrictEqual(texts, this.#texts)) return;
    const given = readOverrides(texts, this.#options);
    const next = new Map<string, Limits>();
    for (const [tenant, values] of given) {
      const limits = overlay(this.#options.limits, values);
      const before = this.#overrides.get(tenant);
      next.set(tenant, isDeepStrictEqual(before, limits) && before ? before : limits);
    }
    this.#overrides = next;
    this.#texts = texts;
  }
}

const limitsNode = readSchema(limitsConfig, "limits_config");
/** Start of the keys that name the overrides files; they have no effect in overrides. */
const overridesKeys = "limits_config.per_tenant_override_";
const limitPaths = [...leavesOf(limitsNode)].map((leaf) => leaf.path);

/** Values by path for each tenant. */
type Given = Map<string, Map<string, unknown>>;

function readOverrides(texts: readonly string[], options: TenantLimitsOptions): Given {
  const given: Given = new Map();
  const problems: string[] = [];
  const ignored = new IgnoredKeys(options.ignored);
  for (const [index, text] of texts.entries()) {
    const reader = new YamlReader(text, {
      file: options.files[index] as string,
      unknownKeys: "warning",
      ignored,
      knownPaths: limitPaths,
    });
    if (reader.root !== undefined) readRoot(reader, reader.root, given);
    const warnings = [...reader.warnings, ...ignoredWarnings(reader.ignored)];
    for (const warning of warnings) options.log.warn("overrides", { warning });
    problems.push(...reader.problems);
  }
  if (problems.length > 0) throw invalidArgument(problems.join("; "));
  return given;
}

/** Adds what a file says to `given`. */
function readRoot(reader: YamlReader, root: YAMLMap, given: Given): void {
  for (const { key, keyNode, value } of reader.entries(root)) {
    const place = reader.place(keyNode);
    if (key === "configs" || key === "multi_kv_config")
      reader.warnings.push(`${place}: ${key}: not used by this version`);
    else if (key !== "overrides") reader.problems.push(`${place}: unknown key "${key}"`);
    else if (isMap(value)) readTenants(reader, value, given);
    else if (value !== null) reader.problems.push(`${place}: overrides must be a map of tenants`);
  }
}

function readTenants(reader: YamlReader, overrides: YAMLMap, given: Given): void {
  for (const { key: tenant, keyNode, value } of reader.entries(overrides)) {
    const values = given.get(tenant) ?? new Map<string, unknown>();
    given.set(tenant, values);
    if (isMap(value))
      reader.readSection(value, limitsNode, (leaf, read, origin) => {
        if (leaf.path.startsWith(overridesKeys))
          reader.warnings.push(`${origin}: ${leaf.path}: has an effect in limits_config only`);
        values.set(leaf.path, read);
      });
    else if (value !== null)
      reader.problems.push(`${reader.place(keyNode)}: ${tenant} must be a map of limits`);
  }
}

/** The limits of a tenant: the common ones, with the tenant's own on top. */
function overlay(limits: Limits, values: ReadonlyMap<string, unknown>): Limits {
  const merged = (section: SectionNode, base: Readonly<Record<string, unknown>>): unknown =>
    Object.fromEntries(
      [...section.children].map(([key, child]) => {
        if (child.kind === "section")
          return [key, merged(child, base[key] as Record<string, unknown>)];
        return [key, values.has(child.path) ? values.get(child.path) : base[key]];
      }),
    );
  return merged(limitsNode, limits) as Limits;
}

const maxBytes = 16 * 2 ** 20;
const timeoutMs = 10_000;

/** The text of a file, or of what an http(s) address answers within 10 seconds; 16 MiB at most. */
async function readLocation(location: string, signal?: AbortSignal): Promise<string> {
  if (/^https?:\/\//.test(location)) return fetchText(location, signal);
  const bytes = await readFile(location, signal === undefined ? {} : { signal });
  if (bytes.length > maxBytes) throw tooLarge(`${location} is larger than ${maxBytes} bytes`);
  return bytes.toString("utf8");
}

async function fetchText(address: string, signal: AbortSignal | undefined): Promise<string> {
  const message = `${address} did not answer within ${timeoutMs} ms`;
  const limit = deadline({ timeoutMs, message, ...(signal && { signal }) });
  try {
    const response = await fetch(address, { signal: limit.signal });
    if (!response.ok) throw unavailable(`${address} answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const chunk of response.body ?? []) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw tooLarge(`${address} is larger than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  } finally {
    limit.clear();
  }
}
