import { errorCodeOf, notFound, tooLarge } from "@skald/model";
import type { ObjectInfo, ObjectStore } from "@skald/storage";
import { maxGroupBytes } from "../rules/check-group.js";
import { plainGroup } from "../rules/group-yaml.js";
import type { CheckedGroup, PlacedGroup, RuleGroup } from "../rules/rule-group.js";
import type { RuleTexts } from "../rules/rule-texts.js";
import {
  groupKey,
  namespacePrefix,
  parseGroupKey,
  rulesPrefix,
  tenantRulesPrefix,
} from "./rule-keys.js";
import {
  type CallOptions,
  type GroupName,
  noSuchGroup,
  noSuchNamespace,
  type RuleStore,
} from "./rule-store.js";

/** A listing tells times of this precision, ms: what was changed so lately may be changed again unseen. */
const settleMs = 2000;
/** Objects that are read at a time. */
const maxReads = 16;

interface Known {
  readonly info: ObjectInfo;
  readonly readMs: number;
  readonly placed: PlacedGroup;
}

export interface ObjectRuleStoreDeps {
  readonly store: ObjectStore;
  readonly texts: RuleTexts;
  readonly nowMs: () => number;
  /** Told of each object that is no group. */
  readonly onCorrupt: (key: string, error: unknown) => void;
}

/** Rules in an object store, an object for each group; those that did not change are not read again. */
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

  /** Undefined for what is no group, or gone meanwhile. */
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
