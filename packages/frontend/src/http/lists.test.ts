import { describe, expect, it } from "@jest/globals";
import { bodyOf, error, logs, makeApi } from "../testing/api.js";

describe("labels, values and series", () => {
  it.each([
    ["/service/api/v1/labels", ["app", "env"]],
    ["/loki/api/v1/label", ["app", "env"]],
    ["/api/prom/label", ["app", "env"]],
    ["/service/api/v1/label/app/values", ["a", "b"]],
    ["/api/legacy/label/env/values", ["x"]],
    ["/loki/api/v1/label/nope/values", []],
  ])("%s", async (path, data) => {
    const { call } = makeApi(logs);
    expect(bodyOf(await call(path, {}))).toEqual({ status: "success", data });
  });

  it("adds the tenant to streams of several tenants", async () => {
    const { call } = makeApi(logs);
    const headers = { "x-scope-orgid": "t2|t1" };
    expect(bodyOf(await call("/loki/api/v1/labels", {}, headers)).data).toEqual([
      "__tenant_id__",
      "app",
      "env",
    ]);
    expect(bodyOf(await call("/loki/api/v1/label/__tenant_id__/values", {}, headers)).data).toEqual(
      ["t1", "t2"],
    );
    expect(
      bodyOf(await call("/loki/api/v1/series", { "match[]": '{app="b"}' }, headers)).data,
    ).toContainEqual({
      __tenant_id__: "t1",
      app: "b",
    });
  });

  it("name the one tenant that there is", async () => {
    const { call } = makeApi(logs);
    const headers = { "x-scope-orgid": "t1" };
    const { data } = bodyOf(await call("/loki/api/v1/label/__tenant_id__/values", {}, headers));
    expect(data).toEqual(["t1"]);
  });

  it("needs a selector for series, and takes `{}` only alone", async () => {
    const { call, asked } = makeApi(logs);
    await expect(call("/loki/api/v1/series", {})).rejects.toEqual(
      error(400, "at least one match[] is required"),
    );
    await expect(
      call("/loki/api/v1/series", [
        ["match[]", "{}"],
        ["match[]", '{a="b"}'],
      ]),
    ).rejects.toEqual(error(400, "0 matchers in group: {}"));
    await call("/loki/api/v1/series", { match: "{}" });
    expect(asked).toMatchObject([{ selectors: [] }]);
  });

  it.each([
    ["labels", {}],
    ["series", { match: "{}" }],
  ])("refuses %s of a range that ends before it begins", async (path, params) => {
    const { call } = makeApi(logs);
    const range = { start: "1794999999", end: "1794999998" };
    await expect(call(`/loki/api/v1/${path}`, { ...params, ...range })).rejects.toEqual(
      error(400, "this data is no longer available, it is past now - max_query_lookback (0s)"),
    );
  });

  it.each(['{app="a"} |= "x"', 'rate({a="b"}[1m])'])("takes only matchers: %s", async (query) => {
    const { call } = makeApi(logs);
    await expect(call("/loki/api/v1/labels", { query })).rejects.toEqual(
      error(400, "only label matchers are supported"),
    );
  });
});
