import { describe, expect, it } from "@jest/globals";
import { readTracingEnvironment } from "./trace-export.js";

const read = (env: Record<string, string>) => readTracingEnvironment(env, "skald-all");

it("everything of a trace is kept by default, under the name of the target", () => {
  expect(read({ OTEL_SERVICE_NAME: "" })).toEqual({
    isOff: false,
    serviceName: "skald-all",
    resource: {},
    ratio: 1,
    followsParent: true,
    warnings: [],
  });
});

describe("what is kept", () => {
  it.each([
    [{ OTEL_TRACES_SAMPLER: "always_on" }, 1, false],
    [{ OTEL_TRACES_SAMPLER: "always_off" }, 0, false],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" }, 0.25, false],
    [{ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }, 0, true],
    [{ OTEL_TRACES_SAMPLER: "parentbased_always_off" }, 0, true],
    [{ JAEGER_SAMPLER_TYPE: "const", JAEGER_SAMPLER_PARAM: "0" }, 0, true],
    [{ JAEGER_SAMPLER_TYPE: "const", JAEGER_SAMPLER_PARAM: "1" }, 1, true],
    [{ JAEGER_SAMPLER_TYPE: "probabilistic", JAEGER_SAMPLER_PARAM: "0.1" }, 0.1, true],
    [{ JAEGER_SAMPLER_TYPE: "const", OTEL_TRACES_SAMPLER: "always_off" }, 0, false],
  ])("by %j", (env: Record<string, string>, ratio, followsParent) => {
    expect(read(env)).toMatchObject({ ratio, followsParent, warnings: [] });
  });
});

describe("names", () => {
  it.each([
    [{ OTEL_SERVICE_NAME: "a", OTEL_RESOURCE_ATTRIBUTES: "service.name=b" }, "a", {}],
    [{ OTEL_RESOURCE_ATTRIBUTES: "service.name=b, zone=x%20y" }, "b", { zone: "x y" }],
    [{ OTEL_RESOURCE_ATTRIBUTES: "zone=100%,,=,x" }, "skald-all", { zone: "100%" }],
    [{ JAEGER_SERVICE_NAME: "c", JAEGER_TAGS: "zone=z" }, "c", { zone: "z" }],
    [{ JAEGER_SERVICE_NAME: "c", OTEL_SERVICE_NAME: "a" }, "a", {}],
  ])("of %j", (env: Record<string, string>, serviceName, resource) => {
    const found = read(env);
    expect(found.serviceName).toBe(serviceName);
    expect(found.resource).toMatchObject(resource);
  });
});

it.each([
  [{ OTEL_SDK_DISABLED: "TRUE" }],
  [{ OTEL_TRACES_EXPORTER: "none" }],
  [{ JAEGER_DISABLED: "true" }],
])("%j turns them off", (env: Record<string, string>) => {
  expect(read(env).isOff).toBe(true);
});

it.each([
  ["JAEGER_AGENT_HOST", "agent", "is not supported; spans go to OTEL_EXPORTER_OTLP_ENDPOINT"],
  ["JAEGER_ENDPOINT", "http://j", "is not supported; spans go to OTEL_EXPORTER_OTLP_ENDPOINT"],
  ["JAEGER_SAMPLER_TYPE", "remote", ": remote is not supported; see OTEL_TRACES_SAMPLER"],
  ["OTEL_TRACES_EXPORTER", "zipkin", ": zipkin is not supported; spans are sent by otlp"],
  [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "grpc",
    ": grpc is not supported; spans are sent by http/protobuf",
  ],
  ["OTEL_PROPAGATORS", "tracecontext,b3", ": b3 is not supported; callers are told of traces by"],
  ["OTEL_TRACES_SAMPLER", "xray", ": xray is not supported; parentbased_always_on is used"],
])("%s=%s does nothing, and that is said", (name, value, text) => {
  const { warnings } = read({ [name]: value });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(name + (text.startsWith(":") ? "" : " ") + text);
});

it("a share that is no number is said, and everything kept", () => {
  const env = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "half" };
  expect(read(env)).toMatchObject({ ratio: 1 });
  expect(read(env).warnings).toHaveLength(1);
});
