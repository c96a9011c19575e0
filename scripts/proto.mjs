// Writes packages/contracts/src/codec/schema.ts from proto/*.proto, which are the only schema: `npm run proto`. With --check it
// fails where the file is not what they say.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSync } from "@grpc/proto-loader";

const target = "packages/contracts/src/codec/schema.ts";
const packageName = "skald.v1.";
/** How a value is written: its type of protobuf, alone and in a list that is packed. */
const scalars = {
  TYPE_UINT64: ["uint"],
  TYPE_DOUBLE: ["double", "f64s"],
  TYPE_SFIXED64: ["int64", "i64s"],
  TYPE_FIXED32: [undefined, "u32s"],
  TYPE_BOOL: ["bool"],
  TYPE_STRING: ["string"],
  TYPE_BYTES: ["bytes"],
};

const loaded = loadSync(["services.proto"], {
  includeDirs: [join(import.meta.dirname, "../proto")],
  keepCase: true,
});
const messages = {};
const services = {};
for (const [fullName, one] of Object.entries(loaded)) {
  if (!fullName.startsWith(packageName)) continue;
  const name = fullName.slice(packageName.length);
  if (one.format !== undefined) messages[name] = messageOf(one.type);
  else services[name] = serviceOf(one);
}

function messageOf({ name, field, oneofDecl }) {
  const optional = new Set(oneofDecl.map((one) => one.name));
  const entries = field.map((one) => [one, entryOf(name, one, optional.has(`_${one.name}`))]);
  const union = oneofDecl.some((one) => one.name === "kind");
  if (!union)
    return Object.fromEntries(entries.map(([one, entry]) => [camelCase(one.name), entry]));
  return { oneof: Object.fromEntries(entries.map(([one, entry]) => [one.name, entry])) };
}

function entryOf(owner, { name, number, label, type, typeName }, isOptional) {
  const isRepeated = label === "LABEL_REPEATED";
  if (type === "TYPE_MESSAGE")
    return [number, typeName.split(".").pop(), ...rule(isRepeated, isOptional)];
  const [single, packed] = scalars[type] ?? [];
  if (isRepeated && packed !== undefined) return [number, packed];
  if (single === undefined) throw new Error(`${owner}.${name}: no codec for ${type}`);
  return [number, single, ...rule(isRepeated, isOptional)];
}

function rule(isRepeated, isOptional) {
  if (isRepeated) return ["repeated"];
  return isOptional ? ["optional"] : [];
}

function serviceOf(methods) {
  const list = Object.entries(methods).map(
    ([name, { requestType, responseType, responseStream }]) => {
      const types = [requestType.type.name, responseType.type.name];
      return [name, responseStream ? [...types, "stream"] : types];
    },
  );
  return Object.fromEntries(list);
}

function camelCase(name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

const text = `// Written by \`npm run proto\` from proto/*.proto; do not edit.

/** The fields of each message: number, type, and whether it is optional or repeated. */
export const messages = ${print(messages)} as const;

/** The methods of each service: what it is asked, what it answers, and whether the answer is a stream. */
export const services = ${print(services)} as const;
`;

function print(tables) {
  const lines = Object.entries(tables).map(([name, fields]) => {
    const inner = Object.entries(fields.oneof ?? fields).map(
      ([key, entry]) => `${key}: ${JSON.stringify(entry)}`,
    );
    const body = `{ ${inner.join(", ")} }`;
    return `  ${name}: ${fields.oneof === undefined ? body : `{ oneof: ${body} }`},`;
  });
  return `{\n${lines.join("\n")}\n}`
    .replace(/\{ {2}\}/g, "{}")
    .replaceAll('","', '", "')
    .replace(/(\d),"/g, '$1, "');
}

const path = join(import.meta.dirname, "..", target);
if (!process.argv.includes("--check")) writeFileSync(path, text);
else if (readFileSync(path, "utf8") !== text) {
  console.error(`${target} is not what proto/*.proto say: run \`npm run proto\``);
  process.exit(1);
} else console.log("proto: the schema is what proto/*.proto say");
