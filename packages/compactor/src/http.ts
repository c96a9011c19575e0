import type { Clock } from "@skald/model";
import {
  type EndpointDocs,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  parseTenant,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";
import {
  type KnownRequest,
  parseDelete,
  parseListRange,
  statusOf,
} from "./deletion/delete-request.js";
import type { DeleteRequests, DeletionMode } from "./deletion/delete-requests.js";

export interface DeleteRouteOptions extends TenantOptions {
  /** Undefined when nothing is ever deleted. */
  readonly deletes: DeleteRequests | undefined;
  readonly modeOf: (tenant: string) => DeletionMode;
  readonly maxIntervalMs: number;
  readonly clock: Clock;
}

/** The paths of the deletion API, under the published and the reference's names. */
const paths = ["/service/api/v1/delete", "/loki/api/v1/delete"];

/** Answers a request of a tenant that may delete. */
type Action = (tenant: string, request: HttpRequest, deletes: DeleteRequests) => Answer;
type Answer = Promise<HttpResponse>;

/** The deletion API. The tenant in the header makes, lists and cancels requests. */
export function deleteRoutes(options: DeleteRouteOptions): Route[] {
  const { clock, deletes, maxIntervalMs, modeOf } = options;
  const guarded =
    (action: Action): HttpHandler =>
    async (request) => {
      const tenant = parseTenant(request.headers["x-scope-orgid"], options);
      if (modeOf(tenant) === "disabled")
        return textResponse(403, "deletion is not available for this tenant\n");
      if (deletes === undefined) return textResponse(400, "Retention is not enabled\n");
      return action(tenant, request, deletes);
    };
  const create = guarded(async (tenant, { params, signal }, known) => {
    const asked = parseDelete(params, { nowMs: clock.nowMs(), maxIntervalMs });
    const id = await known.create(tenant, asked, { signal });
    return { status: 204, headers: { "x-delete-request-id": id } };
  });
  const list = guarded(async (tenant, { params, signal }, known) => {
    const range = parseListRange(params);
    await known.refresh({ signal }, tenant);
    return jsonResponse(200, known.list(tenant, range).map(recordOf));
  });
  const cancel = guarded(async (tenant, { params, signal }, known) => {
    await known.refresh({ signal }, tenant);
    const isForced = params.get("force") === "true";
    await known.cancel(tenant, params.get("request_id") ?? "", isForced, { signal });
    return { status: 204 };
  });
  return paths.flatMap((path): Route[] => [
    { methods: ["POST", "PUT"], path, handler: create, docs: createDocs },
    { methods: ["GET"], path, handler: list, docs: listDocs },
    { methods: ["DELETE"], path, handler: cancel, docs: cancelDocs },
  ]);
}

const errors = {
  400: "nothing is ever deleted, as `compactor.retention_enabled` is off; a parameter that is bad",
  403: "`deletion_mode` of the tenant is `disabled`",
};
// Nothing is deleted unless the file says so.
const refused = { status: 400, contains: "Retention is not enabled" };

const createDocs: EndpointDocs = {
  group: "Deletion",
  says: "Asks for lines to be deleted; they are hidden from then on.",
  tenant: "one",
  params: [
    { name: "query", type: "logql", required: true, says: "The lines: a selector, with filters." },
    { name: "start", type: "time", required: true, says: "Unix seconds or RFC 3339." },
    { name: "end", type: "time", fallback: "now", says: "Unix seconds or RFC 3339." },
    {
      name: "max_interval",
      type: "duration",
      fallback: "`compactor.delete_max_interval`",
      says: "Longest part that a request with filters is split into; in s, m, h.",
    },
  ],
  answers: { 204: "Nothing; the header `X-Delete-Request-ID` names the request." },
  errors: { ...errors, 429: "`max_pending_delete_requests` of the tenant wait already" },
  example: { params: { query: '{app="shop"}', start: "1700000000" }, ...refused },
};

const listDocs: EndpointDocs = {
  group: "Deletion",
  says: "Lists requests, processed or not.",
  tenant: "one",
  params: [
    { name: "start", type: "time", fallback: "all", says: "With `end`: only those that overlap." },
    { name: "end", type: "time", fallback: "all", says: "End of that range." },
  ],
  answers: { 200: "`[{request_id, start_time, end_time, query, status, created_at, user_id}]`." },
  errors,
  example: refused,
};

const cancelDocs: EndpointDocs = {
  group: "Deletion",
  says: "Takes a request back that was not processed.",
  tenant: "one",
  params: [
    { name: "request_id", type: "text", required: true, says: "As it was listed." },
    {
      name: "force",
      type: "boolean",
      fallback: "false",
      says: "Also one that was processed in part, or is older than `delete_request_cancel_period`.",
    },
  ],
  answers: { 204: "Nothing." },
  errors: { ...errors, 404: "there is no such request" },
  example: { params: { request_id: "0123abcd" }, ...refused },
  differs: "without `request_id` the answer is 400; the original cancels all requests",
};

/** A request as clients know it, with times in seconds. */
function recordOf(known: KnownRequest) {
  const { id, query, boundsMs, createdMs } = known.request;
  return {
    request_id: id,
    start_time: boundsMs[0]! / 1000,
    end_time: (boundsMs.at(-1) as number) / 1000,
    query,
    status: statusOf(known),
    created_at: createdMs / 1000,
    user_id: "",
  };
}
