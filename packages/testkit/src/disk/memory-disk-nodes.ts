/** What a power cut leaves of what was not synced: nothing, or all names and a part of the bytes. */
export type Leftover = "nothing" | "names and a part";

export type Node = DiskFile | DiskFolder;

let inodes = 0;

/** Bytes of a file: as they are, and as a power cut would leave them. */
export class DiskFile {
  readonly kind = "file";
  readonly ino = ++inodes;
  mtimeMs = 0;
  bytes = Buffer.alloc(0);
  #synced = Buffer.alloc(0);
  /** What failed syncs lost, unless it was written again; later syncs leave it as zeros. */
  #lost: Range[] = [];

  write(bytes: Uint8Array, offset: number): void {
    const sizeBytes = Math.max(this.bytes.length, offset + bytes.length);
    const grown = Buffer.alloc(sizeBytes);
    this.bytes.copy(grown);
    grown.set(bytes, offset);
    this.bytes = grown;
    this.#lost = without(this.#lost, { from: offset, to: offset + bytes.length });
  }

  truncate(sizeBytes: number): void {
    const cut = Buffer.alloc(sizeBytes);
    this.bytes.copy(cut, 0, 0, sizeBytes);
    this.bytes = cut;
    this.#lost = without(this.#lost, { from: sizeBytes, to: Number.POSITIVE_INFINITY });
  }

  sync(): void {
    this.#synced = Buffer.from(this.bytes);
    for (const { from, to } of this.#lost) this.#synced.fill(0, from, to);
  }

  /** What a sync does that fails: what it should have written is lost, and looks written. */
  failSync(): void {
    const from = Math.min(this.#synced.length, this.bytes.length);
    if (this.bytes.length > from) this.#lost.push({ from, to: this.bytes.length });
  }

  copy(): DiskFile {
    const file = new DiskFile();
    file.mtimeMs = this.mtimeMs;
    file.bytes = this.bytes;
    file.#synced = this.#synced;
    file.#lost = this.#lost;
    return file;
  }

  survivor(leftover: Leftover): DiskFile {
    const file = new DiskFile();
    file.mtimeMs = this.mtimeMs;
    const added = this.bytes.length - this.#synced.length;
    file.bytes = Buffer.from(this.#synced);
    if (leftover === "names and a part" && added > 0) {
      // Half of what was added came through, and the size of it all.
      const half = this.bytes.subarray(0, this.#synced.length + (added >> 1));
      file.bytes = Buffer.concat([
        this.#synced,
        half.subarray(this.#synced.length),
        Buffer.alloc(added - (added >> 1)),
      ]);
    }
    file.sync();
    return file;
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
}

function without(ranges: readonly Range[], gone: Range): Range[] {
  return ranges
    .flatMap(({ from, to }) => [
      { from, to: Math.min(to, gone.from) },
      { from: Math.max(from, gone.to), to },
    ])
    .filter(({ from, to }) => from < to);
}

/** Names of a folder: as they are, and as a power cut would leave them. */
export class DiskFolder {
  readonly kind = "folder";
  readonly ino = ++inodes;
  mtimeMs = 0;
  entries = new Map<string, Node>();
  #synced = new Map<string, Node>();

  sync(): void {
    this.#synced = new Map(this.entries);
  }

  failSync(): void {}

  /** Names of one file stay names of one file. */
  copy(seen = new Map<Node, Node>()): DiskFolder {
    const made = new DiskFolder();
    seen.set(this, made);
    const copyOf = (node: Node) => (node.kind === "file" ? node.copy() : node.copy(seen));
    made.entries = mapped(this.entries, copyOf, seen);
    made.#synced = mapped(this.#synced, copyOf, seen);
    return made;
  }

  survivor(leftover: Leftover, seen = new Map<Node, Node>()): DiskFolder {
    const made = new DiskFolder();
    seen.set(this, made);
    const survivorOf = (node: Node) =>
      node.kind === "file" ? node.survivor(leftover) : node.survivor(leftover, seen);
    const left = leftover === "nothing" ? this.#synced : this.entries;
    made.entries = mapped(left, survivorOf, seen);
    made.sync();
    return made;
  }

  paths(above: string): string[] {
    return [...this.entries].flatMap(([name, node]) =>
      node.kind === "file" ? [above + name] : node.paths(`${above}${name}/`),
    );
  }
}

/** The entries of a folder, each node made anew unless that was done under another name. */
function mapped(
  entries: ReadonlyMap<string, Node>,
  make: (node: Node) => Node,
  seen: Map<Node, Node>,
): Map<string, Node> {
  const made = new Map<string, Node>();
  for (const [name, node] of entries) {
    const known = seen.get(node) ?? make(node);
    seen.set(node, known);
    made.set(name, known);
  }
  return made;
}

export function folder(): DiskFolder {
  return new DiskFolder();
}

/** An error as node:fs throws it. */
export function failure(code: string, call: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${call} '${path}'`), { code, syscall: call, path });
}
