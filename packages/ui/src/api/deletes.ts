import { call, callJson } from "./client.js";
import { optional } from "./system.js";

export interface DeleteRequest {
  readonly request_id: string;
  /** Unix seconds. */
  readonly start_time: number;
  readonly end_time: number;
  readonly query: string;
  readonly status: string;
  readonly created_at: number;
}

/** All requests; undefined where another process takes them. */
export async function fetchDeletes(): Promise<readonly DeleteRequest[] | undefined> {
  return optional(callJson<DeleteRequest[]>("loki/api/v1/delete"));
}

/** Asks for lines to be deleted; queries leave them out at once. Unix seconds. */
export async function addDelete(query: string, start: number, end: number): Promise<void> {
  await call("loki/api/v1/delete", { method: "POST", params: { query, start, end } });
}

export async function cancelDelete(id: string): Promise<void> {
  await call("loki/api/v1/delete", { method: "DELETE", params: { request_id: id } });
}
