import { nameOf, ofKind, workloadsOf } from "../deploy/pods.js";
import { at, type Fields, parseObjects, type Value } from "../deploy/repository.js";
import { renderChart } from "./render.js";

export const chartFolder = "deploy/helm/skald";

/** The objects that Helm would send to Kubernetes, in the order of their files. */
export function objectsOf(values: Fields): Fields[] {
  const files = [...renderChart(chartFolder, values)].filter(([file]) => file.endsWith(".yaml"));
  return files.flatMap(([, text]) => parseObjects(text));
}

/** What `helm install` prints. */
export function notesOf(values: Fields): string {
  return renderChart(chartFolder, values).get("NOTES.txt") ?? "";
}

/** The configuration file in the chart's ConfigMap. */
export function configTextOf(values: Fields): string {
  const map = ofKind(objectsOf(values), "ConfigMap").find((one) => nameOf(one) === "skald");
  return String(at(map, "data", "config.yaml"));
}

/** The pods of each workload that has a number of them. */
export function podsOf(values: Fields): Record<string, Value> {
  return Object.fromEntries(
    workloadsOf(objectsOf(values)).map((one) => [nameOf(one), at(one, "spec", "replicas")]),
  );
}
