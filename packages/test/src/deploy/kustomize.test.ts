import { describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import { problemsOf } from "../testing/deploy/kubernetes-types.js";
import { resolveKustomization } from "../testing/deploy/kustomize.js";
import { nameOf, ofKind, problemsBetween, workloadsOf } from "../testing/deploy/pods.js";
import { asList, at, type Fields, parseObjects, runTool } from "../testing/deploy/repository.js";

const overlays = ["deploy/k8s/overlays/single", "deploy/k8s/overlays/cluster"];
const cluster = resolveKustomization("deploy/k8s/overlays/cluster");

describe.each(overlays)("%s", (folder) => {
  const objects = resolveKustomization(folder);

  it("has objects of the API of Kubernetes", () => {
    expect(objects.flatMap(problemsOf)).toEqual([]);
  });

  it("has objects that fit together, and pods that may not do more than they need", () => {
    expect(problemsBetween(objects)).toEqual([]);
  });

  needs("kubectl")("is what kubectl makes of it", () => {
    const done = runTool("kubectl", ["kustomize", folder]);
    expect(done).toMatchObject({ status: 0 });
    const byName = (list: readonly Fields[]) =>
      Object.fromEntries(list.map((one) => [`${one.kind} ${nameOf(one)}`, one]));
    // Kustomize adds a hash to the names of generated maps.
    const text = done.output.replace(/\b(skald|gateway)-[a-z0-9]{10}$/gm, "$1");
    expect(byName(parseObjects(text))).toEqual(byName(objects));
  });
});

describe("the cluster", () => {
  it("has at least two pods of every service except Redis", () => {
    const least = (name: string) =>
      ofKind(cluster, "HorizontalPodAutoscaler").find((one) => nameOf(one) === name);
    const few = workloadsOf(cluster).filter((object) => {
      const pods =
        at(object, "spec", "replicas") ?? at(least(nameOf(object)), "spec", "minReplicas");
      return !(Number(pods) >= 2);
    });
    expect(few.map(nameOf)).toEqual(["redis"]);
  });

  it("runs every service", () => {
    const targets = workloadsOf(cluster)
      .flatMap((object) =>
        asList(at(object, "spec", "template", "spec", "containers", 0, "args")).map(String),
      )
      .flatMap((arg) => (arg.startsWith("-target=") ? [arg.slice("-target=".length)] : []));
    expect(targets.sort()).toEqual([
      "compactor",
      "distributor",
      "index-gateway",
      "ingester",
      "pattern-ingester",
      "querier",
      "query-frontend",
      "query-scheduler",
      "ruler",
    ]);
  });

  it("has ingesters on disks that stay, which prepare their end", () => {
    const ingester = cluster.find(
      (object) => object.kind === "StatefulSet" && nameOf(object) === "ingester",
    );
    expect(at(ingester, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")).toBe(
      "Retain",
    );
    expect(
      at(
        ingester,
        "spec",
        "template",
        "spec",
        "containers",
        0,
        "lifecycle",
        "preStop",
        "exec",
        "command",
      ),
    ).toEqual(["/nodejs/bin/node", "/app/prepare-shutdown.mjs"]);
    expect(at(ingester, "spec", "template", "spec", "serviceAccountName")).toBe("skald-ingester");
  });

  it("never has two ingesters on a node, and waits between two in a rollout", () => {
    const [ingester] = ofKind(cluster, "StatefulSet").filter((one) => nameOf(one) === "ingester");
    expect(Number(at(ingester, "spec", "minReadySeconds"))).toBeGreaterThan(15);
    const [, byNode] = asList(
      at(ingester, "spec", "template", "spec", "topologySpreadConstraints"),
    );
    expect(byNode).toMatchObject({
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "DoNotSchedule",
    });
  });

  it("has a budget for every service, and lets a pod go where there are two", () => {
    const names = ofKind(cluster, "PodDisruptionBudget").map(nameOf);
    const services = workloadsOf(cluster)
      .map(nameOf)
      .filter((name) => name !== "redis");
    expect(names.sort()).toEqual(services.sort());
  });

  it("spreads every service over zones", () => {
    for (const workload of workloadsOf(cluster).filter((object) => nameOf(object) !== "redis"))
      expect([
        nameOf(workload),
        at(workload, "spec", "template", "spec", "topologySpreadConstraints", 0, "topologyKey"),
      ]).toEqual([nameOf(workload), "topology.kubernetes.io/zone"]);
  });
});
