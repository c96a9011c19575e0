import type { IncomingMessage } from "node:http";
import { posix } from "node:path";

/** The path of a request as sent, without the query string. */
export function pathOf({ url = "/" }: Pick<IncomingMessage, "url">): string {
  const at = url.indexOf("?");
  return at < 0 ? url : url.slice(0, at);
}

/** `/loki/api/v1/label/:name/values` -> `loki_api_v1_label_name_values`, as public dashboards expect it. */
export function routeName(path: string): string {
  return path.slice(1).replaceAll(":", "").replaceAll("/", "_");
}

/** What stands before each path, whatever slashes it was written with: `logs/` -> `/logs`, `/` -> nothing. */
export function normalPrefix(prefix: string): string {
  const names = prefix.split("/").filter((name) => name !== "");
  return names.map((name) => `/${name}`).join("");
}

/** Anything that a `Location` header, or who follows it, might take for something else. */
const unsafe = /[^!-[\]-~]/gu;

/**
 * Where to send a client whose path has empty parts or dots in it: the clean path and its query string; undefined when
 * there is nothing to clean.
 */
export function cleanUrl(url: string): string | undefined {
  if (!url.startsWith("/") || !(url.includes("//") || url.includes("/."))) return undefined;
  const path = pathOf({ url });
  const clean = posix.normalize(path).replace(/^\/+/, "/");
  if (clean === path) return undefined;
  return (clean + url.slice(path.length)).replace(unsafe, encodeURIComponent);
}
