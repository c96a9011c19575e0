import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  asFields,
  asList,
  at,
  type Fields,
  isFields,
  parseObjects,
  parseYaml,
  readText,
  root,
  type Value,
} from "./repository.js";

const understood = new Set([
  ...["apiVersion", "kind", "namespace", "resources", "components"],
  ...["patches", "configMapGenerator", "images"],
]);
const withoutNamespace = new Set(["Namespace"]);

/**
 * The objects of a kustomization: resources, components with patches by kind and label, generated maps (without the hash after
 * their names), namespace, image tags. Throws at anything else.
 */
export function resolveKustomization(folder: string): Fields[] {
  const file = parseYaml(readText(`${folder}/kustomization.yaml`));
  for (const key of Object.keys(file))
    if (!understood.has(key)) throw new Error(`${folder}: ${key} is not understood here`);
  let objects = asList(file.resources).flatMap((path) => load(join(folder, String(path))));
  for (const path of asList(file.components))
    objects = applyPatches(join(folder, String(path)), objects);
  for (const generator of asList(file.configMapGenerator))
    objects.push(generate(folder, generator));
  for (const image of asList(file.images))
    objects = objects.map((one) => setTag(one, asFields(image)));
  const { namespace } = file;
  if (namespace !== undefined) objects = objects.map((one) => setNamespace(one, namespace));
  return objects;
}

function load(path: string): Fields[] {
  if (!existsSync(join(root, path))) throw new Error(`there is no ${path}`);
  if (statSync(join(root, path)).isDirectory()) return resolveKustomization(path);
  return parseObjects(readText(path));
}

function applyPatches(folder: string, objects: readonly Fields[]): Fields[] {
  const component = parseYaml(readText(`${folder}/kustomization.yaml`));
  let patched = [...objects];
  for (const one of asList(component.patches)) {
    const { metadata, kind, apiVersion, ...patch } = parseYaml(
      readText(join(folder, String(at(one, "path")))),
    );
    const [label = "", value] = String(at(one, "target", "labelSelector")).split("=");
    patched = patched.map((object) => {
      const isMeant =
        object.kind === at(one, "target", "kind") &&
        at(object, "metadata", "labels", label) === value;
      return isMeant ? asFields(merge(object, patch)) : object;
    });
  }
  return patched;
}

/** A strategic merge: maps are merged by key, lists of named things by name, and other lists are replaced. */
function merge(value: Value, patch: Value): Value {
  if (isFields(value) && isFields(patch)) {
    const result: Record<string, Value> = { ...value };
    for (const [name, one] of Object.entries(patch)) result[name] = merge(value[name], one);
    return result;
  }
  if (
    Array.isArray(value) &&
    Array.isArray(patch) &&
    patch.every((one) => isFields(one) && "name" in one)
  )
    return mergeByName(value, patch);
  return patch ?? value;
}

function mergeByName(items: readonly Value[], patch: readonly Value[]): Value[] {
  const isSame = (a: Value, b: Value) => at(a, "name") === at(b, "name");
  return [
    ...patch.filter((one) => !items.some((item) => isSame(item, one))),
    ...items.map((item) => merge(item, patch.find((one) => isSame(one, item)) ?? item)),
  ];
}

function generate(folder: string, generator: Value): Fields {
  const files = asList(at(generator, "files")).map(String);
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: String(at(generator, "name")) },
    data: Object.fromEntries(files.map((file) => [file, readText(join(folder, file))])),
  };
}

function setTag(object: Fields, image: Fields): Fields {
  return asFields(
    JSON.parse(JSON.stringify(object), (key: string, value: Value) =>
      key === "image" && String(value).replace(/:[^:/]*$/, "") === image.name
        ? `${image.name}:${image.newTag}`
        : value,
    ),
  );
}

function setNamespace(object: Fields, namespace: Value): Fields {
  if (withoutNamespace.has(String(object.kind))) return object;
  return { ...object, metadata: { ...asFields(object.metadata), namespace } };
}
