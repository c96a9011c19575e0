import type { MemoryDisk } from "./memory-disk.js";
import type { DiskFile, DiskFolder, Node } from "./memory-disk-nodes.js";
import { failure } from "./memory-disk-nodes.js";

/** The functions of node:fs and node:fs/promises that the log, segments and the store call, over the disk that is there now. */
export function memoryFiles(disk: () => MemoryDisk) {
  return { ...promisedFiles(disk), ...syncFiles(disk) };
}

interface Opened {
  readonly disk: MemoryDisk;
  readonly node: Node;
  readonly path: string;
}

function promisedFiles(disk: () => MemoryDisk) {
  return {
    async open(path: string, flags = "r") {
      return handleOf(open(disk(), path, flags));
    },
    async mkdir(path: string, options?: { readonly recursive?: boolean }) {
      makeFolder(disk(), path, options?.recursive === true);
    },
    async readdir(
      path: string,
      options: { readonly withFileTypes?: boolean; readonly recursive?: boolean } = {},
    ) {
      const on = disk();
      on.enter("readdir", path);
      const entries = entriesOf(on.findFolder(path, "readdir"), path, options.recursive === true);
      return options.withFileTypes === true ? entries : entries.map(({ name }) => name);
    },
    async stat(path: string) {
      const on = disk();
      on.enter("stat", path);
      return statOf(on.find(path, "stat"));
    },
    async statfs(path: string) {
      disk().enter("statfs", path);
      return { blocks: 100, bfree: 90, bavail: 90 };
    },
    async readFile(path: string, options?: string | object) {
      const bytes = readAll(open(disk(), path, "r"));
      return options === "utf8" ? bytes.toString() : bytes;
    },
    async writeFile(path: string, data: string | Uint8Array) {
      writeAll(open(disk(), path, "w"), Buffer.from(data));
    },
    async copyFile(from: string, to: string) {
      const bytes = readAll(open(disk(), from, "r"));
      writeAll(open(disk(), to, "w"), bytes);
    },
    async rename(from: string, to: string) {
      rename(disk(), from, to);
    },
    async link(from: string, to: string) {
      const on = disk();
      on.enter("link", to);
      const node = on.findFile(from, "link");
      const { parent, name } = on.place(to, "link");
      if (parent.entries.has(name)) throw failure("EEXIST", "link", to);
      parent.entries.set(name, node);
    },
    async unlink(path: string) {
      remove(disk(), "unlink", path, {});
    },
    async rm(path: string, options: RemoveOptions = {}) {
      remove(disk(), "rm", path, options);
    },
    async rmdir(path: string) {
      const on = disk();
      on.enter("rmdir", path);
      if (on.findFolder(path, "rmdir").entries.size > 0) throw failure("ENOTEMPTY", "rmdir", path);
      const { parent, name } = on.place(path, "rmdir");
      parent.entries.delete(name);
    },
  };
}

function syncFiles(disk: () => MemoryDisk) {
  const opened = new Map<number, Opened & { at: number }>();
  let lastFd = 1000;
  const of = (fd: number) => {
    const found = opened.get(fd);
    if (found === undefined) throw failure("EBADF", "fd", String(fd));
    return found;
  };
  return {
    openSync(path: string, flags: string) {
      opened.set(++lastFd, { ...open(disk(), path, flags), at: 0 });
      return lastFd;
    },
    closeSync(fd: number) {
      of(fd);
      opened.delete(fd);
    },
    fstatSync(fd: number) {
      const file = of(fd);
      file.disk.enter("stat", file.path);
      return statOf(file.node);
    },
    fsyncSync(fd: number) {
      sync(of(fd));
    },
    readSync(fd: number, out: Uint8Array, offset: number, length: number, position: number) {
      return read(of(fd), out, { offset, length, position });
    },
    writeSync(fd: number, bytes: Uint8Array, offset: number, length: number) {
      const file = of(fd);
      const done = write(file, bytes.subarray(offset, offset + length), file.at);
      file.at += done;
      return done;
    },
    existsSync(path: string) {
      const on = disk();
      try {
        on.enter("stat", path);
        on.find(path, "stat");
        return true;
      } catch {
        return false;
      }
    },
    mkdirSync(path: string, options?: { readonly recursive?: boolean }) {
      makeFolder(disk(), path, options?.recursive === true);
    },
    renameSync(from: string, to: string) {
      rename(disk(), from, to);
    },
    rmSync(path: string, options: RemoveOptions = {}) {
      remove(disk(), "rm", path, options);
    },
  };
}

function handleOf(file: Opened) {
  const size = () => fileOf(file).bytes.length;
  return {
    read: async (out: Uint8Array, offset: number, length: number, position: number) => ({
      bytesRead: read(file, out, { offset, length, position }),
      buffer: out,
    }),
    readFile: async () => readAll(file),
    write: async (bytes: Uint8Array, offset: number, length: number, position: number) => ({
      bytesWritten: write(file, bytes.subarray(offset, offset + length), position),
    }),
    writev: async (parts: readonly Uint8Array[]) => ({
      bytesWritten: write(file, Buffer.concat(parts), size()),
    }),
    writeFile: async (data: string | Uint8Array) => writeAll(file, Buffer.from(data)),
    sync: async () => sync(file),
    datasync: async () => sync(file),
    truncate: async (sizeBytes: number) => {
      file.disk.enter("truncate", file.path);
      fileOf(file).truncate(sizeBytes);
    },
    stat: async () => statOf(file.node),
    close: async () => {},
  };
}

function open(disk: MemoryDisk, path: string, flags: string): Opened {
  disk.enter("open", path);
  return { disk, path, node: disk.openFile(path, flags) };
}

function fileOf({ node, path }: Opened): DiskFile {
  if (node.kind === "folder") throw failure("EISDIR", "read", path);
  return node;
}

function read(
  file: Opened,
  out: Uint8Array,
  range: { offset: number; length: number; position: number },
): number {
  const isShort = file.disk.enter("read", file.path);
  const length = isShort ? Math.ceil(range.length / 2) : range.length;
  const part = fileOf(file).bytes.subarray(range.position, range.position + length);
  out.set(part, range.offset);
  return part.length;
}

function readAll(file: Opened): Buffer {
  file.disk.enter("read", file.path);
  return Buffer.from(fileOf(file).bytes);
}

/** Node's own loop stands behind this one, so nothing of it is short. */
function writeAll(file: Opened, bytes: Uint8Array): void {
  file.disk.enter("write", file.path);
  fileOf(file).write(bytes, 0);
}

function write(file: Opened, bytes: Uint8Array, offset: number): number {
  const isShort = file.disk.enter("write", file.path);
  const done = isShort ? bytes.subarray(0, bytes.length >> 1) : bytes;
  fileOf(file).write(done, offset);
  return done.length;
}

function sync({ disk, node, path }: Opened): void {
  try {
    disk.enter("sync", path);
  } catch (error) {
    if (!disk.isOff) node.failSync();
    throw error;
  }
  node.sync();
}

function makeFolder(disk: MemoryDisk, path: string, isRecursive: boolean): void {
  disk.enter("mkdir", path);
  if (isRecursive) {
    disk.makeFolders(path);
    return;
  }
  const { parent, name } = disk.place(path, "mkdir");
  if (parent.entries.has(name)) throw failure("EEXIST", "mkdir", path);
  disk.makeFolders(path);
}

function rename(disk: MemoryDisk, from: string, to: string): void {
  disk.enter("rename", to);
  const node = disk.find(from, "rename");
  const source = disk.place(from, "rename");
  const target = disk.place(to, "rename");
  target.parent.entries.set(target.name, node);
  source.parent.entries.delete(source.name);
}

interface RemoveOptions {
  readonly force?: boolean;
  readonly recursive?: boolean;
}

function remove(disk: MemoryDisk, call: string, path: string, options: RemoveOptions): void {
  disk.enter(call, path);
  try {
    const node = disk.find(path, call);
    if (node.kind === "folder" && options.recursive !== true)
      throw failure("ERR_FS_EISDIR", call, path);
    const { parent, name } = disk.place(path, call);
    parent.entries.delete(name);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (options.force !== true || code !== "ENOENT") throw error;
  }
}

function statOf(node: Node) {
  const isFile = node.kind === "file";
  const size = isFile ? node.bytes.length : 0;
  return {
    dev: 1,
    ino: node.ino,
    size,
    mtimeMs: node.mtimeMs,
    isFile: () => isFile,
    isDirectory: () => !isFile,
  };
}

interface Entry {
  readonly name: string;
  readonly parentPath: string;
  isFile(): boolean;
  isDirectory(): boolean;
}

function entriesOf(folder: DiskFolder, path: string, isRecursive: boolean): Entry[] {
  return [...folder.entries].flatMap(([name, node]) => {
    const isFile = node.kind === "file";
    const entry = { name, parentPath: path, isFile: () => isFile, isDirectory: () => !isFile };
    if (isFile || !isRecursive) return [entry];
    return [entry, ...entriesOf(node, `${path}/${name}`, true)];
  });
}
