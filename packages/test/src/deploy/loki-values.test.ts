import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { schemaProblems } from "../testing/deploy/json-schema.js";
import { nameOf, ofKind, workloadsOf } from "../testing/deploy/pods.js";
import {
  asFields,
  at,
  type Fields,
  filesBelow,
  parseYaml,
  readText,
  type Value,
} from "../testing/deploy/repository.js";
import { chartFolder, configTextOf, notesOf, objectsOf, podsOf } from "../testing/helm/chart.js";
import { lokiExamples, lokiKeys } from "../testing/helm/loki-chart.js";
import { merged } from "../testing/helm/render.js";
import { binSkald, makeFolder, removeFolders, runProgram } from "../testing/server.js";

afterAll(removeFolders);

const schema = parseYaml(readText(`${chartFolder}/values.schema.json`));
const own = parseYaml(readText(`${chartFolder}/values.yaml`));
/** Reasons by path; a path that begins with `*` is of each component. */
const ignored = asFields(parseYaml(readText(`${chartFolder}/files/loki-values.yaml`)));
const components = [
  ...["singleBinary", "distributor", "ingester", "querier", "queryFrontend", "queryScheduler"],
  ...["indexGateway", "compactor", "ruler", "patternIngester", "write", "read", "backend"],
];
const lokisValues = (name: string) => parseYaml(lokiExamples[name] ?? "");

/** Paths of all keys that Loki's chart documents. */
const documented = Object.entries(lokiKeys).flatMap(([map, keys]) =>
  keys.split(/\s+/).map((key) => (map === "" ? key : `${map}.${key}`)),
);

/** The line of the table that speaks of a key or of a map around it. */
function lineOf(path: string): string | undefined {
  const [top = "", ...rest] = path.split(".");
  const names = components.includes(top) ? [path, ["*", ...rest].join(".")] : [path];
  return Object.keys(ignored).find((line) =>
    names.some((name) => name === line || name.startsWith(`${line}.`)),
  );
}

/** Values with one key set to something that counts as set. */
function valuesWith(path: string): Fields {
  return path
    .split(".")
    .reduceRight((value: Value, name) => ({ [name]: value }), { any: "thing" }) as Fields;
}

describe("keys that Loki's chart documents", () => {
  it("are more than a thousand", () => {
    expect(documented.length).toBeGreaterThan(1000);
  });

  it("are known to the schema, all of them", () => {
    const unknown = documented.filter((path) =>
      schemaProblems(valuesWith(path), schema).some((problem) => problem.endsWith("no such key")),
    );
    // Maps end in a thing of any name here.
    expect(unknown.filter((path) => !isMapOfNames(path))).toEqual([]);
  });

  it("are read by a template, or the table says why not", () => {
    const templates = filesBelow(`${chartFolder}/templates`).map(readText).join("\n");
    const isRead = (path: string) => {
      const key = path.split(".").at(-1) ?? "";
      return new RegExp(`([."]|values: )${key}\\b`).test(templates);
    };
    expect(documented.filter((path) => lineOf(path) === undefined && !isRead(path))).toEqual([]);
  });

  it("are all that the table speaks of", () => {
    const known = new Set(documented);
    const names = (line: string) =>
      line.startsWith("*.") ? components.map((one) => one + line.slice(1)) : [line];
    const stale = Object.keys(ignored).filter((line) => !names(line).some((one) => known.has(one)));
    expect(stale).toEqual([]);
  });

  it("get the warning of the table where they are set", () => {
    const missing = new Set(Object.keys(ignored));
    const modes = {
      SingleBinary: ["singleBinary"],
      SimpleScalable: ["write", "read", "backend"],
      Distributed: components.slice(1, 10),
    };
    for (const [deploymentMode, running] of Object.entries(modes)) {
      const lines = Object.keys(ignored).filter((line) => !isAround(line, running));
      const paths = lines.flatMap((line) =>
        line.startsWith("*.") ? running.map((one) => one + line.slice(1)) : [line],
      );
      const storage = { bucketNames: { chunks: "logs" } };
      const patternIngester = { replicas: 1 };
      const values = paths.map(valuesWith).reduce(merged, {
        ...{ deploymentMode, patternIngester, loki: { storage } },
      });
      const told = new Set(notesOf(values).match(/^- .*$/gm));
      for (const line of lines)
        for (const one of line.startsWith("*.") ? running : [""])
          if (told.has(`- ${line.replace("*", one)}: ${ignored[line]}`)) missing.delete(line);
    }
    expect([...missing]).toEqual([]);
  });
});

/** Whether a line speaks of one component that does not run. */
function isAround(line: string, running: readonly string[]): boolean {
  const top = line.split(".")[0] ?? "";
  return components.includes(top) && !running.includes(top);
}

/** Whether schemaProblems of `valuesWith` speak of the thing in the map, not of the path itself. */
function isMapOfNames(path: string): boolean {
  const problems = schemaProblems(valuesWith(path), schema);
  return problems.every(
    (one) => !one.endsWith("no such key") || one.startsWith(`/${path.replaceAll(".", "/")}/any`),
  );
}

describe.each(Object.keys(lokiExamples))("values of Loki's chart: %s", (name) => {
  it("follow the schema", () => {
    expect(schemaProblems(merged(own, lokisValues(name)), schema)).toEqual([]);
  });

  it("make a configuration that the program takes", async () => {
    const file = join(makeFolder(), "config.yaml");
    writeFileSync(file, configTextOf(lokisValues(name)));
    const env = { S3_ACCESS_KEY: "a", S3_SECRET_KEY: "b", REDIS_PASSWORD: "c" };
    const args = [`-config.file=${file}`, "-config.expand-env", "-verify-config"];
    const found = await runProgram(binSkald, args, { env });
    expect(found).toMatchObject({ code: 0 });
  });
});

describe("values of Loki's chart", () => {
  it("make one process, which keeps its data on its disk instead of MinIO", () => {
    const values = lokisValues("SingleBinary");
    expect(podsOf(values)).toEqual({ skald: 1 });
    const config = parseYaml(configTextOf(values));
    expect(at(config, "schema_config", "configs", 0, "object_store")).toBe("filesystem");
    expect(at(config, "pattern_ingester", "enabled")).toBe(true);
    expect(at(config, "ruler", "enable_api")).toBe(true);
    expect(notesOf(values).match(/^- .*$/gm)).toEqual([
      "- minio: one process keeps its data on its disk",
    ]);
  });

  it("make processes that write, read and do the rest", () => {
    const values = lokisValues("SimpleScalable");
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
      "- loki.storage.bucketNames.ruler: rules are in the bucket of the chunks",
      "- chunksCache: queriers keep what they read on their own disks; give them room with querier.persistence.size",
      "- loki.storage.bucketNames.admin: part of the enterprise edition of Loki",
    ]);
  });

  it("make a cluster with the numbers that they say", () => {
    const values = lokisValues("Distributed");
    expect(podsOf(values)).toEqual({
      ...{ "skald-distributor": 3, "skald-ingester": 4, "skald-querier": 3 },
      ...{ "skald-query-frontend": 2, "skald-query-scheduler": 2, "skald-index-gateway": 2 },
      ...{ "skald-compactor": 1, "skald-ruler": 1, "skald-pattern-ingester": 1 },
      ...{ "skald-gateway": 2, "skald-redis": 1 },
    });
    const config = parseYaml(configTextOf(values));
    expect(at(config, "storage_config", "aws", "bucketnames")).toBe("chunks");
    expect(at(config, "storage_config", "tsdb_shipper")).toBeDefined();
    expect(notesOf(values).match(/^- .*$/gm)).toEqual([
      "- loki.storage.bucketNames.admin: part of the enterprise edition of Loki",
      "- memberlist: the rings are in Redis",
    ]);
  });

  it("get a warning where one process runs for several", () => {
    const values = lokisValues("several copies of one process");
    expect(podsOf(values)).toEqual({ skald: 1 });
    expect(notesOf(values)).toContain("- singleBinary.replicas: one process runs");
  });

  it("get a warning where patterns are wanted and no pattern ingester runs", () => {
    const values = merged(lokisValues("Distributed"), { patternIngester: { replicas: 0 } });
    expect(notesOf(values)).toContain(
      "- loki.pattern_ingester.enabled: set patternIngester.replicas",
    );
  });

  it("get no warning where all of them count", () => {
    expect(notesOf({})).not.toContain("without effect");
  });

  it("run the bucket that they call MinIO, for tests", () => {
    const values = lokisValues("processes that write, read and do the rest, with MinIO");
    expect(podsOf(values)).toMatchObject({ "skald-bucket": 1, "skald-write": 3 });
    expect(at(parseYaml(configTextOf(values)), "common", "storage", "s3")).toMatchObject({
      endpoint: "http://skald-bucket:8333",
      bucketnames: "chunks",
    });
    const secret = ofKind(objectsOf(values), "Secret").find((one) => nameOf(one) === "skald-s3");
    expect(at(secret, "stringData", "S3_ACCESS_KEY")).toBe("root");
  });

  it("name a bucket by the words of Thanos", () => {
    const values = lokisValues("a bucket by the words of Thanos");
    expect(podsOf(values)).not.toHaveProperty("skald-bucket");
    expect(at(parseYaml(configTextOf(values)), "common", "storage", "s3")).toMatchObject({
      endpoint: "minio.example:9000",
      bucketnames: "logs",
      insecure: true,
    });
  });

  it("put users before the gateway, one process too", () => {
    const usersOf = (name: string) => {
      const objects = objectsOf(lokisValues(name));
      const secret = ofKind(objects, "Secret").find((one) => nameOf(one) === "skald-gateway");
      const gateway = ofKind(objects, "ConfigMap").find((one) => nameOf(one) === "skald-gateway");
      const text = String(at(gateway, "data", "nginx.conf"));
      expect(text).toContain("auth_basic_user_file /etc/nginx/secrets/.htpasswd;");
      return {
        users: String(at(secret, "stringData", ".htpasswd"))
          .trim()
          .split("\n"),
        byName: text.includes("X-Scope-OrgID $remote_user"),
        to: /upstream distributor \{\s+server (\S+):/.exec(text)?.[1],
      };
    };
    expect(usersOf("an ingress with users before one process")).toEqual({
      ...{ users: ["agent:hash of hush"], byName: false, to: "skald" },
    });
    expect(usersOf("a cluster with MinIO, users and canary")).toEqual({
      ...{ users: ["shop:hash of hush", "web:$2y$10$abc"], byName: true, to: "skald-distributor" },
    });
  });

  it("give a pod what they say of it", () => {
    const objects = objectsOf(lokisValues("a cluster with MinIO, users and canary"));
    const specOf = (name: string) =>
      at(
        workloadsOf(objects).find((one) => nameOf(one) === name),
        "spec",
        "template",
        "spec",
      );
    expect(at(specOf("skald-querier"), "hostAliases", 0, "ip")).toBe("10.0.0.1");
    expect(at(specOf("skald-querier"), "dnsConfig", "options", 0, "value")).toBe("3");
    const ingester = workloadsOf(objects).find((one) => nameOf(one) === "skald-ingester");
    expect(at(ingester, "spec", "volumeClaimTemplates", 0, "spec")).toMatchObject({
      storageClassName: "fast",
      resources: { requests: { storage: "30Gi" } },
    });
    expect(ofKind(objects, "HorizontalPodAutoscaler").map(nameOf)).toEqual([
      "skald-query-frontend",
    ]);
    const pods = podsOf(lokisValues("a cluster with MinIO, users and canary"));
    expect(pods).toMatchObject({ "skald-ruler": 0, "skald-compactor": 1 });
  });

  it("are refused with what to do where rows cannot be stored", () => {
    expect(() => objectsOf(parseYaml("loki: { storage: { type: gcs } }"))).toThrow(
      "rows are in S3 or in a folder, not in gcs: set loki.storage.type to s3",
    );
  });
});
