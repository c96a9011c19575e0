import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { resolveKustomization } from "../testing/deploy/kustomize.js";
import { ofKind } from "../testing/deploy/pods.js";
import {
  asFields,
  at,
  type Fields,
  parseObjects,
  parseYaml,
  readText,
} from "../testing/deploy/repository.js";
import { renderChart } from "../testing/helm/render.js";
import { binSkald, makeFolder, removeFolders, runProgram } from "../testing/server.js";

afterAll(removeFolders);

const env = {
  S3_ENDPOINT: "https://s3.example",
  S3_REGION: "eu",
  S3_BUCKET: "logs",
  S3_ACCESS_KEY: "a",
  S3_SECRET_KEY: "b",
};

/** The configuration file that the chart makes from these values. */
function chartConfig(values: Fields): string {
  const objects = [...renderChart("deploy/helm/skald", values)]
    .filter(([file]) => file.endsWith(".yaml"))
    .flatMap(([, text]) => parseObjects(text));
  const map = ofKind(objects, "ConfigMap").find(
    (object) => at(object, "metadata", "name") === "skald",
  );
  return String(at(map, "data", "config.yaml"));
}

const inBucket = (mode: string) => `
deploymentMode: ${mode}
loki:
  pattern_ingester: { enabled: true }
  ingester: { chunk_encoding: snappy }
  querier: { max_concurrent: 4 }
  tracing: { enabled: false }
  storage: { type: s3, bucketNames: { chunks: logs }, s3: { endpoint: https://s3.example, accessKeyId: a, secretAccessKey: b } }
`;

it.each([
  ["deploy/docker/local-config.yaml", () => readText("deploy/docker/local-config.yaml")],
  ["deploy/docker/cluster-config.yaml", () => readText("deploy/docker/cluster-config.yaml")],
  [
    "deploy/k8s/overlays/single/config.yaml",
    () => readText("deploy/k8s/overlays/single/config.yaml"),
  ],
  [
    "deploy/k8s/overlays/cluster/config.yaml",
    () => readText("deploy/k8s/overlays/cluster/config.yaml"),
  ],
  ["that of the chart, one process", () => chartConfig({})],
  ["that of the chart, a cluster", () => chartConfig(parseYaml(inBucket("Distributed")))],
  ["that of the chart, in three parts", () => chartConfig(parseYaml(inBucket("SimpleScalable")))],
])("the program takes %s", async (_, text) => {
  const file = join(makeFolder(), "config.yaml");
  writeFileSync(file, text());
  const args = ["-verify-config", "-config.expand-env", `-config.file=${file}`];
  expect(await runProgram(binSkald, args, { env })).toMatchObject({ code: 0 });
});

it("the cluster of the kustomization and that of the compose file differ in where things are only", () => {
  const maps = ofKind(resolveKustomization("deploy/k8s/overlays/cluster"), "ConfigMap");
  const config = asFields(parseYaml(String(at(maps[0], "data", "config.yaml"))));
  const compose = parseYaml(readText("deploy/docker/cluster-config.yaml"));
  expect(Object.keys(compose).filter((key) => key !== "ingester")).toEqual(Object.keys(config));
});
