import type { EndpointDocs } from "@skald/transport";

const operation = { group: "Operation", tenant: "none" } as const;
const nothing = { 204: "Nothing." } as const;

/** What is to be known about the endpoints of an operator. */
export const operatorDocs = {
  flush: {
    ...operation,
    says: "Uploads all that is held in memory and on the local disk to the store.",
    answers: { 204: "Nothing: all is there." },
    example: { method: "POST", status: 204 },
    differs: "answers when it is done, not when it begins",
  },
  is_prepared: {
    ...operation,
    says: "Whether the next end of the process leaves nothing on its disk only.",
    answers: { 200: "`set` or `unset`." },
    example: { status: 200, contains: "set" },
  },
  prepare: {
    ...operation,
    says: "Has the next end of the process upload everything and leave the ring, over restarts too.",
    answers: nothing,
    errors: { 500: "`ingester.shutdown_marker_path` is empty" },
    example: { status: 204 },
  },
  unprepare: {
    ...operation,
    says: "Takes that back.",
    answers: nothing,
    errors: { 500: "`ingester.shutdown_marker_path` is empty" },
    example: { status: 204 },
  },
  shutdown: {
    ...operation,
    says: "Shuts the ingester down, and the process behind it.",
    params: [
      { name: "flush", type: "boolean", fallback: "true", says: "Upload everything before." },
      {
        name: "delete_ring_tokens",
        type: "boolean",
        fallback: "false",
        says: "Delete the file with the tokens, when there is one.",
      },
      { name: "terminate", type: "boolean", fallback: "true", says: "End the process, too." },
    ],
    answers: { 204: "Nothing: the ingester is down." },
    errors: { 503: "it is stopping or stopped already" },
    example: { method: "POST", params: { terminate: "false" }, status: 204 },
    ends: true,
  },
  flush_shutdown: {
    ...operation,
    says: "Uploads everything and shuts the ingester down; the process stays. Use `/ingester/shutdown`.",
    answers: { 204: "Nothing: the ingester is down." },
    errors: { 503: "it is stopping or stopped already" },
    example: { method: "POST", status: 204 },
    ends: true,
    differs: "the original has it no more",
  },
  memberlist: {
    ...operation,
    says: "The members of a gossip ring.",
    answers: {
      200: "Text that says that there is none: rings are kept in Redis or in the process.",
    },
    example: { status: 200, contains: "doesn't use memberlist" },
  },
  all_user_stats: {
    ...operation,
    says: "Tenants with the number of their streams and the rate at which they push.",
    answers: {
      200: "`[{userID, ingestionRate, numSeries, APIIngestionRate, RuleIngestionRate, replicationFactor}]`, rates in lines per second.",
    },
    example: { status: 200, contains: "[" },
    differs: "the reference serves it in other products of its family only",
  },
  tenant_limits: {
    ...operation,
    tenant: "one",
    says: "The limits that hold for the tenant, of those in `tenant_limits_allow_publish`.",
    answers: { 200: "YAML." },
    example: { status: 200, contains: "max_query_series:" },
  },
  cpu_profile: {
    ...operation,
    says: "Where the main thread spends its time; only with `server.profiles_enabled`.",
    params: [secondsParam("30")],
    answers: { 200: "A `.cpuprofile` in JSON, for the developer tools of a browser." },
    errors: { 400: "not a number of seconds up to 300", 503: "another profile is being taken" },
    example: { params: { seconds: "0.1" }, status: 200, contains: '"nodes":' },
    differs: "the profile is one of V8, not of Go",
  },
  heap_profile: {
    ...operation,
    says: "What the main thread allocates and still holds; only with `server.profiles_enabled`.",
    params: [secondsParam("1")],
    answers: { 200: "A `.heapprofile` in JSON, for the developer tools of a browser." },
    errors: { 400: "not a number of seconds up to 300", 503: "another profile is being taken" },
    example: { params: { seconds: "0.1" }, status: 200, contains: '"head":' },
    differs: "the profile is one of V8, not of Go",
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;

function secondsParam(fallback: string) {
  return { name: "seconds", type: "span", fallback, says: "How long it is watched." } as const;
}
