import { asFields, asList, type Fields, isFields, type Value } from "./repository.js";

const understood = new Set([
  ...["$schema", "title", "type", "enum", "properties", "required", "additionalProperties"],
  ...["items", "minimum", "maximum", "minLength", "pattern", "definitions"],
]);

/** Describes where a value does not follow a JSON schema; throws at a keyword that it does not know. */
export function schemaProblems(
  value: Value,
  given: Fields,
  { path = "", whole = given }: { readonly path?: string; readonly whole?: Fields } = {},
): string[] {
  const schema = resolved(given, whole);
  for (const word of Object.keys(schema))
    if (!understood.has(word)) throw new Error(`${word} of a schema is not understood here`);
  const problems: string[] = [];
  const say = (what: string) => problems.push(`${path || "/"}: ${what}`);
  if (schema.enum !== undefined && !asList(schema.enum).includes(value))
    say("not one of its values");
  if (schema.type !== undefined && ![schema.type].flat().some((type) => isOf(value, String(type))))
    say(`not of type ${schema.type}`);
  if (typeof value === "number") {
    if (value < Number(schema.minimum ?? value)) say("too small");
    if (value > Number(schema.maximum ?? value)) say("too large");
  }
  if (typeof value === "string") {
    if (value.length < Number(schema.minLength ?? 0)) say("too short");
    if (schema.pattern !== undefined && !new RegExp(String(schema.pattern)).test(value))
      say("not of its form");
  }
  if (Array.isArray(value) && schema.items !== undefined)
    for (const [index, item] of value.entries())
      problems.push(
        ...schemaProblems(item, asFields(schema.items), { path: `${path}/${index}`, whole }),
      );
  if (isFields(value)) problems.push(...propertyProblems(value, schema, { path, whole }));
  return problems;
}

/** The part of the whole schema that a `$ref` names. */
function resolved(schema: Fields, whole: Fields): Fields {
  if (schema.$ref === undefined) return schema;
  const [, , name = ""] = String(schema.$ref).split("/");
  return asFields(asFields(whole.definitions)[name]);
}

function propertyProblems(
  value: Fields,
  schema: Fields,
  { path, whole }: { readonly path: string; readonly whole: Fields },
): string[] {
  const problems: string[] = [];
  const properties = asFields(schema.properties ?? {});
  for (const [name, one] of Object.entries(value)) {
    const known = properties[name];
    if (known !== undefined)
      problems.push(...schemaProblems(one, asFields(known), { path: `${path}/${name}`, whole }));
    else if (schema.additionalProperties === false) problems.push(`${path}/${name}: no such key`);
  }
  for (const name of asList(schema.required))
    if (value[String(name)] === undefined) problems.push(`${path}/${name}: missing`);
  return problems;
}

function isOf(value: Value, type: string): boolean {
  switch (type) {
    case "object":
      return isFields(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}
