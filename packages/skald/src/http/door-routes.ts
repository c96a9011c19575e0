import {
  createDoorHandler,
  type DoorDeps,
  type DoorName,
  hecResult,
  tenantOrToken,
} from "@skald/distributor";
import {
  type EndpointDocs,
  jsonResponse,
  type ParamDocs,
  parseTenant,
  type RawHandler,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";
import { pushErrors } from "./push-routes.js";

/** The handlers of agents that speak neither Loki's push nor OTLP, by path. */
export function doorRoutes(deps: DoorDeps, tenancy: TenantOptions): Map<string, RawHandler> {
  return new Map(
    (Object.keys(doorPaths) as DoorName[]).flatMap((door) => {
      const serve = createDoorHandler(door, deps);
      const { paths, docs } = doorPaths[door];
      return paths.map((path) => {
        const handler: RawHandler = (request, response) =>
          serve(request, response, parseTenant(tenantOrToken(request.headers), tenancy));
        return [path, Object.assign(handler, { docs })] as const;
      });
    }),
  );
}

const ignored = "Fields that are left out; `name*` stands for all that begin so.";
const mappingParams: readonly ParamDocs[] = [
  {
    name: "labels",
    type: "names",
    says: "Fields that become labels. Also `X-Skald-Labels`, `_stream_fields` and `VL-Stream-Fields`.",
    fallback: "`agent_label_fields` of the tenant, or those of the protocol",
  },
  {
    name: "message_field",
    type: "names",
    says: "Fields that may hold the line; then the other fields become structured metadata. Without one the line is the whole record. Also `X-Skald-Message-Field`, `_msg_field` and `VL-Msg-Field`.",
  },
  {
    name: "time_field",
    type: "names",
    says: "Fields that may hold the time, in RFC 3339 or Unix s, ms, us or ns. Also `X-Skald-Time-Field`, `_time_field` and `VL-Time-Field`.",
  },
  {
    name: "ignore_fields",
    type: "names",
    says: `${ignored} Also \`X-Skald-Ignore-Fields\` and \`VL-Ignore-Fields\`.`,
  },
  {
    name: "extra_fields",
    type: "names",
    says: "Fields that every record gets, as `name=value`. Also `X-Skald-Extra-Fields` and `VL-Extra-Fields`.",
  },
];

const { 400: badBody, 422: _, ...otherErrors } = pushErrors;
const doorErrors = { 400: badBody, ...otherErrors };

function doorDocs(
  given: Pick<EndpointDocs, "says" | "bodies" | "answers" | "example"> & Partial<EndpointDocs>,
): EndpointDocs {
  const { params = [] } = given;
  return {
    group: "Ingest",
    tenant: "one",
    errors: doorErrors,
    ...given,
    params: [...params, ...mappingParams],
  };
}

const json = { "content-type": "application/json" };
const record = '{"_time":"$NOW","app":"shop","message":"paid"}';

const hecParams: readonly ParamDocs[] = ["host", "source", "sourcetype", "index"].map((name) => ({
  name,
  type: "text",
  says: `The field \`${name}\` of every line.`,
}));

const datadogParams: readonly ParamDocs[] = ["service", "ddsource", "hostname", "ddtags"].map(
  (name) => ({ name, type: "text", says: `The field \`${name}\` of every record.` }),
);

const indexParam: ParamDocs = { name: "index", type: "text", says: "The field `_index`." };

/** Where each door is, and what the page about the API says of it. */
const doorPaths: Readonly<Record<DoorName, { paths: readonly string[]; docs: EndpointDocs }>> = {
  json_lines: {
    paths: ["/insert/jsonline"],
    docs: doorDocs({
      says: "Stores JSON objects, one a line, as they arrive: the body may have any length.",
      isStreamed: true,
      bodies: { "application/stream+json": "a JSON object on each line" },
      answers: { 204: "Nothing: all is stored, and can be queried." },
      example: { params: { labels: "app" }, body: record, status: 204 },
    }),
  },
  bulk: {
    paths: ["/elasticsearch/_bulk", "/elasticsearch/:index/_bulk"],
    docs: doorDocs({
      says: "Stores the documents of a bulk of Elasticsearch; the field `_index` has the index.",
      params: [indexParam],
      bodies: { "application/x-ndjson": "lines of an action and its document in turn" },
      answers: { 200: "What became of each action." },
      example: {
        headers: { "content-type": "application/x-ndjson" },
        variables: { index: "logs" },
        body: `{"create":{}}\n${record.replace("_time", "time")}\n`,
        status: 200,
        contains: '"errors":false',
      },
    }),
  },
  document: {
    paths: [
      "/elasticsearch/:index/_doc",
      "/elasticsearch/:index/_doc/:id",
      "/elasticsearch/:index/_create/:id",
    ],
    docs: doorDocs({
      says: "Stores one document as Elasticsearch takes it.",
      params: [indexParam, { name: "id", type: "text", says: "It has no effect." }],
      bodies: { "application/json": "a JSON object" },
      answers: { 201: "It is stored." },
      example: {
        headers: json,
        variables: { index: "logs", id: "1" },
        body: '{"message":"paid"}',
        status: 201,
        contains: "created",
      },
    }),
  },
  hec: {
    paths: ["/services/collector", "/services/collector/event", "/services/collector/event/1.0"],
    docs: doorDocs({
      says: "Stores events of Splunk's HTTP event collector. Without `X-Scope-OrgID` the token names the tenant, or its user.",
      bodies: {
        "application/json":
          "`{time, host, source, sourcetype, index, event, fields}`, one behind the other",
      },
      answers: { 200: "They are stored." },
      example: {
        headers: json,
        body: '{"event":"paid","host":"a"}',
        status: 200,
        contains: "Success",
      },
    }),
  },
  hec_raw: {
    paths: ["/services/collector/raw", "/services/collector/raw/1.0"],
    docs: doorDocs({
      says: "Stores each line of a text as it is.",
      params: hecParams,
      bodies: { "text/plain": "lines" },
      answers: { 200: "They are stored." },
      example: { params: { host: "a" }, body: "paid", status: 200, contains: "Success" },
    }),
  },
  datadog: {
    paths: ["/api/v2/logs", "/v1/input"],
    docs: doorDocs({
      says: "Stores what agents of Datadog send. Without `X-Scope-OrgID` the API key names the tenant, or its user.",
      params: datadogParams,
      bodies: {
        "application/json": "`[{message, status, timestamp, hostname, service, ddsource, ddtags}]`",
      },
      answers: { 202: "They are stored." },
      example: { headers: json, body: '[{"message":"paid","service":"shop"}]', status: 202 },
    }),
  },
  journal: {
    paths: ["/insert/journald/upload"],
    docs: doorDocs({
      says: "Stores entries of the systemd journal as they arrive: the body may have any length.",
      isStreamed: true,
      bodies: { "application/vnd.fdo.journal": "the journal export format" },
      answers: { 202: "They are stored; a text names entries that were refused." },
      example: {
        headers: { "content-type": "application/vnd.fdo.journal" },
        body: "MESSAGE=paid\n_HOSTNAME=a\n\n",
        status: 202,
      },
    }),
  },
};

/** The version that agents are told; they choose their requests by it. */
const elasticVersion = "8.17.0";
const license = {
  license: { status: "active", uid: "00000000-0000-0000-0000-000000000000", type: "basic" },
};

/** What agents of Elasticsearch ask before they send, by path. */
const states: Readonly<Record<string, object | string>> = {
  "/elasticsearch/_license": license,
  "/elasticsearch/_xpack": { ...license, features: {} },
  "/elasticsearch/_cluster/health": { cluster_name: "skald", status: "green", timed_out: false },
  "/elasticsearch/_cat/health": "green\n",
  "/elasticsearch/_nodes": { cluster_name: "skald", nodes: {} },
  "/elasticsearch/_nodes/http": { cluster_name: "skald", nodes: {} },
};

const stateDocs: EndpointDocs = {
  group: "Ingest",
  says: "Answers what agents of Elasticsearch ask before they send: a healthy cluster with the license `basic`.",
  tenant: "none",
  answers: { 200: "JSON as Elasticsearch has it." },
  example: { status: 200 },
};

const infoDocs: EndpointDocs = {
  ...stateDocs,
  says: `Tells agents of Elasticsearch the version whose requests are understood: ${elasticVersion}.`,
  example: { status: 200, contains: elasticVersion },
};

const templateDocs: EndpointDocs = {
  ...stateDocs,
  says: "Agrees to templates, pipelines, policies and data streams of Elasticsearch, and keeps none: lines need no schema.",
  params: [{ name: "name", type: "text", says: "Of what is agreed to.", required: true }],
  answers: { 200: "`acknowledged`." },
  example: { method: "GET", variables: { name: "logs" }, status: 200, contains: "acknowledged" },
};

const templates = ["_index_template", "_component_template", "_template", "_ingest/pipeline"]
  .concat(["_ilm/policy", "_data_stream"])
  .map((kind) => `/elasticsearch/${kind}/:name`);

const hecHealthDocs: EndpointDocs = {
  ...stateDocs,
  says: "Says that Splunk's collector is there.",
  answers: { 200: "It is." },
};

const hecCheckDocs: EndpointDocs = {
  ...stateDocs,
  says: "Answers the driver of Docker, which asks whether Splunk's collector is there.",
  answers: { 200: "It is." },
};

const hecAckDocs: EndpointDocs = {
  ...stateDocs,
  says: "Refuses queries for acknowledgements of Splunk's collector: an answer of 200 says that events are stored.",
  answers: { 400: "`ACK is disabled`" },
  example: { status: 400, contains: "ACK is disabled" },
};

/** What agents ask before or beside sending. */
export function agentRoutes(): Route[] {
  const info = jsonResponse(200, {
    name: "skald",
    cluster_name: "skald",
    version: { number: elasticVersion, build_flavor: "default", lucene_version: "9.12.0" },
    tagline: "You Know, for Search",
  });
  const healthy = jsonResponse(200, { text: "HEC is healthy", code: 17 });
  const { status, body = "" } = hecResult(400, { text: "ACK is disabled", code: 14 });
  const refused = { ...jsonResponse(status, {}), body };
  const routes = (methods: readonly string[], paths: readonly string[], docs: EndpointDocs) =>
    paths.map((path) => ({ methods, path, docs }));
  return [
    ...routes(["GET"], ["/elasticsearch/", "/elasticsearch"], infoDocs).map((route) => ({
      ...route,
      handler: () => elastic(info),
    })),
    ...routes(["GET"], Object.keys(states), stateDocs).map((route) => ({
      ...route,
      handler: () => elastic(stateOf(route.path)),
    })),
    ...routes(["GET", "PUT", "POST"], templates, templateDocs).map((route) => ({
      ...route,
      takesBody: true,
      handler: () => elastic(jsonResponse(200, { acknowledged: true })),
    })),
    ...routes(
      ["GET"],
      ["/services/collector/health", "/services/collector/health/1.0"],
      hecHealthDocs,
    )
      .concat(routes(["OPTIONS"], doorPaths.hec.paths, hecCheckDocs))
      .map((route) => ({ ...route, handler: () => healthy })),
    ...routes(["GET", "POST"], ["/services/collector/ack"], hecAckDocs).map((route) => ({
      ...route,
      takesBody: true,
      handler: () => refused,
    })),
  ];
}

function stateOf(path: string) {
  const state = states[path];
  return typeof state === "string" ? textResponse(200, state) : jsonResponse(200, state);
}

/** Clients of Elasticsearch refuse to talk to a server without this header. */
function elastic(response: ReturnType<typeof jsonResponse>) {
  const headers = { ...response.headers, "x-elastic-product": "Elasticsearch" };
  return { ...response, headers };
}
