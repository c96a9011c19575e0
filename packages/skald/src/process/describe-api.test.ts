import { expect, it } from "@jest/globals";
import type { EndpointDocs, RawHandler } from "@skald/transport";
import { type ApiPart, describeApi, underPublishedNames } from "./process.js";

const docs = { says: "something" } as EndpointDocs;
const handler = () => ({ status: 204 });
const raw: RawHandler = Object.assign(async () => undefined, { docs });
const parts: ApiPart[] = [
  {
    targets: ["all"],
    routes: [
      { methods: ["GET"], path: "/service/api/v1/x", handler, docs },
      { methods: ["GET"], path: "/loki/api/v1/x", handler, docs },
      { methods: ["GET"], path: "/ready", handler },
      { methods: ["POST"], path: "/ready", handler },
    ],
  },
  {
    targets: ["ruler"],
    routes: [{ methods: ["GET"], path: "/prometheus/api/v1/y", handler }],
    rawRoutes: new Map([["/api/prom/push", raw]]),
  },
];

it("routes with the same docs are one endpoint", () => {
  const found = describeApi(parts).map(({ methods, paths, targets }) => ({
    methods,
    paths,
    targets,
  }));
  expect(found).toEqual([
    {
      methods: ["GET"],
      paths: ["/service/api/v1/x", "/loki/api/v1/x", "/api/prom/push"],
      targets: ["all"],
    },
    { methods: ["GET"], paths: ["/ready"], targets: ["all"] },
    { methods: ["POST"], paths: ["/ready"], targets: ["all"] },
    { methods: ["GET"], paths: ["/prometheus/api/v1/y"], targets: ["ruler"] },
  ]);
});

it("names of the reference can be left out", () => {
  const left = describeApi(underPublishedNames(parts)).flatMap(({ paths }) => paths);
  expect(left).toEqual(["/service/api/v1/x", "/ready", "/ready"]);
});
