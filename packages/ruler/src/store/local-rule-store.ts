import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument, notFound, SkaldError, tooLarge, unavailable } from "@skald/model";
import { checkGroups, maxGroupBytes } from "../rules/check-group.js";
import { plainGroup, readGroups, writeYaml } from "../rules/group-yaml.js";
import type { PlacedGroup, RuleGroup } from "../rules/rule-group.js";
import { comparePlaced } from "./object-rule-store.js";
import {
  type CallOptions,
  type GroupName,
  noSuchGroup,
  noSuchNamespace,
  type RuleStore,
} from "./rule-store.js";

/** What of a file of groups is read at most, bytes. */
const maxFileBytes = 64 * maxGroupBytes;
const maxNameBytes = 200;

/**
 * Rules in files that people write, `<directory>/<tenant>/<file>`, each `groups: [...]`: a file is a namespace and bears its
 * name. What is changed over the API is written to the files again.
 */
export class LocalRuleStore implements RuleStore {
  readonly #directory: string;
  readonly #onCorrupt: (path: string, error: unknown) => void;
  /** Changes of files follow each other. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor(directory: string, onCorrupt: (path: string, error: unknown) => void) {
    this.#directory = directory;
    this.#onCorrupt = onCorrupt;
  }

  async listAll(options: CallOptions): Promise<readonly PlacedGroup[]> {
    const found: PlacedGroup[] = [];
    for (const tenant of await namesIn(this.#directory))
      found.push(...(await this.list(tenant, options)));
    return found;
  }

  async list(
    tenant: string,
    { signal }: CallOptions,
    namespace?: string,
  ): Promise<readonly PlacedGroup[]> {
    const files =
      namespace === undefined ? await namesIn(join(this.#directory, tenant)) : [fileOf(namespace)];
    const found: PlacedGroup[] = [];
    for (const file of files) {
      signal.throwIfAborted();
      const path = join(this.#directory, tenant, file);
      try {
        for (const group of await this.#read(path))
          found.push({ tenant, namespace: namespaceOf(file), group });
      } catch (error) {
        if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
        this.#onCorrupt(path, error);
      }
    }
    return found.sort(comparePlaced);
  }

  async get({ tenant, namespace, name }: GroupName): Promise<RuleGroup> {
    const groups = await this.#read(this.#pathOf(tenant, namespace));
    const group = groups.find((one) => one.name === name);
    if (group === undefined) throw notFound(noSuchGroup);
    return group;
  }

  set({ tenant, namespace, group }: PlacedGroup): Promise<void> {
    return this.#change(tenant, namespace, (groups) => {
      const at = groups.findIndex(({ name }) => name === group.name);
      return at < 0 ? [...groups, group] : groups.with(at, group);
    });
  }

  delete({ tenant, namespace, name }: GroupName): Promise<void> {
    return this.#change(tenant, namespace, (groups) => groups.filter((one) => one.name !== name));
  }

  deleteNamespace(tenant: string, namespace: string): Promise<void> {
    return this.#change(tenant, namespace, (groups) => {
      if (groups.length === 0) throw notFound(noSuchNamespace);
      return [];
    });
  }

  #change(
    tenant: string,
    namespace: string,
    edit: (groups: readonly RuleGroup[]) => readonly RuleGroup[],
  ): Promise<void> {
    const change = async () => {
      const path = this.#pathOf(tenant, namespace);
      const before = await this.#read(path);
      const after = edit(before);
      if (after.length === 0) return rm(path, { force: true });
      const text = writeYaml({ groups: after.map(plainGroup) });
      if (text.length > maxFileBytes)
        throw tooLarge(`the groups of a namespace are larger than ${maxFileBytes} bytes`);
      await mkdir(join(this.#directory, tenant), { recursive: true });
      const temporary = join(this.#directory, tenant, `.${process.pid}.tmp`);
      await writeFile(temporary, text, { flush: true });
      await rename(temporary, path);
    };
    const done = this.#changes.then(change).catch(told("write"));
    this.#changes = done.catch(() => undefined);
    return done;
  }

  /** The groups of a file; none when there is no such file. */
  async #read(path: string): Promise<readonly RuleGroup[]> {
    try {
      const { size } = await stat(path);
      if (size > maxFileBytes) throw invalidArgument(`larger than ${maxFileBytes} bytes`);
      const groups = readGroups(await readFile(path, "utf8"));
      const [problem] = checkGroups(groups);
      if (problem !== undefined) throw invalidArgument(problem);
      return groups;
    } catch (error) {
      if (isAbsent(error)) return [];
      return told("read")(error);
    }
  }

  #pathOf(tenant: string, namespace: string): string {
    return join(this.#directory, tenant, fileOf(namespace));
  }
}

function told(doing: string) {
  return (error: unknown): never => {
    if (error instanceof SkaldError) throw error;
    throw unavailable(`cannot ${doing} rules`, { cause: error });
  };
}

function isAbsent(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Names in a directory but hidden ones, which mounts of configuration use for themselves. */
async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith(".")).sort();
  } catch (error) {
    if (isAbsent(error)) return [];
    return told("list")(error);
  }
}

function fileOf(namespace: string): string {
  const file = encodeURIComponent(namespace).replace(/^\./, "%2E").replaceAll("%20", " ");
  if (file === "" || Buffer.byteLength(file) > maxNameBytes)
    throw invalidArgument(`namespace is empty or longer than ${maxNameBytes} bytes`);
  return file;
}

function namespaceOf(file: string): string {
  try {
    const namespace = decodeURIComponent(file);
    return fileOf(namespace) === file ? namespace : file;
  } catch {
    return file;
  }
}
