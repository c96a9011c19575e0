import type { GroupName } from "./rule-store.js";

/**
 * Keys of rule groups in an object store:
 *
 *     rules/<tenant>/<namespace>/<group>
 *
 * Namespace and group are URL-safe base64 of their UTF-8, so that any name is a key; parts of more than 200 characters
 * take several directories, each but the last with `~` at its end, because file systems take 255 bytes for one.
 */
export const rulesPrefix = "rules/";

const maxPart = 200;

export function tenantRulesPrefix(tenant: string): string {
  const name = /^[A-Za-z0-9!\-_.*'()]{1,200}$/.test(tenant) ? tenant : `~${cut(encode(tenant))}`;
  return `${rulesPrefix}${name}/`;
}

export function namespacePrefix(tenant: string, namespace: string): string {
  return `${tenantRulesPrefix(tenant)}${cut(encode(namespace))}/`;
}

export function groupKey({ tenant, namespace, name }: GroupName): string {
  return namespacePrefix(tenant, namespace) + cut(encode(name));
}

/** What a key says; undefined for any other object. */
export function parseGroupKey(key: string): GroupName | undefined {
  if (!key.startsWith(rulesPrefix)) return undefined;
  const parts = key.slice(rulesPrefix.length).replaceAll("~/", "").split("/");
  const [folder = "", namespace = "", name = ""] = parts;
  const tenant = folder.startsWith("~") ? decode(folder.slice(1)) : folder;
  const found = { tenant, namespace: decode(namespace), name: decode(name) };
  return groupKey(found) === key ? found : undefined;
}

function cut(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += maxPart) parts.push(text.slice(at, at + maxPart));
  return parts.join("~/");
}

function encode(text: string): string {
  return Buffer.from(text, "utf8").toString("base64url");
}

function decode(text: string): string {
  return Buffer.from(text, "base64url").toString("utf8");
}
