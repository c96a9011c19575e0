import { createHash } from "node:crypto";
import { parseSelector } from "@skald/logql";
import {
  compileMatchers,
  formatRfc3339,
  invalidArgument,
  type Labels,
  labelsFromObject,
  labelsToObject,
} from "@skald/model";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  parseTenants,
  type Route,
  type TenantOptions,
} from "@skald/transport";
import { type Alert, AlertingRule } from "../evaluate/alerting-rule.js";
import type { GroupRunner, RuleStatus } from "../evaluate/group-runner.js";
import type { Ruler } from "../ruler.js";
import { nameOfRule } from "../rules/rule-group.js";
import { statusDocs } from "./rule-docs.js";
import { statusAnswer, withStatusErrors } from "./status-answer.js";

const prefixes = ["/compat/api/v1", "/prometheus/api/v1"];
/** What Go prints of a time that was not set. */
const noTime = "0001-01-01T00:00:00Z";

/** Rules and alerts as they stand, in the form of Prometheus. */
export function ruleStatusRoutes(ruler: Pick<Ruler, "groupsOf">, tenancy: TenantOptions): Route[] {
  const rules: HttpHandler = (request) =>
    listRules(ruler.groupsOf(tenantOf(request, tenancy)), request);
  const alerts: HttpHandler = (request) => {
    const groups = ruler.groupsOf(tenantOf(request, tenancy));
    const found = groups.flatMap(({ rules: all }) => all.flatMap(({ work }) => alertsOf(work)));
    return statusAnswer(200, { alerts: found });
  };
  return prefixes.flatMap((prefix) => [
    {
      methods: ["GET"],
      path: `${prefix}/rules`,
      handler: withStatusErrors(rules),
      docs: statusDocs.rules,
    },
    {
      methods: ["GET"],
      path: `${prefix}/alerts`,
      handler: withStatusErrors(alerts),
      docs: statusDocs.alerts,
    },
  ]);
}

function tenantOf({ headers }: HttpRequest, tenancy: TenantOptions): string {
  const tenants = parseTenants(headers["x-scope-orgid"], tenancy);
  if (tenants.length > 1) throw invalidArgument("too many org ids found");
  return tenants[0] as string;
}

function listRules(groups: readonly GroupRunner[], { params }: HttpRequest): HttpResponse {
  const isWanted = ruleFilter(params);
  const files = valuesOf(params, "file");
  const names = valuesOf(params, "rule_group");
  const hidesAlerts = readFlag(params, "exclude_alerts");
  const found = groups
    .filter(({ placed }) => isIn(files, placed.namespace) && isIn(names, placed.group.name))
    .map((runner) => ({ runner, rules: runner.rules.filter(isWanted) }))
    .filter(({ rules, runner }) => rules.length > 0 || runner.rules.length === 0);
  const { page, next } = cutPage(found, params);
  const data = page.map(({ runner, rules }) => groupOf(runner, rules, hidesAlerts));
  return statusAnswer(200, {
    groups: data,
    ...(next === undefined ? {} : { groupNextToken: next }),
  });
}

function ruleFilter(params: URLSearchParams): (status: RuleStatus) => boolean {
  const type = (params.get("type") ?? "").toLowerCase();
  if (type !== "" && type !== "alert" && type !== "record")
    throw invalidArgument(`not supported value ${JSON.stringify(params.get("type"))}`);
  const names = valuesOf(params, "rule_name");
  const matches = valuesOf(params, "match").map((text) => compileMatchers(parseSelector(text)));
  return ({ rule }) => {
    if (type !== "" && (type === "alert") !== (rule.alert !== "")) return false;
    if (!isIn(names, nameOfRule(rule))) return false;
    if (matches.length === 0) return true;
    const labels = labelsFromObject(rule.labels);
    return matches.some((test) => test(labels));
  };
}

/** Values of a parameter, with or without brackets behind its name. */
function valuesOf(params: URLSearchParams, name: string): string[] {
  return [...params.getAll(name), ...params.getAll(`${name}[]`)];
}

function isIn(wanted: readonly string[], value: string): boolean {
  return wanted.length === 0 || wanted.includes(value);
}

function readFlag(params: URLSearchParams, name: string): boolean {
  const text = params.get(name) ?? "";
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (text === "" || /^(0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw invalidArgument(`invalid value ${JSON.stringify(text)} for parameter ${name}`);
}

interface Found {
  readonly runner: GroupRunner;
  readonly rules: readonly RuleStatus[];
}

/** The groups behind `group_next_token`, at most `group_limit`, and the token of what follows them. */
function cutPage(
  found: readonly Found[],
  params: URLSearchParams,
): { page: readonly Found[]; next?: string } {
  const limitText = params.get("group_limit") ?? "";
  const token = params.get("group_next_token") ?? "";
  const limit = limitText === "" ? Number.POSITIVE_INFINITY : Number(limitText);
  if (!(limit > 0) || (Number.isFinite(limit) && !Number.isInteger(limit)))
    throw invalidArgument(`invalid group limit value: ${JSON.stringify(limitText)}`);
  if (token !== "" && limitText === "")
    throw invalidArgument("group_limit needs to be set in order to paginate over the groups");
  const start = token === "" ? 0 : found.findIndex(({ runner }) => tokenOf(runner) === token);
  if (start < 0)
    throw invalidArgument(`invalid group_next_token ${JSON.stringify(token)}: group not found`);
  const page = found.slice(start, start + limit);
  const following = found[start + limit];
  return following === undefined ? { page } : { page, next: tokenOf(following.runner) };
}

/** Names the group that a page begins with. */
function tokenOf({ key }: GroupRunner): string {
  return createHash("sha1").update(key).digest("hex");
}

function groupOf(runner: GroupRunner, rules: readonly RuleStatus[], hidesAlerts: boolean) {
  const { placed, schedule, lastEvaluationMs, evaluationSeconds } = runner;
  return {
    name: placed.group.name,
    file: placed.namespace,
    rules: rules.map((status) => ruleOf(status, hidesAlerts)),
    interval: schedule.intervalMs / 1000,
    limit: placed.group.limit,
    lastEvaluation: timeOf(lastEvaluationMs),
    evaluationTime: evaluationSeconds,
  };
}

function ruleOf(status: RuleStatus, hidesAlerts: boolean) {
  const { rule, query, work, health, lastError, lastEvaluationMs, evaluationSeconds } = status;
  const common = { health, lastError };
  const last = { lastEvaluation: timeOf(lastEvaluationMs), evaluationTime: evaluationSeconds };
  const { labels } = rule;
  if (!(work instanceof AlertingRule))
    return { name: rule.record, query, labels, ...common, type: "recording", ...last };
  return {
    state: work.state,
    name: rule.alert,
    query,
    duration: rule.forMs / 1000,
    ...(rule.keepFiringForMs > 0 ? { keepFiringFor: rule.keepFiringForMs / 1000 } : {}),
    labels,
    annotations: rule.annotations,
    ...(hidesAlerts ? {} : { alerts: alertsOf(work) }),
    ...common,
    type: "alerting",
    ...last,
  };
}

function alertsOf(work: RuleStatus["work"]) {
  return work instanceof AlertingRule ? work.alerts().map(alertOf) : [];
}

function alertOf({ labels, annotations, state, activeAtMs, keptSinceMs, value }: Alert) {
  const kept = keptSinceMs === undefined ? {} : { keepFiringSince: timeOf(keptSinceMs) };
  return {
    labels: plain(labels),
    annotations: plain(annotations),
    state,
    activeAt: timeOf(activeAtMs),
    ...kept,
    value: exponential(value),
  };
}

function plain(labels: Labels): Record<string, string> {
  return labelsToObject(labels);
}

function timeOf(ms: number | undefined): string {
  return ms === undefined ? noTime : formatRfc3339(BigInt(ms) * 1_000_000n);
}

/** `1.2e+01`: as many digits as the number needs. */
function exponential(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}
