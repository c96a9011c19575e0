/** What `-target` accepts, and what each runs. */
export const targets: Readonly<Record<string, string>> = {
  all: "everything in one process",
  read: "query-frontend and querier",
  write: "distributor and ingester",
  backend: "query-scheduler, index-gateway, compactor and ruler",
  distributor: "takes pushes in",
  ingester: "holds new data until it is in the object store",
  querier: "answers queries",
  "query-frontend": "receives queries, splits them and caches their results",
  "query-scheduler": "queues queries between frontends and queriers",
  "index-gateway": "answers which data there is",
  compactor: "merges, and deletes what is too old",
  ruler: "evaluates rules",
  "pattern-ingester": "finds patterns in new lines",
};
