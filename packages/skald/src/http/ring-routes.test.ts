import { expect, it } from "@jest/globals";
import type { HttpRequest, HttpResponse } from "@skald/transport";
import { type RingInstance, ringRoutes } from "./ring-routes.js";

const instance: RingInstance = {
  id: "<a>",
  state: "ACTIVE",
  address: "10.0.0.1:9095",
  zone: "",
  registeredMs: 1_000,
  heartbeatMs: 2_500,
  tokens: [7, 9],
};

function get(accept: string, query = ""): HttpResponse {
  const [route] = ringRoutes({ instances: () => [instance], nowMs: () => 3_000 });
  const params = new URLSearchParams(query);
  const request: Partial<HttpRequest> = { headers: { accept }, params };
  return route?.handler(request as HttpRequest) as HttpResponse;
}

it("is JSON for programs", () => {
  expect(JSON.parse(get("application/json").body as string)).toEqual({
    shards: [
      {
        ...{ id: "<a>", state: "ACTIVE", address: "10.0.0.1:9095", zone: "", tokens: [7, 9] },
        timestamp: "1970-01-01T00:00:02.500Z",
        registered_timestamp: "1970-01-01T00:00:01Z",
        read_only: false,
        read_only_updated_timestamp: "0001-01-01T00:00:00Z",
      },
    ],
    now: "1970-01-01T00:00:03Z",
  });
});

it("is a table for people, with the tokens where they ask for them", () => {
  const { body, headers } = get("text/html");
  expect(headers?.["content-type"]).toBe("text/html; charset=utf-8");
  expect(body).toContain("<td>&#60;a&#62;</td>");
  expect(body).toContain("<td>2</td>");
  expect(get("text/html", "tokens=true").body).toContain("<td>7 9</td>");
});
