import { errorCodeOf, notFound, tooLarge } from "@skald/model";
import type { ObjectInfo, ObjectStore } from "@skald/storage";
import { plainGroup } from "./group-yaml.js";
import {
  type CheckedGroup,
  maxGroupBytes,
  type PlacedGroup,
  type RuleGroup,
} from "./rule-group.js";
import type { RuleTexts } from "./rule-texts.js";

/** Keeps rules. Its methods throw `unavailable` when the storage fails. */
export interface RuleStore {
  /** Groups of all tenants. */
  listAll(options: CallOptions): Promise<readonly PlacedGroup[]>;
  /** All groups of a tenant, or those of one namespace, by namespace and name. */
  list(tenant: string, options: CallOptions, namespace?: string): Promise<readonly PlacedGroup[]>;
  /** Throws not_found. */
  get(name: GroupName, options: CallOptions): Promise<RuleGroup>;
  /** Creates or replaces. */
  set(placed: PlacedGroup, options: CallOptions): Promise<void>;
  /** Deletes a group if it exists. */
  delete(name: GroupName, options: CallOptions): Promise<void>;
  /** Throws not_found when the namespace has no groups. */
  deleteNamespace(tenant: string, namespace: string, options: CallOptions): Promise<void>;
}

export interface GroupName {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

export interface CallOptions {
  readonly signal: AbortSignal;
}

/** Texts of the answers for missing groups. */
export const noSuchGroup = "group does not exist";
export const noSuchNamespace = "group namespace does not exist";

/** Precision of the times in a listing, ms. An object may change again unseen for this long. */
const settleMs = 2000;
/** Objects to read at a time. */
const maxReads = 16;

interface Known {
  readonly info: ObjectInfo;
  readonly readMs: number;
  readonly placed: PlacedGroup;
}

interface ObjectRuleStoreDeps {
  readonly store: ObjectStore;
  readonly texts: RuleTexts;
  readonly nowMs: () => number;
  /** Called for each object that is not a group. */
  readonly onCorrupt: (key: string, error: unknown) => void;
}

/** Rules in an object store, with one object per group. Unchanged groups are not read again. */
export class ObjectRuleStore implements RuleStore {
  readonly #deps: ObjectRuleStoreDeps;
  readonly #known = new Map<string, Known>();

  constructor(deps: ObjectRuleStoreDeps) {
    this.#deps = deps;
  }

  async listAll(options: CallOptions): Promise<readonly PlacedGroup[]> {
    const found = await this.#list(rulesPrefix, options);
    const keys = new Set(
      found.map(({ tenant, namespace, group: { name } }) => groupKey({ tenant, namespace, name })),
    );
    for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key);
    return found;
  }

  list(tenant: string, options: CallOptions, namespace?: string): Promise<readonly PlacedGroup[]> {
    const prefix =
      namespace === undefined ? tenantRulesPrefix(tenant) : namespacePrefix(tenant, namespace);
    return this.#list(prefix, options);
  }

  async get(name: GroupName, { signal }: CallOptions): Promise<RuleGroup> {
    try {
      return (await this.#fetch(groupKey(name), name.tenant, signal)).group;
    } catch (error) {
      throw errorCodeOf(error) === "not_found" ? notFound(noSuchGroup) : error;
    }
  }

  async set({ tenant, namespace, group }: PlacedGroup, { signal }: CallOptions): Promise<void> {
    const body = Buffer.from(await this.#deps.texts.write(plainGroup(group), { tenant, signal }));
    if (body.length > maxGroupBytes)
      throw tooLarge(`rule group is larger than ${maxGroupBytes} bytes`);
    const key = groupKey({ tenant, namespace, name: group.name });
    this.#known.delete(key);
    await this.#deps.store.put(key, body, { signal });
    this.#known.delete(key);
  }

  async delete(name: GroupName, { signal }: CallOptions): Promise<void> {
    this.#known.delete(groupKey(name));
    await this.#deps.store.delete(groupKey(name), { signal });
  }

  async deleteNamespace(tenant: string, namespace: string, { signal }: CallOptions): Promise<void> {
    const keys: string[] = [];
    const prefix = namespacePrefix(tenant, namespace);
    for await (const { key } of this.#deps.store.list(prefix, { signal })) {
      if (parseGroupKey(key)?.namespace === namespace) keys.push(key);
    }
    if (keys.length === 0) throw notFound(noSuchNamespace);
    for (const key of keys) await this.#deps.store.delete(key, { signal });
  }

  async #list(prefix: string, { signal }: CallOptions): Promise<readonly PlacedGroup[]> {
    const infos: ObjectInfo[] = [];
    for await (const info of this.#deps.store.list(prefix, { signal })) infos.push(info);
    const found: PlacedGroup[] = [];
    for (let at = 0; at < infos.length; at += maxReads) {
      const some = infos.slice(at, at + maxReads).map((info) => this.#read(info, signal));
      for (const placed of await Promise.all(some)) if (placed !== undefined) found.push(placed);
    }
    return found.sort(comparePlaced);
  }

  /** Reads a group; undefined for an object that is not a group, or is gone. */
  async #read(info: ObjectInfo, signal: AbortSignal): Promise<PlacedGroup | undefined> {
    const { key } = info;
    const name = parseGroupKey(key);
    if (name === undefined) return undefined;
    const known = this.#known.get(key);
    if (known !== undefined && isSame(known, info)) return known.placed;
    try {
      const readMs = this.#deps.nowMs();
      const { group, problems } = await this.#fetch(key, name.tenant, signal);
      const placed = {
        tenant: name.tenant,
        namespace: name.namespace,
        group: { ...group, name: name.name },
        problem: problems[0],
      };
      this.#known.set(key, { info, readMs, placed });
      return placed;
    } catch (error) {
      const code = errorCodeOf(error);
      if (code === "invalid_argument") this.#deps.onCorrupt(key, error);
      else if (code !== "not_found") throw error;
      return undefined;
    }
  }

  async #fetch(key: string, tenant: string, signal: AbortSignal): Promise<CheckedGroup> {
    const { store, texts } = this.#deps;
    return texts.readGroup(await store.get(key, { signal }), { tenant, signal });
  }
}

export function comparePlaced(a: PlacedGroup, b: PlacedGroup): number {
  return (
    compare(a.tenant, b.tenant) ||
    compare(a.namespace, b.namespace) ||
    compare(a.group.name, b.group.name)
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function isSame({ info, readMs }: Known, now: ObjectInfo): boolean {
  if (info.modifiedMs !== now.modifiedMs || info.sizeBytes !== now.sizeBytes) return false;
  return readMs - info.modifiedMs > settleMs;
}

/**
 * Keys of rule groups in an object store:
 *
 *     rules/<tenant>/<namespace>/<group>
 *
 * Namespace and group are URL-safe base64 of their UTF-8, so that any name is a key; parts of more than 200 characters
 * take several directories, each but the last with `~` at its end, because file systems take 255 bytes for one.
 */
const rulesPrefix = "rules/";

const maxPart = 200;

function tenantRulesPrefix(tenant: string): string {
  const name = /^[A-Za-z0-9!\-_.*'()]{1,200}$/.test(tenant) ? tenant : `~${cut(encode(tenant))}`;
  return `${rulesPrefix}${name}/`;
}

function namespacePrefix(tenant: string, namespace: string): string {
  return `${tenantRulesPrefix(tenant)}${cut(encode(namespace))}/`;
}

function groupKey({ tenant, namespace, name }: GroupName): string {
  return namespacePrefix(tenant, namespace) + cut(encode(name));
}

/** Parses the key of a group; undefined for any other object. */
function parseGroupKey(key: string): GroupName | undefined {
  if (!key.startsWith(rulesPrefix)) return undefined;
  const parts = key.slice(rulesPrefix.length).replaceAll("~/", "").split("/");
  const [folder = "", namespace = "", name = ""] = parts;
  const tenant = folder.startsWith("~") ? decode(folder.slice(1)) : folder;
  const found = { tenant, namespace: decode(namespace), name: decode(name) };
  return groupKey(found) === key ? found : undefined;
}

function cut(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += maxPart) parts.push(text.slice(at, at + maxPart));
  return parts.join("~/");
}

function encode(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}

function decode(text: string): string {
  return Buffer.from(text, "base64url").toString("utf8");
}
