// Describes the HTTP API from the routes that serve it, as a page and as OpenAPI.
import { isRefused, routeOf } from "../deploy/gateway/routes.mjs";

/** The answers that every endpoint may give. */
const always = {
  400: "A parameter, a header or a body that is bad, with the reason as text.",
  404: "Nobody serves the path.",
  405: "The path is served, but not by this method: `Allow` names those that are.",
  413: "The body is larger than `frontend.max_body_size`.",
  500: "A fault of the program; its log says more.",
  503: "A part that is needed cannot work now; try again.",
};
/** Answers that only some endpoints give. */
const { 404: _, ...usualAnswers } = { ...always, 401: "No tenant is named: `no org id`." };
const tenants = {
  none: "no tenant",
  one: "one tenant",
  many: "one tenant or, with `querier.multi_tenant_queries_enabled`, several: `a|b`",
};

/** docs/http-api.md */
export function apiPage(api, groups, routes) {
  return [
    "# HTTP API",
    "",
    "Written by `node scripts/docs.mjs` from the routes that the process serves: do not edit.",
    "",
    ...introduction(),
    ...gatewayTable(api, routes),
    ...groups.flatMap((group) => {
      const endpoints = api.filter(({ docs }) => docs.group === group);
      if (endpoints.length === 0) return [];
      return [`## ${group}`, "", ...endpoints.flatMap(sectionOf)];
    }),
  ].join("\n");
}

function introduction() {
  return [
    "Each endpoint is served under all names that are listed; those that begin with `/loki`, `/prometheus` and `/api/prom` can be",
    "switched off with `server.reference_paths_enabled`. `server.http_path_prefix` goes before all. Programs read the same from",
    "`openapi.json`.",
    "",
    "**Tenant.** The header `X-Scope-OrgID` names it, unless `auth_enabled` is off. Where one is needed and none is named the answer",
    "is 401; a name may be 768 bytes of letters, digits and ``!-_.*'()``.",
    "",
    "**Parameters** come in the query string or, by POST, as a form (`application/x-www-form-urlencoded`). Of one that is given",
    "twice the first counts. Times are Unix seconds (up to ten digits), nanoseconds, seconds with a fraction, or RFC 3339;",
    "durations are written `1h30m`; spans are durations or seconds; sizes are written `600MB`.",
    "",
    "**Answers** of the query API are JSON, compressed for clients that accept gzip. With `frontend.support_parquet_encoding`, and",
    "`Accept: application/vnd.apache.parquet`, those of `query` and `query_range` are Parquet. With",
    "`X-Service-Response-Encoding-Flags: categorize-labels` (or `X-Loki-...`) labels of streams, metadata and parsed labels are told",
    "apart. `X-Service-Actor-Path: a|b` (or `X-Loki-...`) says who asks within the tenant, for a fair queue.",
    "",
    "**Errors** are text; to clients that accept only `application/json` they are `{status, error, position, hint, limit}`: the",
    "place in the query (`offset` in UTF-16 units, `line` and `column` from 1), a hint of several lines, and the key of the limit",
    "that was reached, where there is one. They have these statuses beside those of the endpoint:",
    "",
    "| Status | When |",
    "|---|---|",
    ...Object.entries({
      ...always,
      401: "No tenant is named, where one is needed: `no org id`.",
      403: "A browser sent it for a page of another origin that `ui.allowed_origins` does not name: a WebSocket, or what is no GET.",
      499: "The client left before it was answered.",
    }).map(([status, when]) => `| ${status} | ${when} |`),
    "",
  ];
}

/** Which service gets each path from the gateway of a cluster. */
function gatewayTable(api, routes) {
  const rows = routes.map((route) => {
    const calls = api.flatMap(({ methods, paths }) =>
      paths
        .filter((path) => routeOf(path.replace(/:\w+/g, "name")) === route)
        .flatMap((path) => methods.map((method) => ({ method, path }))),
    );
    const refused = calls.filter(({ method }) => isRefused(route, method));
    const passed = calls.filter((call) => !refused.includes(call));
    const cells =
      route === routes.at(-1) ? ["all others", ""] : [cell(passed), cell(refused, true)];
    return `| ${[route.says, `\`${route.service}\``, ...cells].join(" | ")} |`;
  });
  return [
    "## Through the gateway",
    "",
    "The gateways of `docker-compose.yml`, `deploy/k8s` and the chart pass each path to one service, and answer 403 to what only",
    "an operator may send: send that to the service itself. `deploy/gateway/routes.mjs` has the routes; `node scripts/docs.mjs`",
    "makes the gateways of it, and this table.",
    "",
    "| What | Service | Passed on | Refused |",
    "|---|---|---|---|",
    ...rows,
    "",
  ];
}

function cell(calls, hasMethods = false) {
  const words = calls.map(({ method, path }) =>
    hasMethods ? `\`${method} ${path}\`` : `\`${path}\``,
  );
  return [...new Set(words)].join(" ");
}

function sectionOf(endpoint) {
  const { methods, paths, targets, docs } = endpoint;
  const [path] = paths;
  const also = paths.slice(1).map((name) => `\`${name}\``);
  const where =
    targets.length > 6 ? "every process" : targets.map((name) => `\`${name}\``).join(", ");
  return [
    `### ${methods.join(", ")} ${path}`,
    "",
    `${docs.says} Needs ${tenants[docs.tenant]}. Targets: ${where}.`,
    "",
    ...(also.length === 0 ? [] : [`Also ${also.join(", ")}.`, ""]),
    ...parametersOf(docs),
    ...bodiesOf(docs),
    ...answersOf(docs),
    ...(docs.differs === undefined ? [] : [`Other than in the original: ${docs.differs}.`, ""]),
    "```sh",
    commandOf(endpoint),
    "```",
    "",
  ];
}

function parametersOf({ params = [] }) {
  if (params.length === 0) return [];
  return [
    "| Parameter | Type | Default | Meaning |",
    "|---|---|---|---|",
    ...params.map((param) => {
      const values = param.values?.map((value) => `\`${value}\``).join(", ");
      const fallback = param.required ? "required" : (param.fallback ?? "");
      const name = `\`${param.name}\`${param.repeats ? ", repeated" : ""}`;
      return `| ${name} | ${values ?? param.type} | ${fallback} | ${param.says} |`;
    }),
    "",
  ];
}

function bodiesOf({ bodies }) {
  if (bodies === undefined) return [];
  const rows = Object.entries(bodies).map(([type, what]) => `| \`${type}\` | ${what} |`);
  return ["| Body | What it holds |", "|---|---|", ...rows, ""];
}

function answersOf({ answers, errors = {} }) {
  const rows = Object.entries({ ...errors, ...answers }).map(([status, what]) => {
    const text = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
    return `| ${status} | ${text}${text.endsWith(".") || text.endsWith("`") ? "" : "."} |`;
  });
  return ["| Status | What it means or carries |", "|---|---|", ...rows, ""];
}

/** An example as a user types it. */
function commandOf({ methods, paths, docs }) {
  const { example, tenant } = docs;
  const method = example.method ?? methods[0];
  const asked = Object.entries(example.params ?? {});
  const headers = Object.entries({
    ...(tenant === "none" ? {} : { "X-Scope-OrgID": "shop" }),
    ...example.headers,
  });
  const path = paths[0].replace(/:(\w+)/g, (_, name) => example.variables?.[name] ?? name);
  const url = `http://localhost:3100${path}`;
  const words = ["curl -s"];
  if (asked.length > 0) words.push("-G");
  if (method !== "GET" && !(method === "POST" && example.body !== undefined))
    words.push(`-X ${method}`);
  for (const [name, value] of headers) words.push(`-H '${name}: ${value}'`);
  words.push(url);
  for (const [name, value] of asked) words.push(`--data-urlencode '${name}=${value}'`);
  if (example.body === undefined) return words.join(" ");
  const body = JSON.stringify(example.body.replaceAll("$NOW", "NOW"));
  return `NOW=$(date +%s%N); ${words.join(" ")} -d ${body.replaceAll("$", "\\$").replaceAll("NOW", "$NOW")}`;
}

/** docs/openapi.json */
export function openApi(api, version) {
  const paths = {};
  for (const endpoint of api) {
    const path = endpoint.paths[0].replace(/:(\w+)/g, "{$1}");
    paths[path] ??= {};
    for (const method of endpoint.methods)
      paths[path][method.toLowerCase()] = operationOf(endpoint, { method, path });
  }
  const security = { tenant: { type: "apiKey", in: "header", name: "X-Scope-OrgID" } };
  return {
    openapi: "3.1.0",
    info: { title: "Skald", version, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
    paths,
    components: {
      securitySchemes: security,
      responses: Object.fromEntries(
        Object.entries(usualAnswers).map(([status, description]) => [status, { description }]),
      ),
    },
  };
}

function operationOf({ docs, paths }, { method, path }) {
  const { params = [], bodies } = docs;
  const isForm = method === "POST" && bodies === undefined && params.length > 0;
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
  const named = params.map((param) => ({
    name: param.name,
    in: inPath.has(param.name) ? "path" : "query",
    description: param.says,
    // The parameter may be in a form instead.
    required: inPath.has(param.name) || (param.required === true && !isForm),
    schema: param.repeats ? { type: "array", items: schemaOf(param) } : schemaOf(param),
    ...(param.repeats ? { style: "form", explode: true } : {}),
  }));
  const content = isForm
    ? { "application/x-www-form-urlencoded": { schema: formOf(params, inPath) } }
    : Object.fromEntries(
        Object.entries(bodies ?? {}).map(([type, what]) => [
          type,
          { schema: { description: what } },
        ]),
      );
  return {
    tags: [docs.group],
    summary: docs.says,
    operationId: `${method}_${path.replace(/[^a-z0-9]+/gi, "_").replace(/^_|_$/g, "")}`,
    ...(paths.length === 1 ? {} : { "x-also-at": paths.slice(1) }),
    ...(docs.tenant === "none" ? {} : { security: [{ tenant: [] }] }),
    parameters: named,
    ...(Object.keys(content).length === 0 ? {} : { requestBody: { content } }),
    responses: responsesOf(docs),
  };
}

/** The answers of this endpoint in full, and the shared ones by name. */
function responsesOf({ answers, errors = {}, tenant }) {
  const usual = Object.keys(usualAnswers).filter((status) => status !== "401" || tenant !== "none");
  const own = Object.entries({ ...errors, ...answers });
  return {
    ...Object.fromEntries(
      usual.map((status) => [status, { $ref: `#/components/responses/${status}` }]),
    ),
    ...Object.fromEntries(own.map(([status, description]) => [status, { description }])),
  };
}

function formOf(params, inPath) {
  const fields = params.filter(({ name }) => !inPath.has(name));
  return {
    type: "object",
    properties: Object.fromEntries(fields.map((param) => [param.name, schemaOf(param)])),
  };
}

function schemaOf({ type, values }) {
  if (values !== undefined) return { type: "string", enum: [...values] };
  if (type === "integer" || type === "boolean") return { type };
  return { type: "string" };
}
