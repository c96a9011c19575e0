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
  type Value,
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
  autoscaling: { enabled: true }
  tolerations: [{ operator: Exists }]
querier: { autoscaling: { enabled: false }, extraArgs: [-querier.max-concurrent=8], extraEnv: [{ name: A, value: b }] }
gateway:
  ingress: { enabled: true, ingressClassName: nginx, hosts: [{ host: logs.example, paths: [{ path: / }] }], tls: [] }
monitoring: { dashboards: { enabled: true }, rules: { enabled: true }, serviceMonitor: { enabled: true } }
`),
);
/** Values as the documentation of Loki's chart has them for its three modes. */
const ofLoki = {
  SingleBinary: `
loki:
  commonConfig: { replication_factor: 1 }
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  pattern_ingester: { enabled: true }
  limits_config: { allow_structured_metadata: true, volume_enabled: true, retention_period: 672h }
  ruler: { enable_api: true }
minio: { enabled: true }
deploymentMode: SingleBinary
singleBinary: { replicas: 1 }
backend: { replicas: 0 }
read: { replicas: 0 }
write: { replicas: 0 }
ingester: { replicas: 0 }
querier: { replicas: 0 }
queryFrontend: { replicas: 0 }
queryScheduler: { replicas: 0 }
distributor: { replicas: 0 }
compactor: { replicas: 0 }
indexGateway: { replicas: 0 }
bloomPlanner: { replicas: 0 }
bloomBuilder: { replicas: 0 }
bloomGateway: { replicas: 0 }
`,
  SimpleScalable: `
loki:
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  ingester: { chunk_encoding: snappy }
  querier: { max_concurrent: 4 }
  pattern_ingester: { enabled: true }
  limits_config: { allow_structured_metadata: true, volume_enabled: true }
  storage:
    type: s3
    bucketNames: { chunks: chunks, ruler: ruler, admin: admin }
    s3: { endpoint: null, region: eu-central-1, accessKeyId: a, secretAccessKey: b, s3ForcePathStyle: false, insecure: false, http_config: {} }
deploymentMode: SimpleScalable
backend: { replicas: 3, maxUnavailable: 2 }
read: { replicas: 3 }
write: { replicas: 3 }
minio: { enabled: false }
chunksCache: { allocatedMemory: 2048 }
gateway: { service: { type: LoadBalancer }, basicAuth: { enabled: false } }
`,
  Distributed: `
loki:
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  ingester: { chunk_encoding: snappy }
  querier: { max_concurrent: 4 }
  pattern_ingester: { enabled: true }
  storage_config: { aws: { region: eu-central-1, bucketnames: chunks, s3forcepathstyle: false } }
  compactor: { retention_enabled: true, delete_request_store: s3 }
  storage: { type: s3, bucketNames: { chunks: chunks, ruler: chunks, admin: chunks }, s3: { region: eu-central-1 } }
deploymentMode: Distributed
ingester: { replicas: 4, zoneAwareReplication: { enabled: false } }
querier: { replicas: 3, maxUnavailable: 2 }
queryFrontend: { replicas: 2, maxUnavailable: 1 }
queryScheduler: { replicas: 2 }
distributor: { replicas: 3, maxUnavailable: 2 }
compactor: { replicas: 1 }
indexGateway: { replicas: 2, maxUnavailable: 1 }
patternIngester: { replicas: 1 }
ruler: { replicas: 1, maxUnavailable: 1 }
bloomPlanner: { replicas: 0 }
bloomBuilder: { replicas: 0 }
bloomGateway: { replicas: 0 }
backend: { replicas: 0 }
read: { replicas: 0 }
write: { replicas: 0 }
singleBinary: { replicas: 0 }
memberlist: { service: { publishNotReadyAddresses: true } }
resultsCache: { enabled: false }
`,
};
const lokisMode = (mode: keyof typeof ofLoki) => parseYaml(ofLoki[mode]);
const cases: [string, Fields][] = [
  ["Loki's values of one process", lokisMode("SingleBinary")],
  ["Loki's values of processes that write, read and do the rest", lokisMode("SimpleScalable")],
  ["Loki's values of a cluster", lokisMode("Distributed")],
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

/** What `helm install` prints. */
function notesOf(values: Fields): string {
  return renderChart(folder, values).get("NOTES.txt") ?? "";
}

/** The configuration file in the chart's ConfigMap. */
function configTextOf(values: Fields): string {
  const map = ofKind(objectsOf(values), "ConfigMap").find((one) => nameOf(one) === "skald");
  return String(at(map, "data", "config.yaml"));
}

/** The pods of each workload that has a number of them. */
function podsOf(values: Fields): Record<string, Value> {
  return Object.fromEntries(
    workloadsOf(objectsOf(values)).map((one) => [nameOf(one), at(one, "spec", "replicas")]),
  );
}

describe("values of Loki's chart", () => {
  it("make one process, which keeps its data on its disk instead of MinIO", () => {
    const values = lokisMode("SingleBinary");
    expect(podsOf(values)).toEqual({ skald: 1 });
    const config = parseYaml(configTextOf(values));
    expect(at(config, "schema_config", "configs", 0, "object_store")).toBe("filesystem");
    expect(at(config, "pattern_ingester", "enabled")).toBe(true);
    expect(at(config, "ruler", "enable_api")).toBe(true);
    expect(notesOf(values).match(/^- .*$/gm)).toEqual([
      "- minio: this chart brings no MinIO; the process keeps its data on its disk",
    ]);
  });

  it("make processes that write, read and do the rest", () => {
    const values = lokisMode("SimpleScalable");
    expect(podsOf(values)).toEqual({
      ...{ "skald-write": 3, "skald-read": 3, "skald-backend": 3 },
      ...{ "skald-gateway": 2, "skald-redis": 1 },
    });
    const objects = objectsOf(values);
    const gateway = objects.find((one) => nameOf(one) === "skald-gateway");
    const upstreams = [
      ...String(at(gateway, "data", "nginx.conf")).matchAll(/upstream (\S+) \{\s+server (\S+):/g),
    ].map(([, name, host]) => `${name} ${host}`);
    expect(upstreams.sort()).toEqual([
      "compactor skald-backend",
      "distributor skald-write",
      "index-gateway skald-backend",
      "ingester skald-write",
      "pattern-ingester skald-backend",
      "querier skald-read",
      "query-frontend skald-read",
      "query-scheduler skald-backend",
      "ruler skald-backend",
    ]);
    const config = parseYaml(configTextOf(values));
    expect(at(config, "frontend", "scheduler_address")).toBe("skald-backend-headless:9095");
    expect(at(config, "querier", "max_concurrent")).toBe(4);
    const write = objects.find(
      (one) => one.kind === "StatefulSet" && nameOf(one) === "skald-write",
    );
    const container = at(write, "spec", "template", "spec", "containers", 0);
    expect(at(container, "lifecycle", "preStop", "exec", "command", 1)).toBe(
      "/app/prepare-shutdown.mjs",
    );
    const budget = ofKind(objects, "PodDisruptionBudget").find(
      (one) => nameOf(one) === "skald-backend",
    );
    expect(at(budget, "spec", "maxUnavailable")).toBe(2);
    expect(notesOf(values).match(/^- .*$/gm)).toEqual([
      "- chunksCache: queriers keep what they read on their own disks",
      "- loki.storage.bucketNames.ruler: rules are in the bucket of the chunks",
    ]);
  });

  it("make a cluster with the numbers that they say", () => {
    const values = lokisMode("Distributed");
    expect(podsOf(values)).toEqual({
      ...{ "skald-distributor": 3, "skald-ingester": 4, "skald-querier": 3 },
      ...{ "skald-query-frontend": 2, "skald-query-scheduler": 2, "skald-index-gateway": 2 },
      ...{ "skald-compactor": 1, "skald-ruler": 1, "skald-pattern-ingester": 1 },
      ...{ "skald-gateway": 2, "skald-redis": 1 },
    });
    const config = parseYaml(configTextOf(values));
    expect(at(config, "storage_config", "aws", "bucketnames")).toBe("chunks");
    expect(at(config, "storage_config", "tsdb_shipper")).toBeDefined();
    expect(notesOf(values).match(/^- .*$/gm)).toEqual(["- memberlist: the rings are in Redis"]);
  });

  it("get a warning where patterns are wanted and no pattern ingester runs", () => {
    const values = merged(lokisMode("Distributed"), { patternIngester: { replicas: 0 } });
    expect(notesOf(values)).toContain(
      "- loki.pattern_ingester.enabled: set patternIngester.replicas",
    );
  });

  it("get no warning where all of them count", () => {
    expect(notesOf(distributed)).not.toContain("Values without effect");
    expect(notesOf({})).not.toContain("Values without effect");
  });

  it("are refused where ignoring them would open the gateway", () => {
    const values = merged(own, { gateway: { basicAuth: { enabled: true } } });
    expect(schemaProblems(values, schema)).toEqual([
      "/gateway/basicAuth/enabled: not one of its values",
    ]);
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
