import { asFields, asList, at, type Fields, type Value } from "./repository.js";

/** The objects of one kind. */
export function ofKind(objects: readonly Fields[], kind: string): Fields[] {
  return objects.filter((object) => object.kind === kind);
}

export function nameOf(object: Fields): string {
  return String(at(object, "metadata", "name"));
}

/** The Deployments and StatefulSets. */
export function workloadsOf(objects: readonly Fields[]): Fields[] {
  return [...ofKind(objects, "Deployment"), ...ofKind(objects, "StatefulSet")];
}

/** Describes what is wrong between objects: unknown names, selectors that match nothing, pods with too many rights. */
export function problemsBetween(objects: readonly Fields[]): string[] {
  const problems: string[] = [];
  const names = new Set(objects.map((object) => `${object.kind} ${nameOf(object)}`));
  if (names.size !== objects.length) problems.push("two objects of a kind have one name");
  for (const workload of workloadsOf(objects)) problems.push(...problemsOfPod(workload, names));
  for (const kind of ["Service", "PodDisruptionBudget"]) {
    for (const object of ofKind(objects, kind)) {
      const selector =
        at(object, "spec", "selector", "matchLabels") ?? at(object, "spec", "selector");
      if (!workloadsOf(objects).some((workload) => selects(selector, labelsOf(workload))))
        problems.push(`${kind} ${nameOf(object)} selects no pod`);
    }
  }
  for (const scaler of ofKind(objects, "HorizontalPodAutoscaler")) {
    const target = asFields(at(scaler, "spec", "scaleTargetRef"));
    const found = objects.find(
      (object) => object.kind === target.kind && nameOf(object) === target.name,
    );
    if (found === undefined) problems.push(`nothing for autoscaler ${nameOf(scaler)}`);
    else if (at(found, "spec", "replicas") !== undefined)
      problems.push(`${target.name} has replicas and an autoscaler`);
  }
  return problems;
}

function problemsOfPod(workload: Fields, names: ReadonlySet<string>): string[] {
  const problems: string[] = [];
  const spec = asFields(at(workload, "spec", "template", "spec"));
  const say = (what: string) => problems.push(`${workload.kind} ${nameOf(workload)}: ${what}`);
  if (!selects(at(workload, "spec", "selector", "matchLabels"), labelsOf(workload)))
    say("does not select its own pods");
  if (at(spec, "securityContext", "runAsNonRoot") !== true) say("may run as root");
  if (at(spec, "securityContext", "seccompProfile", "type") !== "RuntimeDefault")
    say("no seccomp profile");
  const volumes = new Set([
    ...asList(spec.volumes).map((volume) => at(volume, "name")),
    ...asList(at(workload, "spec", "volumeClaimTemplates")).map((claim) =>
      at(claim, "metadata", "name"),
    ),
  ]);
  for (const volume of asList(spec.volumes)) {
    const map = at(volume, "configMap", "name");
    if (map !== undefined && !names.has(`ConfigMap ${map}`)) say(`no ConfigMap ${map}`);
  }
  for (const container of asList(spec.containers)) {
    if (at(container, "securityContext", "readOnlyRootFilesystem") !== true)
      say("writes to its root");
    if (at(container, "securityContext", "allowPrivilegeEscalation") !== false)
      say("may become root");
    if (at(container, "securityContext", "capabilities", "drop", 0) !== "ALL")
      say("has capabilities");
    for (const probe of ["readinessProbe", "livenessProbe"])
      if (at(container, probe) === undefined) say(`no ${probe}`);
    if (at(container, "resources", "limits", "memory") === undefined) say("no limit of memory");
    for (const mount of asList(at(container, "volumeMounts")))
      if (!volumes.has(at(mount, "name"))) say(`no volume ${at(mount, "name")}`);
  }
  const service = at(workload, "spec", "serviceName");
  if (service !== undefined && !names.has(`Service ${service}`)) say(`no Service ${service}`);
  return problems;
}

function labelsOf(workload: Fields): Fields {
  return asFields(at(workload, "spec", "template", "metadata", "labels"));
}

function selects(selector: Value, labels: Fields): boolean {
  const entries = Object.entries(asFields(selector));
  return entries.length > 0 && entries.every(([name, value]) => labels[name] === value);
}
