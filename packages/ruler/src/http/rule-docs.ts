import type { EndpointDocs, ParamDocs } from "@skald/transport";

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
const common = { group: "Rules", tenant: "one" } as const;
const taken = { 202: "Taken; it counts from the next look at the store on." };
const none = { 404: "there is none" };
const body = "name: errors\nrules:\n  - alert: A\n    expr: sum(rate({app=`shop`}[1m])) > 1\n";

/** What is to be known about each endpoint of the rules API. */
export const ruleDocs = {
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

const filter = (name: string, says: string): ParamDocs => ({
  name,
  type: "text",
  repeats: true,
  fallback: "all",
  says,
});

/** What is to be known about each endpoint that shows rules as they stand. */
export const statusDocs = {
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
