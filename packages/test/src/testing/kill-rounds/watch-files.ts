import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { join, relative } from "node:path";

/**
 * Tells of files below a folder that come, go, or get other names; answers how to stop that. Cheaper than a recursive `watch`, which on
 * Linux reads whole folders at each change, and so slows down what is watched.
 */
export function watchFiles(
  folder: string,
  heard: (path: string, isGone: boolean) => void,
): () => void {
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
    // The folder is gone.
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
