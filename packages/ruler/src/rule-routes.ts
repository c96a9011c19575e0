import { errorCodeOf, invalidArgument, notFound, SkaldError, tooLarge } from "@skald/model";
import {
  type EndpointDocs,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  type ParamDocs,
  parseTenant,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";
import type { Ruler } from "./ruler.js";
import { plainGroup } from "./rules/group-yaml.js";
import { maxGroupBytes, type PlacedGroup, type Rule } from "./rules/rule-group.js";
import type { RuleTexts } from "./rules/rule-texts.js";
import { common, statusAnswer } from "./status-routes.js";

/** Paths of the rules API, under Skald's and Loki's names. */
const prefixes = ["/service/api/v1", "/loki/api/v1", "/api/legacy", "/api/prom"];

/** Groups of rules as YAML: list, read, set, delete. */
export function ruleRoutes(ruler: Ruler, texts: RuleTexts, tenancy: TenantOptions): Route[] {
  const call = new RuleCalls(ruler, texts, tenancy);
  const table: readonly [string, string, HttpHandler, EndpointDocs][] = [
    ["GET", "", (request) => call.list(request), ruleDocs.list],
    ["GET", "/:namespace", (request) => call.list(request), ruleDocs.listOne],
    ["GET", "/:namespace/:group", (request) => call.get(request), ruleDocs.get],
    ["POST", "/:namespace", (request) => call.set(request), ruleDocs.set],
    ["DELETE", "/:namespace", (request) => call.deleteNamespace(request), ruleDocs.deleteNamespace],
    ["DELETE", "/:namespace/:group", (request) => call.delete(request), ruleDocs.delete],
  ];
  return prefixes.flatMap((prefix) =>
    table.map(([method, path, handler, docs]) => ({
      methods: [method],
      path: `${prefix}/rules${path}`,
      handler: withTextErrors(handler),
      takesBody: true,
      docs,
    })),
  );
}

class RuleCalls {
  readonly #ruler: Ruler;
  readonly #texts: RuleTexts;
  readonly #tenancy: TenantOptions;

  constructor(ruler: Ruler, texts: RuleTexts, tenancy: TenantOptions) {
    this.#ruler = ruler;
    this.#texts = texts;
    this.#tenancy = tenancy;
  }

  async list(request: HttpRequest): Promise<HttpResponse> {
    const { signal, variables } = request;
    const tenant = this.#tenantOf(request);
    const namespace = variables.namespace === undefined ? undefined : nameOf(variables.namespace);
    const all = await this.#ruler.list(tenant, { signal }, namespace);
    const groups = withLabels(all, request.params.get("labels") ?? "");
    if (groups.length === 0) throw notFound("no rule groups found");
    const files: Record<string, unknown[]> = Object.create(null);
    for (const { namespace: file, group } of groups) {
      files[file] ??= [];
      files[file].push(plainGroup(group));
    }
    return this.#yaml(new Map(Object.entries(files)), tenant, signal);
  }

  async get(request: HttpRequest): Promise<HttpResponse> {
    const { signal } = request;
    const name = this.#groupName(request);
    return this.#yaml(plainGroup(await this.#ruler.get(name, { signal })), name.tenant, signal);
  }

  async set(request: HttpRequest): Promise<HttpResponse> {
    const { body, signal, variables } = request;
    const tenant = this.#tenantOf(request);
    const namespace = nameOf(variables.namespace as string);
    if (body.length > maxGroupBytes)
      throw tooLarge(`rule group is larger than ${maxGroupBytes} bytes`);
    const { group, problems } = await this.#texts.readGroup(body, { tenant, signal });
    if (problems.length > 0) throw invalidArgument(problems.join(", "));
    await this.#ruler.set({ tenant, namespace, group }, { signal });
    return statusAnswer(202, null);
  }

  /** Deletes a group if it exists. */
  async delete(request: HttpRequest): Promise<HttpResponse> {
    await this.#ruler.delete(this.#groupName(request), { signal: request.signal });
    return statusAnswer(202, null);
  }

  async deleteNamespace(request: HttpRequest): Promise<HttpResponse> {
    const { signal, variables } = request;
    const tenant = this.#tenantOf(request);
    await this.#ruler.deleteNamespace(tenant, nameOf(variables.namespace as string), { signal });
    return statusAnswer(202, null);
  }

  async #yaml(plain: unknown, tenant: string, signal: AbortSignal): Promise<HttpResponse> {
    const body = await this.#texts.write(plain, { tenant, signal });
    return { status: 200, headers: { "content-type": "application/yaml" }, body };
  }

  #groupName(request: HttpRequest) {
    const { namespace, group } = request.variables;
    const tenant = this.#tenantOf(request);
    return { tenant, namespace: nameOf(namespace as string), name: nameOf(group as string) };
  }

  #tenantOf({ headers }: HttpRequest): string {
    return parseTenant(headers["x-scope-orgid"], this.#tenancy);
  }
}

/** A name of the path, unescaped once more: a slash is sent as `%252F`. */
function nameOf(variable: string): string {
  let name: string;
  try {
    name = decodeURIComponent(variable);
  } catch {
    throw invalidArgument(`${JSON.stringify(variable)} cannot be unescaped`);
  }
  if (
    name.trim() === "" ||
    name === "." ||
    name === ".." ||
    name.startsWith("/") ||
    name.includes("../")
  )
    throw invalidArgument(`invalid name ${JSON.stringify(name)}`);
  return name;
}

/** Keeps rules that have any of the labels `name:value,name:value`; all when none are given. */
function withLabels(groups: readonly PlacedGroup[], filter: string): readonly PlacedGroup[] {
  if (filter === "") return groups;
  const wanted = filter.split(",").map((pair) => {
    const [name = "", ...value] = pair.split(":");
    return [name.trim(), value.join(":").trim()] as const;
  });
  const isWanted = ({ labels }: Rule) => wanted.some(([name, value]) => labels[name] === value);
  return groups
    .map((placed) => ({
      ...placed,
      group: { ...placed.group, rules: placed.group.rules.filter(isWanted) },
    }))
    .filter(({ group }) => group.rules.length > 0);
}

/** Errors of these endpoints are texts that end with a line feed. */
function withTextErrors(handler: HttpHandler): HttpHandler {
  return async (request) => {
    try {
      return await handler(request);
    } catch (error) {
      if (!(error instanceof SkaldError) || errorCodeOf(error) === "internal") throw error;
      return textResponse(error.status, `${error.message}\n`);
    }
  };
}

const namespace: ParamDocs = {
  name: "namespace",
  type: "text",
  required: true,
  says: "In the path: stands for a file of rules.",
};
const group: ParamDocs = { name: "group", type: "text", required: true, says: "In the path." };
const labels: ParamDocs = {
  name: "labels",
  type: "text",
  fallback: "all groups",
  says: "Only groups with rules that have these labels: `name:value`, with commas.",
};
const taken = { 202: "Taken; it counts from the next look at the store on." };
const none = { 404: "there is none" };
const body = "name: errors\nrules:\n  - alert: A\n    expr: sum(rate({app=`shop`}[1m])) > 1\n";

/** The documentation of each endpoint of the rules API. */
const ruleDocs = {
  list: {
    ...common,
    says: "Lists groups of rules by namespace.",
    params: [labels],
    answers: { 200: "YAML: namespaces, each with its groups." },
    errors: none,
    example: { params: { labels: "team:none" }, status: 404, contains: "no rule groups found" },
  },
  listOne: {
    ...common,
    says: "Lists the groups of a namespace.",
    params: [namespace, labels],
    answers: { 200: "YAML: the namespace with its groups." },
    errors: none,
    example: { variables: { namespace: "none" }, status: 404, contains: "no rule groups found" },
  },
  get: {
    ...common,
    says: "Shows a group.",
    params: [namespace, group],
    answers: { 200: "YAML: the group." },
    errors: none,
    example: {
      variables: { namespace: "none", group: "none" },
      status: 404,
      contains: "group does not exist",
    },
  },
  set: {
    ...common,
    says: "Sets a group, in place of one of its name.",
    params: [namespace],
    bodies: { "application/yaml": "A group: `name`, `interval`, `rules` and what else Loki has." },
    answers: taken,
    errors: { 400: "a group that is not right, with the place where; a limit of the tenant" },
    example: { variables: { namespace: "shop" }, body, status: 202 },
  },
  deleteNamespace: {
    ...common,
    says: "Deletes a namespace.",
    params: [namespace],
    answers: taken,
    errors: none,
    example: { variables: { namespace: "none" }, status: 404 },
  },
  delete: {
    ...common,
    says: "Deletes a group, if it is there.",
    params: [namespace, group],
    answers: taken,
    example: { variables: { namespace: "shop", group: "none" }, status: 202 },
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;
