// The routes of the gateway, the one place that says which service gets a path. The nginx.conf files (nginx.mjs), the gateway
// of `npm run cluster` and the table in docs/http-api.md are made of it.

/**
 * The first route whose pattern matches a path counts; a pattern means the same to nginx and to JavaScript.
 *
 * - `refused: "all"`: clients may not use the path; an operator asks the service itself
 * - `refused: "changes"`: clients may only read it (GET and HEAD)
 * - `repeats`: a request changes nothing, so that it is sent to another instance when the first ends without an answer
 * - `once`: a request is sent to one instance only, even when that does not take it
 * - `timeout`: how long an answer may pause, where that is not `usualTimeout`
 */
export const routes = [
  { ...clients("push"), pattern: "^/((loki|service)/api/v1|api/(prom|legacy))/push$" },
  { ...clients("push"), pattern: "^/otlp/v1/logs$" },
  {
    ...clients("push by other protocols"),
    pattern: "^/(insert/|elasticsearch(/|$)|services/collector(/|$)|api/v2/logs$|v1/input$)",
  },
  {
    ...clients("tail", "querier"),
    pattern: "^/((loki|service)/api/v1|api/(prom|legacy))/tail$",
    // A tail stays open for as long as the querier allows.
    timeout: "3700s",
  },
  {
    ...clients("rules", "ruler"),
    pattern: "^/((loki|service)/api/v1|api/(prom|legacy))/rules(/|$)",
  },
  { ...clients("rules", "ruler"), pattern: "^/(prometheus|compat)/api/v1/(rules|alerts)$" },
  {
    ...clients("deletion", "compactor"),
    pattern: "^/(loki|service)/api/v1/delete$",
    // If a request to delete arrived twice, cancelling one would leave the other.
    once: true,
  },
  { ...page("rings", "ingester"), pattern: "^/ring$" },
  { ...page("rings", "distributor"), pattern: "^/distributor/(ring|all_user_stats)$" },
  { ...page("rings", "ruler"), pattern: "^/ruler/ring$" },
  { ...page("rings", "compactor"), pattern: "^/compactor/ring$" },
  { ...page("rings", "query-scheduler"), pattern: "^/scheduler/ring$" },
  { ...page("rings", "index-gateway"), pattern: "^/indexgateway/ring$" },
  { ...page("rings", "pattern-ingester"), pattern: "^/pattern/ring$" },
  { ...page("level of the log", "query-frontend"), pattern: "^/log_level$" },
  {
    says: "ends and flushes",
    service: "ingester",
    refused: "all",
    pattern: "^/(flush$|ingester/)",
  },
  { says: "profiles", service: "query-frontend", refused: "all", pattern: "^/debug/" },
  {
    ...clients("queries, and what every service answers", "query-frontend"),
    pattern: "^/",
    repeats: true,
  },
];

/** How long an answer may pause: the time that a query may take. */
export const usualTimeout = "310s";

/** What a client reads that may not use a path. */
export const refusal = "the gateway does not pass this on: ask the service itself\n";

/** The services that get requests, each once. */
export const services = [...new Set(routes.map(({ service }) => service))];

/** The route of a path without its query string. */
export function routeOf(path) {
  return routes.find(({ pattern }) => new RegExp(pattern).test(path));
}

/** Whether clients may not send this method to a path. */
export function isRefused({ refused }, method) {
  return refused === "all" || (refused === "changes" && method !== "GET" && method !== "HEAD");
}

function clients(says, service = "distributor") {
  return { says, service };
}

function page(says, service) {
  return { says, service, refused: "changes" };
}
