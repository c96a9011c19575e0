import type { ResultStore, ResultStores } from "@skald/frontend";
import type { CacheKind } from "@skald/model";
import type { HostFunction, JobContext } from "@skald/runtime";

/** What a query thread knows of the stores of kept answers: plain data. */
export type KeptKinds = Readonly<
  Partial<Record<CacheKind, Pick<ResultStore, "maxValueBytes" | "compress">>>
>;

interface Asked {
  readonly kind: CacheKind;
  readonly keys: readonly string[];
}

interface Given {
  readonly kind: CacheKind;
  readonly key: string;
  readonly value: Uint8Array<ArrayBuffer>;
}

/** The stores as query threads are told of them. */
export function kindsOf(stores: ResultStores): KeptKinds {
  const kinds: Partial<Record<CacheKind, Pick<ResultStore, "maxValueBytes" | "compress">>> = {};
  for (const [kind, { maxValueBytes, compress }] of Object.entries(stores)) {
    kinds[kind as CacheKind] = { maxValueBytes, compress };
  }
  return kinds;
}

/** The functions that jobs call for what `remoteStores` gives them. */
export function storesHost(stores: ResultStores): Record<string, HostFunction> {
  return {
    "results.get": async ({ kind, keys }: Asked, { signal }) => ({
      value: (await stores[kind]?.get(keys, signal)) ?? [],
    }),
    "results.put": ({ kind, key, value }: Given) => {
      stores[kind]?.put(key, value);
      return { value: undefined };
    },
  };
}

/** The stores of the process that runs a job. */
export function remoteStores(kinds: KeptKinds, { call }: JobContext): ResultStores {
  const stores: Partial<Record<CacheKind, ResultStore>> = {};
  for (const [name, known] of Object.entries(kinds)) {
    const kind = name as CacheKind;
    stores[kind] = {
      ...known,
      get: async (keys, signal) =>
        (await call("results.get", { kind, keys } satisfies Asked, { signal })) as (
          | Uint8Array
          | undefined
        )[],
      put: (key, value) => {
        const given = { kind, key, value } satisfies Given;
        // Nobody waits for it; a query that ended takes it along.
        call("results.put", given, { transfer: [value.buffer] }).catch(() => undefined);
      },
    };
  }
  return stores;
}
