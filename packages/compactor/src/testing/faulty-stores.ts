import type { CallOptions, ObjectStore } from "@skald/storage";
import type { Random } from "@skald/testkit";

/** What every call of a process says that is dead. */
export class Killed extends Error {}

type Around = <T>(call: () => Promise<T>) => Promise<T>;

/** The same store as a process sees it that dies at its nth call, before or after that is done. */
export function killedAt(store: ObjectStore, n: number, moment: "before" | "after"): ObjectStore {
  let calls = 0;
  return wrap(store, async (call) => {
    calls++;
    if (calls > n || (calls === n && moment === "before")) throw new Killed();
    const result = await call();
    if (calls >= n) throw new Killed();
    return result;
  });
}

/** The same store, a random while later. */
export function paused(store: ObjectStore, random: Random): ObjectStore {
  return wrap(store, async (call) => {
    for (let turns = random(6); turns > 0; turns--) await new Promise(setImmediate);
    return call();
  });
}

/** A store that takes every put, as if the object were not there. */
export function loose(store: ObjectStore): ObjectStore {
  return {
    ...wrap(store, (call) => call()),
    put: (key, body, { signal }) => store.put(key, body, { signal }),
    putFile: (key, path, { signal }) => store.putFile(key, path, { signal }),
  };
}

/** The methods of a store, for one that does some of them otherwise. */
export function methodsOf(store: ObjectStore): ObjectStore {
  return {
    put: (...args) => store.put(...args),
    putFile: (...args) => store.putFile(...args),
    get: (...args) => store.get(...args),
    stat: (...args) => store.stat(...args),
    getRange: (...args) => store.getRange(...args),
    list: (...args) => store.list(...args),
    folders: (...args) => store.folders(...args),
    delete: (...args) => store.delete(...args),
  };
}

function wrap(store: ObjectStore, around: Around): ObjectStore {
  async function* each<T>(list: () => AsyncIterable<T>): AsyncIterable<T> {
    const all = await around(async () => {
      const items: T[] = [];
      for await (const item of list()) items.push(item);
      return items;
    });
    yield* all;
  }
  return {
    put: (...args) => around(() => store.put(...args)),
    putFile: (...args) => around(() => store.putFile(...args)),
    get: (...args) => around(() => store.get(...args)),
    stat: (...args) => around(() => store.stat(...args)),
    getRange: (...args) => around(() => store.getRange(...args)),
    delete: (key: string, options: CallOptions) => around(() => store.delete(key, options)),
    list: (...args) => each(() => store.list(...args)),
    folders: (...args) => each(() => store.folders(...args)),
  };
}
