import { describe, expect, it } from "@jest/globals";
import { errorStatus, SkaldError } from "@skald/model";
import { MemoryStore } from "@skald/storage";
import type { HttpResponse } from "@skald/transport";
import type { DeletionMode } from "./deletion/delete-requests.js";
import { type DeleteRouteOptions, deleteRoutes } from "./http.js";
import { makeRequests, signal, testClock } from "./testing/requests.js";

const clock = testClock();
const modes: Readonly<Record<string, DeletionMode>> = { off: "disabled", hide: "filter-only" };
const good = { query: '{app="x"}', start: "1799990000", end: "1799999000" };

async function api(more: Partial<DeleteRouteOptions> = {}) {
  const { deletes } = makeRequests(new MemoryStore(), clock, modes);
  await deletes.refresh({ signal });
  const routes = deleteRoutes({
    ...{ authEnabled: true, noAuthTenant: "fake", clock, maxIntervalMs: 86_400_000 },
    ...{ deletes, modeOf: (tenant: string) => modes[tenant] ?? "filter-and-delete" },
    ...more,
  });
  return async (
    method: string,
    params: Record<string, string> = {},
    tenant: string | undefined = "t",
    path = "/loki/api/v1/delete",
  ): Promise<HttpResponse> => {
    const route = routes.find((one) => one.path === path && one.methods.includes(method));
    if (route === undefined) return { status: errorStatus.method_not_allowed };
    const headers = tenant === undefined ? {} : { "x-scope-orgid": tenant };
    const request = { method, path, variables: {}, headers, signal, body: new Uint8Array(0) };
    try {
      return await route.handler({ ...request, params: new URLSearchParams(params) });
    } catch (error) {
      if (!(error instanceof SkaldError)) throw error;
      return { status: error.status, body: error.message };
    }
  };
}

const records = ({ body }: HttpResponse) => JSON.parse(String(body)) as object[];

describe("the deletion API", () => {
  it.each(["/loki/api/v1/delete", "/service/api/v1/delete"])(
    "takes, lists and cancels at %s",
    async (path) => {
      const call = await api();
      const { status, headers = {} } = await call("PUT", good, "t", path);
      const id = headers["x-delete-request-id"]!;
      expect([status, id]).toEqual([204, expect.stringMatching(/^[0-9a-f]{8}$/)]);
      expect(records(await call("GET", {}, "t", path))).toEqual([
        {
          request_id: id,
          start_time: 1_799_990_000,
          end_time: 1_799_999_000,
          query: good.query,
          status: "received",
          created_at: clock.ms / 1000,
          user_id: "",
        },
      ]);
      expect(records(await call("GET", {}, "u", path))).toEqual([]);
      expect((await call("DELETE", { request_id: id }, "u", path)).status).toBe(404);
      expect((await call("DELETE", { request_id: id }, "t", path)).status).toBe(204);
      expect(records(await call("GET", {}, "t", path))).toEqual([]);
    },
  );

  it("lists requests with times in a range, in order of creation", async () => {
    const call = await api();
    await call("POST", good);
    clock.ms++;
    await call("POST", { ...good, query: '{app="y"}', start: "1799000000", end: "1799000001" });
    const queries = async (params: Record<string, string>) =>
      records(await call("GET", params)).map((record) => (record as { query: string }).query);
    expect(await queries({})).toEqual(['{app="x"}', '{app="y"}']);
    expect(await queries({ start: "1799000001", end: "1799000002" })).toEqual(['{app="y"}']);
    expect(await queries({ start: "1799000002", end: "1799000003" })).toEqual([]);
    expect((await call("GET", { start: "x", end: "1799000003" })).status).toBe(400);
  });

  it.each<[number, string, string, Record<string, string>, string | undefined, string]>([
    [400, "POST", "no query", {}, "t", "query not set"],
    [401, "POST", "no tenant", good, "", "no org id"],
    [400, "GET", "several tenants", {}, "a|b", "multiple org IDs present"],
    [
      403,
      "POST",
      "a tenant that may not",
      good,
      "off",
      "deletion is not available for this tenant\n",
    ],
    [403, "GET", "a tenant that may not", {}, "off", "deletion is not available for this tenant\n"],
    [404, "DELETE", "no id", {}, "t", "could not find delete request with given id"],
    [
      404,
      "DELETE",
      "an unknown id",
      { request_id: "x", force: "maybe" },
      "t",
      "could not find delete request with given id",
    ],
    [405, "PATCH", "another method", {}, "t", "undefined"],
  ])("answers %i to %s with %s", async (status, method, _, params, tenant, text) => {
    const call = await api();
    const answer = await call(method, params, tenant);
    expect([answer.status, String(answer.body)]).toEqual([status, text]);
  });

  it("says so where nothing is ever deleted", async () => {
    const call = await api({ deletes: undefined });
    expect(await call("POST", good)).toMatchObject({
      status: 400,
      body: "Retention is not enabled\n",
    });
    expect((await call("POST", good, "off")).status).toBe(403);
  });
});
