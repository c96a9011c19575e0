import type { Clock } from "@skald/model";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  parseTenant,
  type Route,
  type TenantOptions,
  textResponse,
} from "@skald/transport";
import { type KnownRequest, statusOf } from "./deletion/delete-request.js";
import type { DeleteRequests, DeletionMode } from "./deletion/delete-requests.js";
import { parseDelete, parseListRange } from "./deletion/parse-delete.js";

export interface DeleteRouteOptions extends TenantOptions {
  /** Absent when nothing is ever deleted. */
  readonly deletes: DeleteRequests | undefined;
  readonly modeOf: (tenant: string) => DeletionMode;
  readonly maxIntervalMs: number;
  readonly clock: Clock;
}

/** The paths of the deletion API, under the published and the reference's names. */
const paths = ["/service/api/v1/delete", "/loki/api/v1/delete"];

/** Who may delete, and what is answered. */
type Action = (tenant: string, request: HttpRequest, deletes: DeleteRequests) => Answer;
type Answer = Promise<HttpResponse>;

/** The deletion API: requests are made, listed and cancelled by the tenant that the header names. */
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
    await known.refresh({ signal });
    return jsonResponse(200, known.list(tenant, range).map(recordOf));
  });
  const cancel = guarded(async (tenant, { params, signal }, known) => {
    await known.refresh({ signal });
    const isForced = params.get("force") === "true";
    await known.cancel(tenant, params.get("request_id") ?? "", isForced, { signal });
    return { status: 204 };
  });
  return paths.flatMap((path): Route[] => [
    { methods: ["POST", "PUT"], path, handler: create },
    { methods: ["GET"], path, handler: list },
    { methods: ["DELETE"], path, handler: cancel },
  ]);
}

/** A request as clients know it, with times in seconds. */
function recordOf(known: KnownRequest) {
  const { id, query, boundsMs, createdMs } = known.request;
  return {
    request_id: id,
    start_time: (boundsMs[0] as number) / 1000,
    end_time: (boundsMs.at(-1) as number) / 1000,
    query,
    status: statusOf(known),
    created_at: createdMs / 1000,
    user_id: "",
  };
}
