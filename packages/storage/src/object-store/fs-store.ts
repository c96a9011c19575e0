import { randomUUID } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { dirname, join } from "node:path";
import { notFound, paddingBytes, SkaldError, unavailable } from "@skald/model";
import { DirectoryLock } from "../directory-lock.js";
import {
  copyFile,
  existsSync,
  link,
  mkdir,
  mkdirSync,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
} from "../files.js";
import { DirectorySyncs, isAbsent, syncInTurn, withFile } from "../syncs.js";
import {
  type CallOptions,
  checkKey,
  type ListOptions,
  type ObjectInfo,
  type ObjectRange,
  type ObjectStore,
  type PutFileOptions,
  type PutOptions,
  type PutOutcome,
  rangeError,
} from "./object-store.js";
import { StoreRoot, storeMarkerName } from "./store-root.js";

/** The directory of unfinished objects; no key may begin with it. */
const temporaryName = ".tmp";

/** A put whose directory is removed under it by a delete makes it again this often. */
const maxPlaceTries = 10;

/**
 * An object store in a directory: a key is a path below it. An object is written beside the others, synced, and moved
 * into place with its directory synced; directories that become empty are removed. A key and one that continues it
 * with a slash cannot both exist.
 */
export class FsStore implements ObjectStore {
  readonly #root: string;
  readonly #marked: StoreRoot;
  readonly #temporary: TemporaryFiles;
  readonly #syncs = new DirectorySyncs();

  /** `rememberIn` is a file that outlasts the process and says which store this is, see `StoreRoot`. */
  constructor(root: string, options: { readonly rememberIn?: string } = {}) {
    this.#root = root;
    this.#marked = new StoreRoot(root, options.rememberIn);
    this.#temporary = new TemporaryFiles(join(root, temporaryName));
  }

  /** Makes the root at the first start, and removes what dead processes left unfinished. */
  async open(): Promise<void> {
    await this.#marked.open();
    await this.#temporary.sweep();
  }

  /** Throws unavailable when the root is not there, or is another store. */
  check(): Promise<void> {
    return this.#marked.check();
  }

  /** Gives up unfinished puts; nothing may be put afterwards. */
  async close(): Promise<void> {
    await this.#temporary.close();
  }

  put(key: string, body: Uint8Array, options: PutOptions): Promise<PutOutcome> {
    return this.#store(key, options, (temporary) =>
      withFile(temporary, "wx", async (file) => {
        await file.writeFile(body, options);
        await syncInTurn(() => file.sync());
      }),
    );
  }

  async putFile(key: string, path: string, options: PutFileOptions): Promise<PutOutcome> {
    if (options.isSynced && options.ifAbsent) {
      const outcome = await this.#linkInPlace(key, path, options);
      if (outcome !== undefined) return outcome;
    }
    return this.#store(key, options, async (temporary) => {
      // A second name for the same bytes costs nothing; another file system needs a copy.
      try {
        await link(path, temporary);
      } catch {
        await copyFile(path, temporary, constants.COPYFILE_FICLONE);
      }
      await withFile(temporary, "r", (file) => syncInTurn(() => file.sync()));
    });
  }

  async get(key: string, options: CallOptions): Promise<Uint8Array> {
    const path = this.#pathOf(key);
    return this.#call(key, options, () => readFile(path, options));
  }

  async stat(key: string, options: CallOptions): Promise<ObjectInfo> {
    const path = this.#pathOf(key);
    return this.#call(key, options, async () => {
      const found = await stat(path);
      if (!found.isFile()) throw notFound(`object ${key} does not exist`);
      return { key, sizeBytes: found.size, modifiedMs: found.mtimeMs };
    });
  }

  async getRange(key: string, range: ObjectRange, options: CallOptions): Promise<Uint8Array> {
    const path = this.#pathOf(key);
    const { offset, length } = range;
    return this.#call(key, options, () =>
      withFile(path, "r", async (file) => {
        const out = Buffer.allocUnsafeSlow(length + paddingBytes);
        let done = 0;
        while (done < length) {
          options.signal.throwIfAborted();
          const { bytesRead } = await file.read(out, done, length - done, offset + done);
          if (bytesRead === 0) throw rangeError(key, offset, length, (await file.stat()).size);
          done += bytesRead;
        }
        return out.subarray(0, length);
      }),
    );
  }

  async *list(prefix: string, options: ListOptions): AsyncIterable<ObjectInfo> {
    await this.#check(prefix, options);
    yield* this.#listDirectory("", prefix, options);
    // A store that went away meanwhile looked empty.
    await this.#check(prefix, options);
  }

  async *folders(prefix: string, options: CallOptions): AsyncIterable<string> {
    await this.#check(prefix, options);
    const parent = prefix.slice(0, prefix.lastIndexOf("/") + 1);
    const entries = await this.#entries(parent, options);
    await this.#check(prefix, options);
    for (const { name, isDirectory } of entries) {
      if (isDirectory && (parent + name).startsWith(prefix)) yield parent + name;
    }
  }

  async delete(key: string, options: CallOptions): Promise<void> {
    const path = this.#pathOf(key);
    await this.#call(key, options, async () => {
      const isGone = await unlink(path).catch(ifAbsent(true));
      if (isGone !== true) await this.#removeEmpty(dirname(path));
    });
  }

  async *#listDirectory(
    directory: string,
    prefix: string,
    options: ListOptions,
  ): AsyncGenerator<ObjectInfo> {
    const after = options.after ?? "";
    for (const { name, isDirectory } of await this.#entries(directory, options)) {
      options.signal.throwIfAborted();
      const key = directory + name;
      if (isDirectory) {
        const mayHold = key.startsWith(prefix) || prefix.startsWith(key);
        if (mayHold && (key > after || after.startsWith(key))) {
          yield* this.#listDirectory(key, prefix, options);
        }
        continue;
      }
      if (!key.startsWith(prefix) || key <= after) continue;
      const info = await this.#info(key, options);
      if (info !== undefined) yield info;
    }
  }

  /** Entries in the order of the keys below them: that of a directory ends with a slash. */
  async #entries(directory: string, options: CallOptions) {
    const entries = await this.#run(directory, options, () =>
      readdir(join(this.#root, directory), { withFileTypes: true }).catch(ifAbsent([])),
    );
    const named = entries
      .filter((entry) => directory !== "" || !isReserved(entry.name))
      .map((entry: Dirent) => {
        const isDirectory = entry.isDirectory();
        return { name: isDirectory ? `${entry.name}/` : entry.name, isDirectory };
      });
    return named.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Undefined when the object was deleted since its directory was read. */
  #info(key: string, options: CallOptions): Promise<ObjectInfo | undefined> {
    return this.#run(key, options, async () => {
      const found = await stat(join(this.#root, key)).catch(ifAbsent(undefined));
      return found && { key, sizeBytes: found.size, modifiedMs: found.mtimeMs };
    });
  }

  async #store(
    key: string,
    options: PutOptions,
    write: (temporary: string) => Promise<void>,
  ): Promise<PutOutcome> {
    const path = this.#pathOf(key);
    return this.#run(key, { signal: options.signal, call: "put" }, async () => {
      await this.#marked.check();
      const temporary = this.#temporary.path();
      try {
        await write(temporary);
        options.signal.throwIfAborted();
        return await this.#place(temporary, path, options.ifAbsent === true);
      } finally {
        await rm(temporary, { force: true });
      }
    });
  }

  /** Gives a complete file a second name, the shortest way into the store; undefined where that is impossible. */
  #linkInPlace(key: string, path: string, { signal }: PutOptions): Promise<PutOutcome | undefined> {
    const target = this.#pathOf(key);
    return this.#run(key, { signal, call: "put" }, async () => {
      await this.#marked.check();
      try {
        return await this.#place(path, target, true);
      } catch {
        // Another file system, or one without links. Any other error shows up again on the long way.
        return undefined;
      }
    });
  }

  async #place(temporary: string, path: string, ifAbsent: boolean): Promise<PutOutcome> {
    for (let attempt = 1; ; attempt++) {
      let outcome: PutOutcome = "stored";
      try {
        await mkdir(dirname(path), { recursive: true });
        if (ifAbsent) await link(temporary, path);
        else await rename(temporary, path);
      } catch (error) {
        if (codeOf(error) === "ENOENT" && attempt < maxPlaceTries) continue;
        if (codeOf(error) !== "EEXIST" || !ifAbsent) throw error;
        outcome = "exists";
      }
      // Also for an object that another put made: its syncs may not be done, or may have failed.
      await this.#syncs.syncUpTo(dirname(path), this.#root);
      return outcome;
    }
  }

  async #removeEmpty(directory: string): Promise<void> {
    let at = directory;
    while (at !== this.#root && at.startsWith(this.#root)) {
      try {
        await rmdir(at);
      } catch (error) {
        if (["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(error))) return;
        throw error;
      }
      at = dirname(at);
    }
  }

  #pathOf(key: string): string {
    checkKey(key);
    if (isReserved(key.split("/")[0] as string)) throw notFound(`object ${key} cannot exist`);
    return join(this.#root, key);
  }

  #check(prefix: string, options: CallOptions): Promise<void> {
    return this.#run(prefix, options, () => this.#marked.check());
  }

  /** A call for one object. The store is checked first: in one that is not there every object would seem to be missing. */
  #call<T>(key: string, options: CallOptions, act: () => Promise<T>): Promise<T> {
    return this.#run(key, options, async () => {
      await this.#marked.check();
      return await act();
    });
  }

  async #run<T>(
    key: string,
    { signal, call }: CallOptions & { readonly call?: "put" },
    act: () => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    try {
      return await act();
    } catch (error) {
      if (error instanceof SkaldError || signal.aborted) throw error;
      if (isAbsent(error) && call !== "put") throw notFound(`object ${key} does not exist`);
      throw unavailable(`object ${key} cannot be reached in ${this.#root}: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }
}

/** Takes a value in place of what is absent. */
function ifAbsent<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isAbsent(error)) return value;
    throw error;
  };
}

/** Whether a name in the root is not that of an object. */
function isReserved(name: string): boolean {
  return name === temporaryName || name.startsWith(storeMarkerName);
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Another process may sweep a folder away in the moment between its making and its lock. */
const maxFolderTries = 10;

/**
 * The folder in which one process writes files before they are moved into place. It is below `dir`, under a lock that ends
 * with the process, so that others can tell what a dead process left behind.
 */
class TemporaryFiles {
  readonly #dir: string;
  #folder: { readonly path: string; readonly lock: DirectoryLock | undefined } | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Deletes what dead processes left behind. Fails when the directory cannot be read. */
  async sweep(): Promise<void> {
    for (const entry of await this.#entries()) {
      if (!uuidForm.test(entry.name)) continue;
      const path = join(this.#dir, entry.name);
      if (entry.isDirectory()) {
        const lock = takeLock(path);
        // Without locks nobody can tell which processes are dead.
        if (lock?.isExclusive !== true) continue;
        lock.release();
      }
      await rm(path, { recursive: true, force: true });
    }
  }

  async #entries(): Promise<Dirent[]> {
    try {
      return await readdir(this.#dir, { withFileTypes: true });
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw error;
    }
  }

  /** A path for a new file in a folder that exists. Fails when the directory above `dir` does not. */
  path(): string {
    if (this.#folder === undefined || !existsSync(this.#folder.path)) this.#folder = this.#make();
    return join(this.#folder.path, randomUUID());
  }

  /** Removes the folder with all unfinished files in it. */
  async close(): Promise<void> {
    const folder = this.#folder;
    this.#folder = undefined;
    if (folder === undefined) return;
    folder.lock?.release();
    await rm(folder.path, { recursive: true, force: true });
  }

  #make() {
    if (!existsSync(this.#dir)) mkdirSync(this.#dir);
    for (let attempt = 1; ; attempt++) {
      const path = join(this.#dir, randomUUID());
      mkdirSync(path);
      const lock = takeLock(path);
      if (existsSync(path) || attempt === maxFolderTries) return { path, lock };
      lock?.release();
    }
  }
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Undefined where another process has the lock, or the file system has no locks. */
function takeLock(dir: string): DirectoryLock | undefined {
  try {
    return DirectoryLock.take(dir);
  } catch (error) {
    if (error instanceof SkaldError) return undefined;
    throw error;
  }
}
