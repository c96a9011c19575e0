import { asFields, type Fields, isFields, readText, type Value } from "./repository.js";

interface Types {
  /** "apps/v1 Deployment" -> the name of its type. */
  readonly kinds: Readonly<Record<string, string>>;
  /** The fields of a type with their TypeScript types; an optional field has a ? after its name. Or the name of another type. */
  readonly types: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
}

const known = JSON.parse(readText("packages/test/testdata/kubernetes.json")) as Types;

/**
 * Describes what is wrong with an object by the types of the Kubernetes API: unknown kinds and fields, missing fields, values
 * of a wrong type. An API server checks more, such as port numbers and names.
 */
export function problemsOf(object: Fields): string[] {
  const kind = `${object.apiVersion} ${object.kind}`;
  const type = known.kinds[kind];
  if (type === undefined) return [`${kind}: no such kind`];
  const problems: string[] = [];
  const name = isFields(object.metadata) ? object.metadata.name : undefined;
  if (typeof name !== "string" || !/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(name))
    problems.push(`${kind}: not a name: ${name}`);
  check(object, type, `${kind} ${name}`, problems);
  return problems;
}

function check(value: Value, type: string, path: string, problems: string[]): void {
  const found = known.types[type];
  if (typeof found === "object") checkFields(value, found, path, problems);
  else if (found !== undefined) checkPlain(value, `${found} | number`, path, problems);
  else if (type.startsWith("Array<")) checkItems(value, type.slice(6, -1), path, problems);
  else if (type.startsWith("{")) checkMap(value, type, path, problems);
  else checkPlain(value, type, path, problems);
}

function checkFields(
  value: Value,
  fields: Readonly<Record<string, string>>,
  path: string,
  problems: string[],
): void {
  if (!isFields(value)) {
    problems.push(`${path}: not a map`);
    return;
  }
  for (const [name, one] of Object.entries(value)) {
    const type = fields[name] ?? fields[`${name}?`];
    if (type === undefined) problems.push(`${path}: no field ${name}`);
    else check(one, type, `${path}.${name}`, problems);
  }
  for (const name of Object.keys(fields)) {
    if (!name.endsWith("?") && value[name] === undefined)
      problems.push(`${path}: ${name} is missing`);
  }
}

function checkItems(value: Value, type: string, path: string, problems: string[]): void {
  if (!Array.isArray(value)) problems.push(`${path}: not a list`);
  else
    for (const [index, item] of value.entries()) check(item, type, `${path}[${index}]`, problems);
}

function checkMap(value: Value, type: string, path: string, problems: string[]): void {
  const [, item = "any"] = /\]: (.*)\}$/.exec(type) ?? [];
  if (!isFields(value)) problems.push(`${path}: not a map`);
  else
    for (const [name, one] of Object.entries(asFields(value)))
      check(one, item, `${path}.${name}`, problems);
}

function checkPlain(value: Value, type: string, path: string, problems: string[]): void {
  const isOne = type
    .split(" | ")
    .some((one) => one === "any" || one === typeof value || one === JSON.stringify(value));
  if (!isOne) problems.push(`${path}: ${JSON.stringify(value)} is not ${type}`);
}
