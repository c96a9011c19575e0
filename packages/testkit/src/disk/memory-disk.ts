import {
  DiskFile,
  type DiskFolder,
  failure,
  folder,
  type Leftover,
  type Node,
} from "./memory-disk-nodes.js";

/** A call of a disk, told before it is done. */
export interface DiskCall {
  /** Counted from 1 over the life of the disk. */
  readonly n: number;
  /** As in node:fs, without `Sync`: `open`, `write`, `sync`, `rename` .. */
  readonly name: string;
  readonly path: string;
}

/** What is done to a call: nothing, an error, half of what was to be written or read, or an end of all calls. */
export type Fault = { readonly code: string } | "short" | "power cut" | undefined;

const powerIsOff = "POWER";

/**
 * A file system in memory that knows what of it would survive a power cut: bytes of a file once it was synced, names once
 * their directory was. Before each call it asks `faultOf` what to do to it. A failed sync loses what it should have
 * written: later ones succeed without it, as on Linux. `memory-files` gives it the face of node:fs.
 */
export class MemoryDisk {
  /** Path of the folder that the disk is mounted at; everything else does not exist. */
  readonly root: string;
  faultOf: (call: DiskCall) => Fault = () => undefined;
  readonly #top: DiskFolder;
  #calls = 0;
  #isOff = false;
  readonly #waiting = new Set<() => void>();

  constructor(root: string, top: DiskFolder = folder()) {
    this.root = root;
    this.#top = top;
  }

  get isOff(): boolean {
    return this.#isOff;
  }

  /** No call succeeds from now on. */
  turnOff(): void {
    this.#isOff = true;
    for (const tell of this.#waiting) tell();
    this.#waiting.clear();
  }

  /** Resolves with what a task does, or undefined when the disk is turned off before. */
  async unlessOff<T>(task: Promise<T>): Promise<T | undefined> {
    task.catch(() => undefined);
    let tell = (): void => undefined;
    const off = new Promise<undefined>((resolve) => {
      tell = () => resolve(undefined);
      if (this.#isOff) tell();
      else this.#waiting.add(tell);
    });
    try {
      return await Promise.race([task, off]);
    } finally {
      this.#waiting.delete(tell);
    }
  }

  /** The same bytes under another root: what a process that was killed leaves. Turns this one off. */
  moved(root: string): MemoryDisk {
    this.turnOff();
    return new MemoryDisk(root, this.#top);
  }

  /** The same files under another root, and what of them would survive a power cut; this disk goes on. */
  copied(root: string): MemoryDisk {
    return new MemoryDisk(root, this.#top.copy());
  }

  /** What is left when the power goes now, under another root. Turns this one off. */
  afterPowerCut(root: string, leftover: Leftover): MemoryDisk {
    this.turnOff();
    return new MemoryDisk(root, this.#top.survivor(leftover));
  }

  /** Counts a call below the root; throws what it fails with, and returns true when it does only a part. */
  enter(name: string, path: string): boolean {
    if (this.#isOff) throw failure(powerIsOff, name, path);
    // Above the root, or of a process that lives on behind its disk.
    if (!this.#holds(path)) throw failure("ENOENT", name, path);
    const fault = this.faultOf({ n: ++this.#calls, name, path });
    if (fault === undefined) return false;
    if (fault === "short") return true;
    if (fault !== "power cut") throw failure(fault.code, name, path);
    this.turnOff();
    throw failure(powerIsOff, name, path);
  }

  find(path: string, call: string): Node {
    const { parent, name } = this.place(path, call);
    const found = name === "" ? parent : parent.entries.get(name);
    if (found === undefined) throw failure("ENOENT", call, path);
    return found;
  }

  findFile(path: string, call: string): DiskFile {
    const found = this.find(path, call);
    if (found.kind === "folder") throw failure("EISDIR", call, path);
    return found;
  }

  findFolder(path: string, call: string): DiskFolder {
    const found = this.find(path, call);
    if (found.kind === "file") throw failure("ENOTDIR", call, path);
    return found;
  }

  /** The folder that a path is or would be in, and its name there; "" for the root itself. */
  place(path: string, call: string): { parent: DiskFolder; name: string } {
    if (!this.#holds(path)) throw failure("ENOENT", call, path);
    const parts = path.slice(this.root.length + 1).split("/");
    const name = parts.pop() as string;
    let parent = this.#top;
    for (const part of parts) {
      const next = parent.entries.get(part);
      if (next === undefined) throw failure("ENOENT", call, path);
      if (next.kind === "file") throw failure("ENOTDIR", call, path);
      parent = next;
    }
    return { parent, name };
  }

  /** Makes a folder and those above it up to the root. */
  makeFolders(path: string): void {
    if (path === this.root) return;
    if (!this.#holds(path)) throw failure("ENOENT", "mkdir", path);
    let at = this.#top;
    for (const part of path.slice(this.root.length + 1).split("/")) {
      const next = at.entries.get(part) ?? folder();
      if (next.kind === "file") throw failure("ENOTDIR", "mkdir", path);
      at.entries.set(part, next);
      at = next;
    }
  }

  /** Opens a file as flags of node:fs say. */
  openFile(path: string, flags: string): Node {
    const { parent, name } = this.place(path, "open");
    const found = name === "" ? parent : parent.entries.get(name);
    if (found === undefined) {
      if (flags.startsWith("r")) throw failure("ENOENT", "open", path);
      const made = new DiskFile();
      parent.entries.set(name, made);
      return made;
    }
    if (flags.includes("x")) throw failure("EEXIST", "open", path);
    if (found.kind === "folder" && flags !== "r") throw failure("EISDIR", "open", path);
    if (found.kind === "file" && flags.startsWith("w")) found.truncate(0);
    return found;
  }

  /** All paths of files below the root, for failure texts. */
  paths(): string[] {
    return this.#top.paths("");
  }

  #holds(path: string): boolean {
    return path === this.root || path.startsWith(`${this.root}/`);
  }
}
