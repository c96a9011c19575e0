import type { CallOptions, Catalog, Deletes, HeldRows, SegmentScanner } from "@skald/contracts";
import type { HostFunction, JobContext } from "@skald/runtime";
import type { LocalRef } from "@skald/storage";

/** What a query thread asks of the thread that holds the ingester: contracts, call by call. */
export interface Services {
  readonly ingester: HeldRows;
  readonly catalog: Catalog;
  /** Scans segments of the store. */
  readonly scanner: SegmentScanner<LocalRef>;
  /** Absent where nothing is ever deleted by request. */
  readonly deletes?: Deletes | undefined;
}

const calls = {
  ingester: ["select", "changes", "release", "run"],
  catalog: ["list", "count"],
  scanner: ["run"],
  deletes: ["active"],
} as const;

interface Called {
  /** What the method is given before its options: a message, or a kind of scan and a task. */
  readonly given: readonly unknown[];
  /** The options of the call but its signal. */
  readonly options: object;
}

/** The functions that jobs call for what `remoteServices` gives them. */
export function hostOf(services: Services): Record<string, HostFunction> {
  const host: Record<string, HostFunction> = {};
  for (const [service, names] of Object.entries(calls)) {
    const target = services[service as keyof Services] as Record<string, Method> | undefined;
    if (target === undefined) continue;
    for (const name of names) {
      host[`${service}.${name}`] = async ({ given, options }: Called, { signal }) => {
        const method = target[name] as Method;
        const value = await method.call(target, ...given, { ...options, signal });
        if (!(value instanceof Uint8Array)) return { value };
        // The bytes move to the thread. Those that came over a connection may share their memory with others.
        const isAlone = value.byteLength === value.buffer.byteLength;
        const own = isAlone ? value : new Uint8Array(value);
        return { value: own, transfer: [own.buffer as ArrayBuffer] };
      };
    }
  }
  return host;
}

type Method = (...given: unknown[]) => Promise<unknown>;

/** The services of the process that runs a job, as contracts. */
export function remoteServices({ call }: JobContext): Required<Services> {
  const service = (name: keyof typeof calls) =>
    Object.fromEntries(
      calls[name].map((method) => [
        method,
        (...all: unknown[]) => {
          const { signal, ...options } = all.at(-1) as CallOptions;
          const called: Called = { given: all.slice(0, -1), options };
          return call(`${name}.${method}`, called, { signal });
        },
      ]),
    );
  return {
    ingester: service("ingester"),
    catalog: service("catalog"),
    scanner: service("scanner"),
    deletes: service("deletes"),
  } as unknown as Required<Services>;
}
