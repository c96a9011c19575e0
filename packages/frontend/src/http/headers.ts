import type { IncomingHttpHeaders } from "node:http";

const actorPathHeaders = ["x-service-actor-path", "x-loki-actor-path"];
const encodingFlagHeaders = ["x-loki-response-encoding-flags", "x-service-response-encoding-flags"];

interface WithHeaders {
  readonly headers: IncomingHttpHeaders;
}

/** Who asks within the tenant, from the outside in: `a|b` of the header. */
export function queryActors({ headers }: WithHeaders): string[] {
  const path = actorPathHeaders.map((name) => headers[name]).find((value) => value !== undefined);
  return String(path ?? "")
    .split("|")
    .filter((actor) => actor !== "");
}

/** Whether labels shall be told apart by their origins. */
export function wantsCategories({ headers }: WithHeaders): boolean {
  const flags = encodingFlagHeaders.map((name) => headers[name] ?? "").join();
  return flags.split(",").some((flag) => flag.trim() === "categorize-labels");
}

/** Whether the client wants nothing that was kept, nor anything kept for others. */
export function refusesKept({ headers }: WithHeaders): boolean {
  const control = String(headers["cache-control"] ?? "").toLowerCase();
  return control.split(",").some((part) => ["no-cache", "no-store"].includes(part.trim()));
}
