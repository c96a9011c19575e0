import { createHash } from "node:crypto";
import type { AlertState, RuleGroupStatus, RuleState } from "@skald/contracts";
import { parseSelector } from "@skald/logql";
import {
  compileMatchers,
  formatRfc3339,
  invalidArgument,
  labelsFromObject,
  labelsToObject,
  SkaldError,
  textForClients,
} from "@skald/model";
import {
  type EndpointDocs,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonTextResponse,
  type ParamDocs,
  parseTenants,
  type Route,
  type TenantOptions,
} from "@skald/transport";
import { type AllRulers, keyOf } from "./all-rulers.js";
import { nameOfRule } from "./rules/rule-group.js";

const prefixes = ["/compat/api/v1", "/prometheus/api/v1"];
/** Go's text for a time that was not set. */
const noTime = "0001-01-01T00:00:00Z";

/** The state of rules and alerts of all rulers, in the form of Prometheus. */
export function ruleStatusRoutes(
  rulers: Pick<AllRulers, "groups">,
  tenancy: TenantOptions,
): Route[] {
  const groupsOf = (request: HttpRequest) =>
    rulers.groups(tenantOf(request, tenancy), { signal: request.signal });
  const rules: HttpHandler = async (request) => {
    const { groups, warnings } = await groupsOf(request);
    return statusAnswer(200, listRules(groups, request), warnings);
  };
  const alerts: HttpHandler = async (request) => {
    const { groups, warnings } = await groupsOf(request);
    const all = groups.flatMap((group) => group.rules.flatMap((rule) => rule.alerts));
    return statusAnswer(200, { alerts: all.map(alertOf) }, warnings);
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
  return tenants[0]!;
}

function listRules(groups: readonly RuleGroupStatus[], { params }: HttpRequest) {
  const isWanted = ruleFilter(params);
  const files = valuesOf(params, "file");
  const names = valuesOf(params, "rule_group");
  const hidesAlerts = readFlag(params, "exclude_alerts");
  const found = groups
    .filter(({ namespace, name }) => isIn(files, namespace) && isIn(names, name))
    .map((group) => ({ group, rules: group.rules.filter(isWanted) }))
    .filter(({ rules, group }) => rules.length > 0 || group.rules.length === 0);
  const { page, next } = cutPage(found, params);
  const data = page.map(({ group, rules }) => groupOf(group, rules, hidesAlerts));
  return { groups: data, ...(next === undefined ? {} : { groupNextToken: next }) };
}

function ruleFilter(params: URLSearchParams): (rule: RuleState) => boolean {
  const type = (params.get("type") ?? "").toLowerCase();
  if (type !== "" && type !== "alert" && type !== "record")
    throw invalidArgument(`not supported value ${JSON.stringify(params.get("type"))}`);
  const names = valuesOf(params, "rule_name");
  const matches = valuesOf(params, "match").map((text) => compileMatchers(parseSelector(text)));
  return (rule) => {
    if (type !== "" && (type === "alert") !== (rule.alert !== "")) return false;
    if (!isIn(names, nameOfRule(rule))) return false;
    if (matches.length === 0) return true;
    const labels = labelsFromObject(labelsToObject(rule.labels));
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
  readonly group: RuleGroupStatus;
  readonly rules: readonly RuleState[];
}

/** The groups from `group_next_token` on, at most `group_limit`, and the token of the next page. */
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
  const start = token === "" ? 0 : found.findIndex(({ group }) => tokenOf(group) === token);
  if (start < 0)
    throw invalidArgument(`invalid group_next_token ${JSON.stringify(token)}: group not found`);
  const page = found.slice(start, start + limit);
  const following = found[start + limit];
  return following === undefined ? { page } : { page, next: tokenOf(following.group) };
}

/** The token of the group that a page starts with. */
function tokenOf(group: RuleGroupStatus): string {
  return createHash("sha1").update(keyOf(group)).digest("hex");
}

function groupOf(group: RuleGroupStatus, rules: readonly RuleState[], hidesAlerts: boolean) {
  return {
    name: group.name,
    file: group.namespace,
    rules: rules.map((rule) => ruleOf(rule, hidesAlerts)),
    interval: group.intervalMs / 1000,
    limit: group.limit,
    lastEvaluation: timeOf(group.lastEvaluationMs),
    evaluationTime: group.evaluationSeconds,
  };
}

function ruleOf(rule: RuleState, hidesAlerts: boolean) {
  const { query, health, lastError } = rule;
  const common = { health, lastError };
  const last = {
    lastEvaluation: timeOf(rule.lastEvaluationMs),
    evaluationTime: rule.evaluationSeconds,
  };
  const labels = labelsToObject(rule.labels);
  if (rule.alert === "")
    return { name: rule.record, query, labels, ...common, type: "recording", ...last };
  return {
    state: rule.state,
    name: rule.alert,
    query,
    duration: rule.forMs / 1000,
    ...(rule.keepFiringForMs > 0 ? { keepFiringFor: rule.keepFiringForMs / 1000 } : {}),
    labels,
    annotations: labelsToObject(rule.annotations),
    ...(hidesAlerts ? {} : { alerts: rule.alerts.map(alertOf) }),
    ...common,
    type: "alerting",
    ...last,
  };
}

function alertOf({ labels, annotations, state, activeAtMs, keptSinceMs, value }: AlertState) {
  const kept = keptSinceMs === undefined ? {} : { keepFiringSince: timeOf(keptSinceMs) };
  return {
    labels: labelsToObject(labels),
    annotations: labelsToObject(annotations),
    state,
    activeAt: timeOf(activeAtMs),
    ...kept,
    value: exponential(value),
  };
}

function timeOf(ms: number | undefined): string {
  return ms === undefined ? noTime : formatRfc3339(BigInt(ms) * 1_000_000n);
}

/** `1.2e+01`, with as many digits as the number needs. */
function exponential(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** An answer in the form of Prometheus, with the special signs of HTML escaped. */
export function statusAnswer(
  status: number,
  data: unknown,
  warnings: readonly string[] = [],
): HttpResponse {
  const told = warnings.length === 0 ? {} : { warnings };
  return jsonTextResponse(
    status,
    escapeHtml({ status: "success", data, errorType: "", error: "", ...told }),
  );
}

/** Turns errors into that form. Authentication errors keep their usual form. */
function withStatusErrors(handler: HttpHandler): HttpHandler {
  return async (request) => {
    try {
      return await handler(request);
    } catch (error) {
      if (
        !(error instanceof SkaldError) ||
        error.code === "unauthenticated" ||
        error.status === 500
      )
        throw error;
      const errorType = error.status < 500 ? "bad_data" : "server_error";
      const told = { status: "error", data: null, errorType, error: textForClients(error) };
      return jsonTextResponse(error.status, escapeHtml(told));
    }
  };
}

function escapeHtml(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

export const common = { group: "Rules", tenant: "one" } as const;

const filter = (name: string, says: string): ParamDocs => ({
  name,
  type: "text",
  repeats: true,
  fallback: "all",
  says,
});

/** The documentation of each endpoint that shows the state of rules. */
const statusDocs = {
  rules: {
    ...common,
    says: "Rules as they stand, in the form of Prometheus.",
    params: [
      { name: "type", type: "text", values: ["alert", "record"], fallback: "both", says: "Kind." },
      filter("rule_name", "Rules of these names; also as `rule_name[]`."),
      filter("rule_group", "Groups of these names; also as `rule_group[]`."),
      filter("file", "Namespaces; also as `file[]`."),
      filter("match", "Selectors that labels of rules have to match; also as `match[]`."),
      { name: "exclude_alerts", type: "boolean", fallback: "false", says: "Leave alerts out." },
      { name: "group_limit", type: "integer", fallback: "all", says: "Most groups of an answer." },
      {
        name: "group_next_token",
        type: "text",
        fallback: "the first groups",
        says: "`groupNextToken` of the answer before; with `group_limit`.",
      },
    ],
    answers: { 200: "`{status, data: {groups}}`." },
    errors: { 400: "a parameter that is bad" },
    example: { params: { type: "alert" }, status: 200, contains: '"groups":' },
  },
  alerts: {
    ...common,
    says: "Alerts that are pending or fire.",
    answers: { 200: "`{status, data: {alerts}}`." },
    example: { status: 200, contains: '"alerts":' },
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;
