import type { InstantQuerier } from "@skald/contracts";
import { type ClientQueries, combineLimits } from "@skald/frontend";
import { invalidArgument, systemClock } from "@skald/model";
import {
  httpQuerier,
  LocalRuleStore,
  ObjectRuleStore,
  type RuleStore,
  type RuleTexts,
  rulerActor,
  urlProblem,
} from "@skald/ruler";
import type { Logger } from "@skald/runtime";
import type { Limits } from "@skald/runtime/config";
import { FsStore, type ObjectStore } from "@skald/storage";
import type { Config } from "../config/root.js";
import { storeKind } from "../config/s3-bucket.js";

/** A store of rules; one in a directory of its own is opened before and closed after. */
export interface BuiltRuleStore {
  readonly store: RuleStore;
  readonly files?: Pick<FsStore, "open" | "close">;
}

/** The store that the configuration names: the newer form when it names one, else the older, else that of the data. */
export function buildRuleStore(
  config: Config,
  { store: data, texts }: { readonly store: ObjectStore; readonly texts: RuleTexts },
  log: Logger,
): BuiltRuleStore {
  const { ruler, ruler_storage: newer } = config;
  const onCorrupt = (place: string, error: unknown) =>
    log.error("stored rules cannot be read and are left out", { place, error });
  const objects = (store: ObjectStore): RuleStore =>
    new ObjectRuleStore({ store, texts, nowMs: () => systemClock.nowMs(), onCorrupt });
  const local = (directory: string, key: string): BuiltRuleStore => {
    if (directory === "") throw invalidArgument(`${key} is empty`);
    return { store: new LocalRuleStore({ directory, texts, onCorrupt }) };
  };
  const newerLocal = newer.local.directory;
  const { type, local: olderLocal } = ruler.storage;
  const olderDirectory = olderLocal.directory;
  if (newer.backend === "local") return local(newerLocal, "ruler_storage.local.directory");
  const { dir } = newer.filesystem;
  const ofData = config.storage_config.filesystem.directory;
  if (newer.backend === "filesystem" && dir !== "") {
    if (dir === ofData && storeKind(config) === "filesystem") return { store: objects(data) };
    const files = new FsStore(dir);
    return { store: objects(files), files };
  }
  if (newer.backend === "s3" || type === "s3") {
    if (storeKind(config) === "s3") return { store: objects(data) };
    throw invalidArgument("rules can be in a bucket only where the data is; set storage_config");
  }
  if (type === "local") return local(olderDirectory, "ruler.storage.local.directory");
  if (type === "") return { store: objects(data) };
  throw invalidArgument(`ruler.storage.type: rules cannot be in ${type}; use local or s3`);
}

/** Who answers the expressions of rules: this process, or another one over the query API. */
export function ruleQuerier(
  config: Config,
  limitsOf: (tenant: string) => Limits,
  queries: Pick<ClientQueries, "ask">,
): InstantQuerier {
  const { mode, query_frontend: frontend } = config.ruler.evaluation;
  if (mode === "local") return localQuerier(limitsOf, queries);
  const { address: url } = frontend;
  const tls = {
    certFile: frontend.tls_cert_path,
    keyFile: frontend.tls_key_path,
    caFile: frontend.tls_ca_path,
    serverName: frontend.tls_server_name,
    insecureSkipVerify: frontend.tls_insecure_skip_verify,
  };
  const problem = urlProblem(url);
  if (problem !== undefined)
    throw invalidArgument(
      `ruler.evaluation.query_frontend.address: ${problem}; it is http://host:port`,
    );
  return httpQuerier({ url, tls, limitsOf });
}

/** The queries of rules take their turn among those of their tenant. */
function localQuerier(
  limitsOf: (tenant: string) => Limits,
  queries: Pick<ClientQueries, "ask">,
): InstantQuerier {
  return {
    instant: ({ tenant, query, timeNs }, { signal }) => {
      const params = new URLSearchParams({ query, time: String(timeNs) }).toString();
      const limits = combineLimits([limitsOf(tenant)]);
      const asker = { tenants: [tenant], limits, actors: [rulerActor] };
      return queries.ask(
        { ...asker, endpoint: "rule", variables: {}, params, headers: {} },
        signal,
      );
    },
  };
}
