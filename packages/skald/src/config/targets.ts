/**
 * The modules of a process, each with the modules that it needs: they are built before it, run before it starts, and stop
 * after it. A process without `ingester`, `pattern-ingester`, `deletion` or `index-gateway` asks other processes, through
 * `ingesters`, `pattern-ingesters`, `known-deletes` or `catalog-client`.
 */
export const modules = {
  peers: [],
  "runtime-config": [],
  "worker-pool": [],
  store: ["worker-pool"],
  ingester: ["peers", "runtime-config", "worker-pool", "store"],
  ingesters: ["peers", "runtime-config"],
  "pattern-ingester": ["peers", "runtime-config", "known-deletes"],
  "pattern-ingesters": ["peers"],
  distributor: ["peers", "runtime-config", "worker-pool", "ingesters", "pattern-ingesters"],
  "known-deletes": ["runtime-config", "store"],
  deletion: ["runtime-config", "worker-pool", "store", "ingesters", "compactor-ring"],
  "catalog-client": ["peers", "store"],
  querier: ["peers", "worker-pool", "catalog-client", "ingesters", "known-deletes"],
  "query-frontend": ["runtime-config", "querier", "pattern-ingesters"],
  compactor: ["worker-pool", "store", "deletion", "compactor-ring"],
  "index-gateway": ["peers", "store", "index-gateway-ring"],
  ruler: ["peers", "runtime-config", "worker-pool", "store", "query-frontend", "ruler-ring"],
  "query-scheduler": ["peers", "scheduler-ring"],
  "call-taker": ["peers", "querier"],
  "compactor-ring": [],
  "ruler-ring": [],
  "scheduler-ring": [],
  "index-gateway-ring": [],
} as const satisfies Record<string, readonly string[]>;

export type ModuleName = keyof typeof modules;

export interface Target {
  /** Its description, for `-list-targets`. */
  readonly says: string;
  /** Its modules; the modules that these need come with them. */
  readonly modules: readonly ModuleName[];
  /** Modules whose routes it does not serve. */
  readonly hides?: readonly ModuleName[];
}

const write = ["ingester", "distributor"] as const;
const read = ["query-frontend", "call-taker"] as const;
/** The querier that evaluates rules has no routes. */
const unseen = ["query-frontend"] as const;

/** The values of `-target`. */
export const targets = {
  all: {
    says: "everything in one process",
    modules: [
      ...write,
      ...read,
      "pattern-ingester",
      "deletion",
      "compactor",
      "ruler",
      "query-scheduler",
      "index-gateway",
    ],
  },
  read: { says: "query-frontend and querier", modules: read },
  write: { says: "distributor and ingester", modules: write },
  backend: {
    says: "query-scheduler, index-gateway, compactor, ruler and pattern-ingester",
    modules: ["query-scheduler", "index-gateway", "compactor", "ruler", "pattern-ingester"],
    hides: unseen,
  },
  distributor: { says: "takes pushes in", modules: ["distributor"] },
  ingester: { says: "holds new data until it is in the object store", modules: ["ingester"] },
  querier: { says: "answers queries", modules: read },
  "query-frontend": {
    says: "receives queries, splits them and caches their results",
    modules: ["query-frontend"],
  },
  "query-scheduler": {
    says: "queues queries between frontends and queriers",
    modules: ["query-scheduler"],
  },
  "index-gateway": { says: "answers which data there is", modules: ["index-gateway"] },
  compactor: { says: "merges, and deletes what is too old", modules: ["compactor"] },
  ruler: { says: "evaluates rules", modules: ["peers", "ruler"], hides: unseen },
  "pattern-ingester": { says: "finds patterns in new lines", modules: ["pattern-ingester"] },
} as const satisfies Readonly<Record<string, Target>>;

/** Modules that are built first if the process has them, because others use them. */
const early: readonly ModuleName[] = ["ingester", "deletion", "pattern-ingester"];

/** The modules of targets, each after the modules that it needs. The targets must be known. */
export function modulesOf(names: readonly string[]): ModuleName[] {
  const all = reachable(names.flatMap((name) => targets[name as keyof typeof targets].modules));
  const found = new Set<ModuleName>();
  const add = (name: ModuleName) => {
    for (const needed of modules[name]) add(needed);
    found.add(name);
  };
  for (const name of early) if (all.has(name)) add(name);
  for (const name of all) add(name);
  return [...found];
}

/** Whether a process of these targets serves the routes of a module. */
export function shows(names: readonly string[], module: ModuleName): boolean {
  return names.some((name) => {
    const target: Target = targets[name as keyof typeof targets];
    return reachable(target.modules).has(module) && !target.hides?.includes(module);
  });
}

function reachable(wanted: readonly ModuleName[]): Set<ModuleName> {
  const found = new Set<ModuleName>();
  const add = (name: ModuleName) => {
    found.add(name);
    for (const needed of modules[name]) add(needed);
  };
  for (const name of wanted) add(name);
  return found;
}
