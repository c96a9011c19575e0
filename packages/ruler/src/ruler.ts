import { join } from "node:path";
import type { InstantQuerier, Rules } from "@skald/contracts";
import { type Clock, invalidArgument } from "@skald/model";
import { type Logger, Semaphore, sleep } from "@skald/runtime";
import type { Metrics } from "@skald/runtime/metrics";
import { statusOf } from "./all-rulers.js";
import type { RulerConfig } from "./config.js";
import { type AlertKeeper, AlertStates } from "./evaluate/alert-states.js";
import { GroupMetrics, type GroupOptions, GroupRunner } from "./evaluate/group-runner.js";
import { plainGroup } from "./rules/group-yaml.js";
import { identityOf, keyOfGroup, type PlacedGroup, type RuleGroup } from "./rules/rule-group.js";
import type { CallOptions, GroupName, RuleStore } from "./rules/rule-store.js";
import { Alertmanagers, urlProblem } from "./send/alertmanagers.js";
import { compileRelabels } from "./send/relabel.js";
import { RemoteWrite, type TenantRemoteWrite } from "./send/remote-write.js";

/** Limits of a tenant that the ruler uses. */
export interface RulerTenantLimits extends TenantRemoteWrite {
  /** 0: no limit. */
  readonly ruler_max_rules_per_rule_group: number;
  readonly ruler_max_rule_groups_per_tenant: number;
  /** ms; groups with a shorter interval get this. */
  readonly ruler_min_rule_evaluation_interval: number;
}

export interface RulerDeps {
  readonly config: RulerConfig;
  readonly store: RuleStore;
  readonly querier: InstantQuerier;
  readonly limitsOf: (tenant: string) => RulerTenantLimits;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Whether this ruler evaluates the group or rule of these names; all when absent. */
  readonly owns?: (tenant: string, names: readonly string[]) => boolean;
  /** Keeps alerts where other rulers find them; absent when there are no other rulers. */
  readonly sharedAlerts?: AlertKeeper;
  /** Called when stored rules were changed through this ruler. */
  readonly onChanged?: () => void;
}

/** Groups to evaluate at a time, of all tenants and of one tenant. */
const maxEvaluations = 16;
const maxTenantEvaluations = 8;
/** Bytes on disk of one tenant's log while samples cannot be sent. */
const maxLogBytes = 256 * 1024 * 1024;

/** Keeps the rules of tenants and evaluates them, sends alerts to Alertmanagers and samples to remote write. */
export class Ruler {
  readonly #deps: RulerDeps;
  readonly #groups = new Map<string, { runner: GroupRunner; text: string }>();
  readonly #options: GroupOptions;
  readonly #isByRule: boolean;
  readonly #states: AlertStates;
  readonly #metrics: GroupMetrics;
  readonly #alertmanagers: Alertmanagers;
  readonly #remoteWrite: RemoteWrite | undefined;
  readonly #turn = new Semaphore(maxEvaluations);
  readonly #tenantTurns = new Map<string, Semaphore>();
  readonly #syncFailures;
  readonly #abort = new AbortController();
  /** Syncs run one after the other. */
  #syncing: Promise<void> = Promise.resolve();

  /** Throws invalid_argument for a configuration that cannot work. */
  constructor(deps: RulerDeps) {
    const { clock, config, log, metrics } = deps;
    this.#deps = deps;
    this.#states = new AlertStates(join(config.wal.dir, "alerts"));
    this.#metrics = new GroupMetrics(metrics, { hidesGroups: config.disable_rule_group_label });
    this.#alertmanagers = new Alertmanagers({ options: alertmanagerOptions(config), log, metrics });
    this.#syncFailures = metrics.counter(
      "ruler_sync_failures_total",
      "Looks for rules that failed.",
    );
    this.#options = groupOptions(config);
    this.#isByRule = config.sharding_algo === "by-rule";
    const options = remoteWriteOptions(config);
    if (!config.remote_write.enabled) return;
    if (Object.keys(options.clients).length === 0)
      throw invalidArgument("ruler.remote_write is enabled but no clients are configured");
    const isUsed = (tenant: string) => this.groupsOf(tenant).length > 0;
    this.#remoteWrite = new RemoteWrite({
      options,
      limitsOf: deps.limitsOf,
      clock,
      log,
      metrics,
      isUsed,
    });
  }

  async start(): Promise<void> {
    try {
      await this.#states.open();
    } catch (error) {
      // The ruler starts anyway: most processes have no rules.
      this.#deps.log.error("alerts cannot be kept over a restart; set ruler.wal.dir", { error });
    }
    await this.#alertmanagers.start();
    await this.#remoteWrite?.start();
  }

  /** Reads the rules again and again until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    // A store that does not answer must not delay the end.
    signal.addEventListener("abort", () => this.#abort.abort(), { once: true });
    while (!signal.aborted) {
      await this.sync();
      await sleep(this.#deps.config.poll_interval, signal).catch(() => undefined);
    }
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#syncing;
    await Promise.all(
      [...this.#groups.values()].map(async ({ runner }) => {
        await runner.stop();
        await runner.handOver();
      }),
    );
    await this.#alertmanagers.stop();
    await this.#remoteWrite?.stop();
  }

  /** The evaluated groups of a tenant, by namespace and name. */
  groupsOf(tenant: string): GroupRunner[] {
    return [...this.#groups.values()]
      .map(({ runner }) => runner)
      .filter(({ placed }) => placed.tenant === tenant)
      .sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** This ruler as other rulers see it. */
  get rules(): Rules {
    return {
      groups: async ({ tenant }) => this.groupsOf(tenant).map(statusOf),
      changed: async () => void this.sync(),
    };
  }

  list(tenant: string, options: CallOptions, namespace?: string): Promise<readonly PlacedGroup[]> {
    return this.#deps.store.list(tenant, options, namespace);
  }

  /** Throws not_found. */
  get(name: GroupName, options: CallOptions): Promise<RuleGroup> {
    return this.#deps.store.get(name, options);
  }

  /** Creates or replaces a checked group. Throws invalid_argument when it exceeds a limit. */
  async set(placed: PlacedGroup, options: CallOptions): Promise<void> {
    const { limitsOf, store } = this.#deps;
    const { tenant, namespace, group } = placed;
    const {
      ruler_max_rules_per_rule_group: maxRules,
      ruler_max_rule_groups_per_tenant: maxGroups,
    } = limitsOf(tenant);
    if (maxRules > 0 && group.rules.length > maxRules)
      throw overLimit("rules per rule group", maxRules, group.rules.length);
    if (maxGroups > 0) {
      const others = (await store.list(tenant, options)).filter(
        (other) => other.namespace !== namespace || other.group.name !== group.name,
      );
      if (others.length >= maxGroups) throw overLimit("rule groups", maxGroups, others.length + 1);
    }
    await store.set(placed, options);
    this.#changed();
  }

  async delete(name: GroupName, options: CallOptions): Promise<void> {
    await this.#deps.store.delete(name, options);
    this.#changed();
  }

  /** Throws not_found. */
  async deleteNamespace(tenant: string, namespace: string, options: CallOptions): Promise<void> {
    await this.#deps.store.deleteNamespace(tenant, namespace, options);
    this.#changed();
  }

  /** Evaluates the groups that are in the store from now on. Never throws. */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(async () => {
      if (this.#abort.signal.aborted) return;
      try {
        await this.#sync();
      } catch (error) {
        if (this.#abort.signal.aborted) return;
        this.#syncFailures.inc();
        this.#deps.log.error("rules cannot be read; those known are still evaluated", { error });
      }
    });
    return this.#syncing;
  }

  #changed(): void {
    void this.sync();
    this.#deps.onChanged?.();
  }

  async #sync(): Promise<void> {
    const { store } = this.#deps;
    const wanted = new Map<string, PlacedGroup>();
    const stored = new Set<string>();
    for (const placed of await store.listAll({ signal: this.#abort.signal })) {
      stored.add(keyOfGroup(placed));
      const own = this.#isWanted(placed) ? this.#ownPartOf(placed) : undefined;
      if (own !== undefined) wanted.set(keyOfGroup(placed), own);
    }
    const gone = [...this.#groups].filter(([key]) => !wanted.has(key));
    await Promise.all(
      gone.map(async ([key, { runner }]) => {
        this.#groups.delete(key);
        await runner.stop();
        this.#metrics.removed(runner.placed);
        // A group that is still stored now belongs to another ruler.
        if (stored.has(key)) await runner.handOver();
        else {
          await runner.end();
          await this.#deps.sharedAlerts?.remove(key);
        }
        await this.#states.remove(key);
      }),
    );
    await Promise.all([...wanted].map(([key, placed]) => this.#put(key, placed)));
  }

  #isWanted(placed: PlacedGroup): boolean {
    const { config, log } = this.#deps;
    const { tenant, namespace, group, problem } = placed;
    const { enabled_tenants: enabled, disabled_tenants: disabled } = config;
    if (enabled.length > 0 && !enabled.includes(tenant)) return false;
    if (disabled.includes(tenant)) return false;
    if (problem === undefined) return true;
    log.error("a stored rule group is not evaluated", {
      tenant,
      namespace,
      group: group.name,
      problem,
    });
    return false;
  }

  /** The part of a group that this ruler owns: all or nothing, or some rules with `by-rule`. */
  #ownPartOf(placed: PlacedGroup): PlacedGroup | undefined {
    const { tenant, namespace, group } = placed;
    const { owns } = this.#deps;
    if (owns === undefined) return placed;
    const names = [tenant, namespace, group.name];
    if (!this.#isByRule) return owns(tenant, names) ? placed : undefined;
    const all = group.rules.map((rule, place) => ({ rule, place }));
    const own = all.filter(({ rule }) => owns(tenant, [...names, identityOf(rule)]));
    if (own.length === 0) return undefined;
    const rules = own.map(({ rule }) => rule);
    return { ...placed, group: { ...group, rules }, places: own.map(({ place }) => place) };
  }

  async #put(key: string, placed: PlacedGroup): Promise<void> {
    const known = this.#groups.get(key);
    // A store returns an unchanged group as the same object.
    const isSame = placed.places === undefined && known?.runner.placed.group === placed.group;
    const intervalMs = this.#intervalOf(placed);
    if (isSame && known?.runner.schedule.intervalMs === intervalMs) return;
    const text = JSON.stringify([plainGroup(placed.group), placed.places, intervalMs]);
    if (known?.text === text) return;
    const runner = this.#runnerOf(placed);
    await this.#prepare(placed.tenant);
    await known?.runner.stop();
    this.#groups.set(key, { runner, text });
    this.#metrics.added(placed, runner.schedule.intervalMs);
    runner.start(known?.runner);
  }

  /** Prepares the remote write of a tenant. An error of one tenant does not stop the others. */
  async #prepare(tenant: string): Promise<void> {
    try {
      await this.#remoteWrite?.prepare(tenant);
    } catch (error) {
      this.#deps.log.error("samples of a tenant cannot be sent", { tenant, error });
    }
  }

  #intervalOf({ tenant, group }: PlacedGroup): number {
    const asked = group.intervalMs || this.#options.intervalMs;
    return Math.max(asked, this.#deps.limitsOf(tenant).ruler_min_rule_evaluation_interval);
  }

  #runnerOf(placed: PlacedGroup): GroupRunner {
    const { clock, log, querier } = this.#deps;
    const remoteWrite = this.#remoteWrite;
    return new GroupRunner(placed, {
      ...{ querier, clock, log, metrics: this.#metrics, states: this.#states },
      shared: this.#deps.sharedAlerts,
      options: { ...this.#options, intervalMs: this.#intervalOf(placed) },
      // The tenant's turn comes first: a group that waits for it holds up nobody else.
      turns: [this.#tenantTurn(placed.tenant), this.#turn],
      notify: (_, expr, alerts) => this.#alertmanagers.send(expr, alerts),
      record:
        remoteWrite && ((tenant, timeMs, samples) => remoteWrite.append(tenant, timeMs, samples)),
    });
  }

  #tenantTurn(tenant: string): Semaphore {
    const known = this.#tenantTurns.get(tenant) ?? new Semaphore(maxTenantEvaluations);
    this.#tenantTurns.set(tenant, known);
    return known;
  }
}

function overLimit(what: string, limit: number, actual: number) {
  return invalidArgument(`per-user ${what} limit (limit: ${limit} actual: ${actual}) exceeded`);
}

function groupOptions(config: RulerConfig): GroupOptions {
  return {
    intervalMs: config.evaluation_interval,
    maxJitterMs: config.evaluation.max_jitter,
    resendDelayMs: config.resend_delay,
    outageToleranceMs: config.for_outage_tolerance,
    gracePeriodMs: config.for_grace_period,
    externalLabels: config.external_labels,
    externalUrl: config.external_url,
    logsQueries: config.query_stats_enabled,
  };
}

function alertmanagerOptions(config: RulerConfig) {
  const { alertmanager_client: client } = config;
  const urls = config.alertmanager_url;
  for (const url of urls) {
    const problem = urlProblem(url);
    if (problem !== undefined) throw invalidArgument(`ruler.alertmanager_url: ${url}: ${problem}`);
  }
  return {
    urls,
    discovers: config.enable_alertmanager_discovery,
    refreshMs: config.alertmanager_refresh_interval,
    capacity: config.notification_queue_capacity,
    relabel: compileRelabels(config.alert_relabel_configs),
    externalLabels: config.external_labels,
    externalUrl: config.external_url,
    datasourceUid: config.datasource_uid,
    connection: {
      timeoutMs: config.notification_timeout,
      headers: {},
      credentials: {
        user: client.basic_auth_username,
        password: client.basic_auth_password,
        type: client.type,
        token: client.credentials,
        tokenFile: client.credentials_file,
      },
    },
  };
}

function remoteWriteOptions({ wal, wal_cleaner: cleaner, remote_write: remote }: RulerConfig) {
  const older = Object.keys(remote.client).length > 0 ? { default: remote.client } : {};
  const clients = { ...older, ...remote.clients };
  return {
    directory: join(wal.dir, "samples"),
    clients,
    addsTenantHeader: remote.add_org_id_header,
    refreshMs: remote.config_refresh_period,
    truncateMs: wal.truncate_frequency,
    minAgeMs: wal.min_age,
    maxAgeMs: wal.max_age,
    cleaner: { minAgeMs: cleaner.min_age, periodMs: cleaner.period },
    maxLogBytes,
  };
}
