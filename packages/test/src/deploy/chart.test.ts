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
  parseYaml,
  readText,
  runTool,
} from "../testing/deploy/repository.js";
import { configTextOf, chartFolder as folder, objectsOf, podsOf } from "../testing/helm/chart.js";
import { lokiExamples } from "../testing/helm/loki-chart.js";
import { merged } from "../testing/helm/render.js";

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
  autoscaling: { enabled: true }
  tolerations: [{ operator: Exists }]
querier: { autoscaling: { enabled: false }, extraArgs: [-querier.max-concurrent=8], extraEnv: [{ name: A, value: b }] }
gateway:
  ingress: { enabled: true, ingressClassName: nginx, hosts: [{ host: logs.example, paths: [{ path: / }] }], tls: [] }
monitoring: { dashboards: { enabled: true }, rules: { enabled: true }, serviceMonitor: { enabled: true } }
`),
);
const cases: [string, Fields][] = [
  ...Object.entries(lokiExamples).map(([name, text]): [string, Fields] => [
    `Loki's values: ${name}`,
    parseYaml(text),
  ]),
  ["its own values", {}],
  ["a cluster", distributed],
  ["everything switched on", everything],
];

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

describe("ports of syslog", () => {
  const listeners = parseYaml(`
loki:
  syslog:
    listeners:
      - { address: "0.0.0.0:5514", protocol: udp, tenant: a }
      - { address: "[::]:5514", tenant: a }
syslog: { service: { type: LoadBalancer, externalTrafficPolicy: Local } }
`);
  const ports = [
    { name: "udp-5514", protocol: "UDP" },
    { name: "tcp-5514", protocol: "TCP" },
  ];

  it.each([
    ["all", "SingleBinary"],
    ["write", "SimpleScalable"],
    ["distributor", "Distributed"],
  ])("have a service, and are open in the pods that take pushes: %s", (target, deploymentMode) => {
    const objects = objectsOf(merged({ ...distributed, deploymentMode }, listeners));
    expect(objects.flatMap(problemsOf)).toEqual([]);
    expect(problemsBetween(objects)).toEqual([]);
    const service = ofKind(objects, "Service").find((one) => nameOf(one) === "skald-syslog");
    expect(at(service, "spec")).toMatchObject({
      type: "LoadBalancer",
      externalTrafficPolicy: "Local",
      selector: { "app.kubernetes.io/component": target },
      ports: ports.map((port) => ({ ...port, port: 5514, targetPort: port.name })),
    });
    const open = workloadsOf(objects).filter((one) =>
      JSON.stringify(at(one, "spec", "template", "spec", "containers", 0, "ports")).includes(
        "udp-5514",
      ),
    );
    expect(
      open.map((one) =>
        at(one, "spec", "template", "metadata", "labels", "app.kubernetes.io/component"),
      ),
    ).toEqual([target]);
    const policy = ofKind(objects, "NetworkPolicy").find((one) => nameOf(one) === "skald-syslog");
    expect(at(policy, "spec", "ingress")).toEqual([
      { ports: ports.map(({ name, protocol }) => ({ port: name, protocol })) },
    ]);
  });

  it("are in the configuration", () => {
    expect(at(parseYaml(configTextOf(listeners)), "syslog", "listeners", 0, "protocol")).toBe(
      "udp",
    );
    expect(schemaProblems(merged(own, listeners), schema)).toEqual([]);
  });

  it("need no service without listeners", () => {
    expect(ofKind(objectsOf({}), "Service").map(nameOf)).not.toContain("skald-syslog");
    expect(ofKind(objectsOf({}), "NetworkPolicy").map(nameOf)).not.toContain("skald-syslog");
  });
});

describe("secrets of the chart", () => {
  const secretOf = (values: Fields) =>
    ofKind(objectsOf(values), "Secret").find((one) => nameOf(one) === "skald-redis");
  const external = merged(distributed, {
    redis: {
      enabled: false,
      external: { endpoint: "redis.example:6379", password: "hush", sentinel_password: "hist" },
    },
  });

  it("give the bundled Redis a password, which services have too", () => {
    const redis = workloadsOf(objectsOf(distributed)).find((one) => nameOf(one) === "skald-redis");
    const container = at(redis, "spec", "template", "spec", "containers", 0);
    const args = asList(at(container, "args"));
    expect(args.slice(args.indexOf("--requirepass"))).toEqual([
      "--requirepass",
      "$(REDIS_PASSWORD)",
    ]);
    expect(args).not.toContain("--protected-mode");
    expect(String(at(secretOf(distributed), "stringData", "REDIS_PASSWORD"))).toHaveLength(32);
    const set = merged(distributed, { redis: { password: "mine" } });
    expect(at(secretOf(set), "stringData", "REDIS_PASSWORD")).toBe("mine");
    const config = parseYaml(configTextOf(distributed));
    expect(at(config, "common", "ring", "kvstore", "redis", "password")).toMatch(
      /^\$\{REDIS_PASSWORD:-\}$/,
    );
    for (const one of workloadsOf(objectsOf(distributed)).filter((one) =>
      asList(at(one, "spec", "template", "spec", "containers", 0, "args")).some((arg) =>
        String(arg).startsWith("-target="),
      ),
    ))
      expect(
        asList(at(one, "spec", "template", "spec", "containers", 0, "envFrom")),
      ).toContainEqual({ secretRef: { name: "skald-redis" } });
  });

  it("have the passwords of another Redis, which no ConfigMap has", () => {
    expect(JSON.stringify(ofKind(objectsOf(external), "ConfigMap"))).not.toMatch(/hush|hist/);
    expect(at(secretOf(external), "stringData")).toEqual({
      REDIS_PASSWORD: "hush",
      REDIS_SENTINEL_PASSWORD: "hist",
    });
    const other = merged(external, { redis: { existingSecret: "theirs" } });
    expect(secretOf(other)).toBeUndefined();
  });

  it("restart pods when they change", () => {
    const sum = (values: Fields) =>
      workloadsOf(objectsOf(values)).map((one) =>
        at(one, "spec", "template", "metadata", "annotations", "checksum/secrets"),
      )[0];
    expect(sum(distributed)).toBe(sum(distributed));
    const changes: Fields[] = [
      { loki: { storage: { s3: { secretAccessKey: "new" } } } },
      { redis: { password: "new" } },
    ];
    for (const change of changes)
      expect(sum(merged(distributed, change))).not.toBe(sum(distributed));
  });
});

describe("the chart", () => {
  it("asks for the image of its own version", () => {
    const [one] = workloadsOf(objectsOf({}));
    const { appVersion } = parseYaml(readText(`${folder}/Chart.yaml`));
    expect(at(one, "spec", "template", "spec", "containers", 0, "image")).toBe(
      `skald:${appVersion}`,
    );
  });

  it("has as many pods as its values say", () => {
    const values = merged(distributed, { ingester: { replicas: 5 }, querier: { replicas: 4 } });
    expect(podsOf(values)).toMatchObject({ "skald-ingester": 5, "skald-querier": 4 });
    const single = Object.entries(podsOf(distributed)).filter(([, count]) => !(Number(count) >= 2));
    expect(single).toEqual([["skald-redis", 1]]);
  });

  it("makes one process by default, with a disk", () => {
    const [set, ...others] = workloadsOf(objectsOf({}));
    expect(others).toEqual([]);
    expect(nameOf(asFields(set))).toBe("skald");
    expect(at(set, "spec", "volumeClaimTemplates", 0, "metadata", "name")).toBe("data");
  });

  it("makes autoscalers of ingesters and queriers where they are switched on, which give up one at a time", () => {
    const scaled = merged(distributed, {
      ingester: { autoscaling: { enabled: true, behavior: { enabled: true } } },
      querier: { autoscaling: { enabled: true } },
    });
    expect(ofKind(objectsOf(distributed), "HorizontalPodAutoscaler")).toEqual([]);
    const scalers = ofKind(objectsOf(scaled), "HorizontalPodAutoscaler");
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
    const gatewayOf = (patterns: number) => {
      const values = { fullnameOverride: "x", patternIngester: { replicas: patterns } };
      const objects = objectsOf(merged(distributed, values));
      const gateway = objects.find((object) => nameOf(object) === "x-gateway");
      return String(at(gateway, "data", "nginx.conf"));
    };
    const text = gatewayOf(1).replaceAll("server x-", "server ");
    expect(text.trim()).toBe(plain.replace("listen 3100;", "listen 8080;").trim());
    expect(gatewayOf(0)).not.toContain("pattern-ingester");
    expect(gatewayOf(0)).toContain("location ~ ^/pattern/ring$ { return 404");
  });

  it("refuses a cluster without a bucket, and values that it does not know", () => {
    expect(() => objectsOf({ deploymentMode: "Distributed" })).toThrow("need a bucket");
    const s3 = { deploymentMode: "Distributed", loki: { storage: { type: "s3" } } };
    expect(() => objectsOf(s3)).toThrow("set loki.storage.bucketNames.chunks");
    expect(schemaProblems(merged(own, { ingester: { replica: 3 } }), schema)).toEqual([
      "/ingester/replica: no such key",
    ]);
  });

  needs("helm")("passes helm lint", () => {
    expect(runTool("helm", ["lint", folder])).toMatchObject({ status: 0 });
  });
});
