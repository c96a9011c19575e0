import { describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import { schemaProblems } from "../testing/deploy/json-schema.js";
import { problemsOf } from "../testing/deploy/kubernetes-types.js";
import { nameOf, ofKind, problemsBetween, workloadsOf } from "../testing/deploy/pods.js";
import {
  asFields,
  asList,
  at,
  type Fields,
  parseObjects,
  parseYaml,
  readText,
  runTool,
} from "../testing/deploy/repository.js";
import { merged, renderChart } from "../testing/helm/render.js";

const folder = "deploy/helm/skald";
const schema = parseYaml(readText(`${folder}/values.schema.json`));
const own = parseYaml(readText(`${folder}/values.yaml`));

const distributed = parseYaml(`
deploymentMode: Distributed
loki:
  auth_enabled: false
  storage:
    type: s3
    bucketNames: { chunks: logs }
    s3: { endpoint: https://s3.example, region: eu, accessKeyId: a, secretAccessKey: b }
`);
const everything = merged(
  distributed,
  parseYaml(`
loki:
  image: { registry: registry.example }
  runtimeConfig: { overrides: { a: { ingestion_rate_mb: 5 } } }
  limits_config: { retention_period: 30d }
  compactor: { retention_enabled: true, delete_request_store: s3 }
  structuredConfig: { server: { log_level: debug } }
  podAnnotations: { a: b }
imagePullSecrets: [{ name: pull }]
ingester:
  zoneAwareReplication: { enabled: true, zones: [a, b, c] }
  tolerations: [{ operator: Exists }]
querier: { autoscaling: { enabled: false }, extraArgs: [-querier.max-concurrent=8], extraEnv: [{ name: A, value: b }] }
gateway:
  ingress: { enabled: true, ingressClassName: nginx, hosts: [{ host: logs.example, paths: [{ path: / }] }], tls: [] }
monitoring: { dashboards: { enabled: true }, rules: { enabled: true }, serviceMonitor: { enabled: true } }
`),
);
const cases: [string, Fields][] = [
  ["its own values", {}],
  ["a cluster", distributed],
  ["everything switched on", everything],
];

/** The objects that Helm would send to Kubernetes, in the order of their files. */
function objectsOf(values: Fields): Fields[] {
  const files = [...renderChart(folder, values)].filter(([file]) => file.endsWith(".yaml"));
  return files.flatMap(([, text]) => parseObjects(text));
}

describe.each(cases)("the chart with %s", (_, values) => {
  const objects = objectsOf(values);

  it("has values that its schema takes", () => {
    expect(schemaProblems(merged(own, values), schema)).toEqual([]);
  });

  it("makes objects of the API of Kubernetes", () => {
    const core = objects.filter(
      (object) => !String(object.apiVersion).startsWith("monitoring.coreos.com/"),
    );
    expect(core.flatMap(problemsOf)).toEqual([]);
  });

  it("makes objects that fit together, and pods that may not do more than they need", () => {
    expect(problemsBetween(objects)).toEqual([]);
  });

  it("has a service for each name in its configuration", () => {
    const texts = ofKind(objects, "ConfigMap").flatMap((map) =>
      Object.values(asFields(map.data)).map(String),
    );
    const names = new Set(ofKind(objects, "Service").map(nameOf));
    const asked = texts.flatMap((text) =>
      [...text.matchAll(/\b(skald-[a-z-]+):\d+/g)].map(([, name]) => name),
    );
    expect(asked.filter((name) => !names.has(name ?? ""))).toEqual([]);
  });
});

describe("the chart", () => {
  it("makes one process by default, with a disk", () => {
    const [set, ...others] = workloadsOf(objectsOf({}));
    expect(others).toEqual([]);
    expect(nameOf(asFields(set))).toBe("skald");
    expect(at(set, "spec", "volumeClaimTemplates", 0, "metadata", "name")).toBe("data");
  });

  it("makes an autoscaler for ingesters and one for queriers, which give up one at a time", () => {
    const scalers = ofKind(objectsOf(distributed), "HorizontalPodAutoscaler");
    expect(scalers.map(nameOf).sort()).toEqual(["skald-ingester", "skald-querier"]);
    for (const scaler of scalers)
      expect(at(scaler, "spec", "behavior", "scaleDown", "policies", 0, "value")).toBe(1);
  });

  it("has ingesters prepare their end, and the right to ask whether they will come back", () => {
    const objects = objectsOf(distributed);
    const ingester = workloadsOf(objects).find((object) => nameOf(object) === "skald-ingester");
    const [container] = asList(at(ingester, "spec", "template", "spec", "containers"));
    expect(at(container, "lifecycle", "preStop", "exec", "command", 1)).toBe(
      "/app/prepare-shutdown.mjs",
    );
    expect(at(ofKind(objects, "Role")[0], "rules", 0, "resources", 0)).toBe("statefulsets/scale");
  });

  it("makes a set of ingesters for each zone", () => {
    const sets = workloadsOf(objectsOf(everything)).filter((object) =>
      nameOf(object).includes("ingester"),
    );
    expect(sets.map(nameOf)).toEqual(["skald-ingester-a", "skald-ingester-b", "skald-ingester-c"]);
    expect(
      at(sets[1], "spec", "template", "spec", "nodeSelector", "topology.kubernetes.io/zone"),
    ).toBe("b");
    expect(asList(at(sets[1], "spec", "template", "spec", "containers", 0, "args"))).toContain(
      "-ingester.availability-zone=b",
    );
  });

  it("lays structuredConfig over its own", () => {
    const map = objectsOf(everything).find(
      (object) => nameOf(object) === "skald" && object.kind === "ConfigMap",
    );
    const config = parseYaml(String(at(map, "data", "config.yaml")));
    expect(at(config, "server")).toEqual({
      http_listen_port: 3100,
      grpc_listen_port: 9095,
      log_level: "debug",
    });
    expect(at(config, "runtime_config", "file")).toBe("/etc/skald/runtime.yaml");
  });

  it("has the gateway of the kustomization", () => {
    const plain = readText("deploy/k8s/overlays/cluster/nginx.conf");
    const gateway = objectsOf({ ...distributed, fullnameOverride: "x" }).find(
      (object) => nameOf(object) === "x-gateway",
    );
    const text = String(at(gateway, "data", "nginx.conf")).replaceAll("http://x-", "http://");
    expect(text.trim()).toBe(plain.replace("listen 3100;", "listen 8080;").trim());
  });

  it("refuses a cluster without a bucket, and values that it does not know", () => {
    expect(() => objectsOf({ deploymentMode: "Distributed" })).toThrow("needs a bucket");
    const s3 = { deploymentMode: "Distributed", loki: { storage: { type: "s3" } } };
    expect(() => objectsOf(s3)).toThrow("set loki.storage.bucketNames.chunks");
    expect(schemaProblems(merged(own, { ingester: { replica: 3 } }), schema)).toEqual([
      "/ingester/replica: no such key",
    ]);
    expect(schemaProblems(merged(own, { singleBinary: { replicas: 2 } }), schema)).toEqual([
      "/singleBinary/replicas: too large",
    ]);
  });

  needs("helm")("passes helm lint", () => {
    expect(runTool("helm", ["lint", folder])).toMatchObject({ status: 0 });
  });
});
