import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join, relative } from "node:path";
import { S3Server } from "@skald/testkit";
import { makeFolder } from "../server.js";
import { folderStore, type SeenStore } from "./leftovers.js";

/** Something that a process did, as seen from outside. */
export interface Deed {
  readonly to: "object" | "file" | "client" | "log";
  /** The key of an object, or the path of a file below the folder. */
  readonly name: string;
  /** Whether the object or file was deleted. */
  readonly isGone: boolean;
}

/** Called with each deed. For objects of a bucket the call comes before the deed, and false prevents it. */
type Heard = (deed: Deed) => boolean;

/** A place where rows and segments are kept. */
export interface Place {
  readonly folder: string;
  /** Flags of a process that works on this place. */
  readonly flags: readonly string[];
  readonly store: SeenStore;
  /** Calls `heard` with each deed until the returned function is called. */
  watch(heard: Heard): () => void;
  close(): Promise<void>;
}

/** Everything is in one folder. */
export async function folderPlace(flags: readonly string[]): Promise<Place> {
  const folder = makeFolder();
  return {
    ...{ folder, flags, store: folderStore(folder) },
    watch: (heard) => watchFolder(folder, heard),
    close: async () => {},
  };
}

/** Segments are in a bucket, everything else in a folder. */
export async function bucketPlace(flags: readonly string[]): Promise<Place> {
  const bucket = new S3Server();
  const { host } = new URL(await bucket.open());
  const folder = makeFolder();
  const url = `s3://${bucket.accessKeyId}:secret@${host}/${bucket.bucket}`;
  return {
    folder,
    flags: [...flags, `-s3.url=${url}`, "-s3.force-path-style", "-s3.insecure"],
    store: {
      keys: () => bucket.keys,
      read: (key) => bucket.object(key)?.body as Uint8Array,
    },
    watch: (heard) => {
      const stop = watchFolder(folder, heard);
      bucket.faults.push({
        when: ({ method, key }) => {
          if (method !== "PUT" && method !== "DELETE") return false;
          return !heard({ to: "object", name: key, isGone: method === "DELETE" });
        },
        fault: { kind: "hang" },
      });
      return () => {
        stop();
        bucket.faults.length = 0;
      };
    },
    close: () => bucket.close(),
  };
}

/** Reports the files of a folder; files of its store are reported as objects. */
function watchFolder(folder: string, heard: Heard): () => void {
  return watchFiles(folder, (path, isGone) => {
    const [, key] = /^chunks\/(tenant=.*)/.exec(path) ?? [];
    heard({ to: key === undefined ? "file" : "object", name: key ?? path, isGone });
  });
}

/**
 * Calls `heard` when a file below a folder appears, disappears or is renamed, until the returned function is called. A recursive
 * `watch` reads whole folders at each change on Linux, which would slow the process down.
 */
function watchFiles(folder: string, heard: (path: string, isGone: boolean) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  const forget = (path: string) => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  const add = (path: string) => {
    if (watchers.has(path)) return;
    const watcher = watch(path, (event, name) => {
      if (event === "rename" && name !== null) hear(join(path, name));
    });
    // The folder was deleted.
    watcher.on("error", () => forget(path));
    watchers.set(path, watcher);
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) add(join(path, entry.name));
  };
  const hear = (path: string) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true) {
      forget(path);
      heard(relative(folder, path), stats === undefined);
      return;
    }
    try {
      add(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      forget(path);
    }
  };
  add(folder);
  return () => {
    for (const path of [...watchers.keys()]) forget(path);
  };
}
