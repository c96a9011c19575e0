import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { invalidArgument, notFound, SkaldError, tooLarge, unavailable } from "@skald/model";
import { plainGroup } from "./group-yaml.js";
import { maxGroupBytes, type PlacedGroup, type RuleGroup } from "./rule-group.js";
import {
  type CallOptions,
  comparePlaced,
  type GroupName,
  noSuchGroup,
  noSuchNamespace,
  type RuleStore,
} from "./rule-store.js";
import type { RuleTexts } from "./rule-texts.js";

/** Most bytes of a file of groups. */
const maxFileBytes = 64 * maxGroupBytes;
const maxNameBytes = 200;

/** The bytes of a file, and its groups or its error. */
interface Known {
  readonly bytes: Buffer;
  readonly groups: readonly RuleGroup[];
  readonly error?: SkaldError;
}

interface LocalRuleStoreDeps {
  readonly directory: string;
  readonly texts: RuleTexts;
  /** Called for each file that cannot be read as groups. */
  readonly onCorrupt: (path: string, error: unknown) => void;
}

/**
 * Rules in files that people write, `<directory>/<tenant>/<file>`, each `groups: [...]`. The name of a file is its
 * namespace. Changes over the API are written to the files. A file is parsed again only when its bytes have changed.
 */
export class LocalRuleStore implements RuleStore {
  readonly #directory: string;
  readonly #texts: RuleTexts;
  readonly #onCorrupt: (path: string, error: unknown) => void;
  readonly #known = new Map<string, Known>();
  /** Changes of files run one after the other. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor({ directory, texts, onCorrupt }: LocalRuleStoreDeps) {
    this.#directory = directory;
    this.#texts = texts;
    this.#onCorrupt = onCorrupt;
  }

  async listAll(options: CallOptions): Promise<readonly PlacedGroup[]> {
    const found: PlacedGroup[] = [];
    const tenants = await namesIn(this.#directory);
    this.#forgetAllBut(tenants, this.#directory);
    for (const tenant of tenants) found.push(...(await this.list(tenant, options)));
    return found;
  }

  async list(
    tenant: string,
    { signal }: CallOptions,
    namespace?: string,
  ): Promise<readonly PlacedGroup[]> {
    const directory = join(this.#directory, tenant);
    const files = namespace === undefined ? await namesIn(directory) : [fileOf(namespace)];
    if (namespace === undefined) this.#forgetAllBut(files, directory);
    const found: PlacedGroup[] = [];
    for (const file of files) {
      signal.throwIfAborted();
      const path = join(directory, file);
      try {
        for (const group of await this.#read(path, tenant, signal))
          found.push({ tenant, namespace: namespaceOf(file), group });
      } catch (error) {
        if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
        this.#onCorrupt(path, error);
      }
    }
    return found.sort(comparePlaced);
  }

  async get({ tenant, namespace, name }: GroupName, { signal }: CallOptions): Promise<RuleGroup> {
    const groups = await this.#read(this.#pathOf(tenant, namespace), tenant, signal);
    const group = groups.find((one) => one.name === name);
    if (group === undefined) throw notFound(noSuchGroup);
    return group;
  }

  set({ tenant, namespace, group }: PlacedGroup, options: CallOptions): Promise<void> {
    return this.#change({ tenant, namespace }, options, (groups) => {
      const at = groups.findIndex(({ name }) => name === group.name);
      return at < 0 ? [...groups, group] : groups.with(at, group);
    });
  }

  delete({ tenant, namespace, name }: GroupName, options: CallOptions): Promise<void> {
    return this.#change({ tenant, namespace }, options, (groups) =>
      groups.filter((one) => one.name !== name),
    );
  }

  deleteNamespace(tenant: string, namespace: string, options: CallOptions): Promise<void> {
    return this.#change({ tenant, namespace }, options, (groups) => {
      if (groups.length === 0) throw notFound(noSuchNamespace);
      return [];
    });
  }

  #change(
    { tenant, namespace }: Pick<GroupName, "tenant" | "namespace">,
    { signal }: CallOptions,
    edit: (groups: readonly RuleGroup[]) => readonly RuleGroup[],
  ): Promise<void> {
    const change = async () => {
      const path = this.#pathOf(tenant, namespace);
      const before = await this.#read(path, tenant, signal);
      const after = edit(before);
      if (after.length === 0) return rm(path, { force: true });
      const plain = { groups: after.map(plainGroup) };
      const text = await this.#texts.write(plain, { tenant, signal });
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
  async #read(path: string, tenant: string, signal: AbortSignal): Promise<readonly RuleGroup[]> {
    let bytes: Buffer;
    try {
      const { size } = await stat(path);
      if (size > maxFileBytes) throw invalidArgument(`larger than ${maxFileBytes} bytes`);
      bytes = await readFile(path);
    } catch (error) {
      this.#known.delete(path);
      if (isAbsent(error)) return [];
      return told("read")(error);
    }
    let known = this.#known.get(path);
    if (known === undefined || !known.bytes.equals(bytes)) {
      known = await this.#parse(bytes, tenant, signal);
      this.#known.set(path, known);
    }
    if (known.error !== undefined) throw known.error;
    return known.groups;
  }

  async #parse(bytes: Buffer, tenant: string, signal: AbortSignal): Promise<Known> {
    try {
      return { bytes, groups: await this.#texts.readGroups(bytes, { tenant, signal }) };
    } catch (error) {
      if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
      return { bytes, groups: [], error };
    }
  }

  /** Forgets the files of a directory, except below these names. */
  #forgetAllBut(names: readonly string[], directory: string): void {
    const start = directory + sep;
    const kept = new Set(names);
    for (const path of this.#known.keys()) {
      const isIn = path.startsWith(start);
      if (isIn && !kept.has(path.slice(start.length).split(sep)[0] as string))
        this.#known.delete(path);
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

/** The names in a directory, without hidden ones: mounted configuration uses those. */
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
