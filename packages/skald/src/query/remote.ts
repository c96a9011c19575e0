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
  ingester: [
    "select",
    "changes",
    "release",
    "scan",
    "measure",
    "volumes",
    "streams",
    "labels",
    "duplicates",
    "matches",
    "digests",
    "rowHashes",
  ],
  catalog: ["list", "count"],
  scanner: [
    "sharedRows",
    "scan",
    "measure",
    "volumes",
    "streams",
    "labels",
    "duplicates",
    "matches",
    "digests",
    "rowHashes",
  ],
  deletes: ["active"],
} as const;

interface Called {
  readonly message: unknown;
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
      host[`${service}.${name}`] = async ({ message, options }: Called, { signal }) => {
        const value = await (target[name] as Method).call(target, message, { ...options, signal });
        const isBytes = (name === "scan" || name === "volumes") && value instanceof Uint8Array;
        if (!isBytes) return { value };
        // What a scan found moves on; nobody here looks at it. What came over a connection may share its memory.
        const isAlone = value.byteLength === value.buffer.byteLength;
        const own = isAlone ? value : new Uint8Array(value);
        return { value: own, transfer: [own.buffer as ArrayBuffer] };
      };
    }
  }
  return host;
}

type Method = (message: unknown, options: CallOptions) => Promise<unknown>;

/** The services of the process that runs a job, as contracts. */
export function remoteServices({ call }: JobContext): Required<Services> {
  const service = (name: keyof typeof calls) =>
    Object.fromEntries(
      calls[name].map((method) => [
        method,
        (message: unknown, { signal, ...options }: CallOptions) =>
          call(`${name}.${method}`, { message, options } satisfies Called, { signal }),
      ]),
    );
  return {
    ingester: service("ingester"),
    catalog: service("catalog"),
    scanner: service("scanner"),
    deletes: service("deletes"),
  } as unknown as Required<Services>;
}
