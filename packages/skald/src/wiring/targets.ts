/**
 * The parts of a process, each with those that it is built from: they are built before it, run before it starts, and stop
 * after it.
 */
export const modules = {
  "runtime-config": [],
  "worker-pool": [],
  store: ["worker-pool"],
  "pattern-ingester": ["runtime-config"],
  ingester: ["runtime-config", "worker-pool", "store", "pattern-ingester"],
  distributor: ["runtime-config", "worker-pool", "ingester"],
  deletion: ["runtime-config", "worker-pool", "store", "ingester"],
  querier: ["worker-pool", "store", "ingester", "deletion"],
  "query-frontend": ["runtime-config", "querier"],
  compactor: ["worker-pool", "store", "deletion"],
  "service-rings": [],
  ruler: ["runtime-config", "store", "query-frontend"],
} as const satisfies Record<string, readonly string[]>;

export type ModuleName = keyof typeof modules;

export interface Target {
  /** What it runs, for `-list-targets`. */
  readonly says: string;
  /** The modules that it is made of, beside those that they need; absent while only `all` can be run. */
  readonly modules?: readonly ModuleName[];
}

/** What `-target` accepts. */
export const targets: Readonly<Record<string, Target>> = {
  all: {
    says: "everything in one process",
    modules: ["distributor", "query-frontend", "compactor", "ruler", "service-rings"],
  },
  read: { says: "query-frontend and querier" },
  write: { says: "distributor and ingester" },
  backend: { says: "query-scheduler, index-gateway, compactor and ruler" },
  distributor: { says: "takes pushes in" },
  ingester: { says: "holds new data until it is in the object store" },
  querier: { says: "answers queries" },
  "query-frontend": { says: "receives queries, splits them and caches their results" },
  "query-scheduler": { says: "queues queries between frontends and queriers" },
  "index-gateway": { says: "answers which data there is" },
  compactor: { says: "merges, and deletes what is too old" },
  ruler: { says: "evaluates rules" },
  "pattern-ingester": { says: "finds patterns in new lines" },
};

/** The modules of a target with all that they need, each after those. */
export function modulesOf({ modules: wanted = [] }: Target): ModuleName[] {
  const found = new Set<ModuleName>();
  const add = (name: ModuleName) => {
    for (const needed of modules[name]) add(needed);
    found.add(name);
  };
  for (const name of wanted) add(name);
  return [...found];
}
