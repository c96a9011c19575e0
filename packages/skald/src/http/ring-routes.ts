import type { HttpRequest, HttpResponse, Route } from "@skald/transport";
import { jsonResponse } from "@skald/transport";

/** An instance of a ring as its page shows it. */
export interface RingInstance {
  readonly id: string;
  readonly state: "PENDING" | "JOINING" | "ACTIVE" | "LEAVING" | "LEFT" | "UNHEALTHY";
  readonly address: string;
  readonly zone: string;
  readonly registeredMs: number;
  readonly heartbeatMs: number;
  readonly tokens: readonly number[];
}

export interface RingRoutesOptions {
  readonly instances: () => readonly RingInstance[];
  readonly nowMs: () => number;
}

const pages = [
  ["/ring", "Ingester"],
  ["/distributor/ring", "Distributor"],
  ["/ruler/ring", "Ruler"],
  ["/compactor/ring", "Compactor"],
  ["/scheduler/ring", "Query scheduler"],
] as const;

/** The pages of the rings: HTML for people, JSON where a program asks for it. */
export function ringRoutes(options: RingRoutesOptions): Route[] {
  return pages.map(([path, title]) => ({
    methods: ["GET"],
    path,
    handler: (request) => ringPage(request, title, options),
  }));
}

function ringPage(
  { headers, params }: HttpRequest,
  title: string,
  { instances, nowMs }: RingRoutesOptions,
): HttpResponse {
  if (headers.accept?.includes("application/json") === true) {
    return jsonResponse(200, { shards: instances().map(shardOf), now: timeOf(nowMs()) });
  }
  const withTokens = params.get("tokens") === "true";
  return {
    status: 200,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: htmlOf(title, instances(), withTokens),
  };
}

const never = "0001-01-01T00:00:00Z";

function shardOf({ id, state, address, zone, registeredMs, heartbeatMs, tokens }: RingInstance) {
  return {
    ...{ id, state, address, timestamp: timeOf(heartbeatMs) },
    registered_timestamp: timeOf(registeredMs),
    ...{ read_only: false, read_only_updated_timestamp: never, zone, tokens },
  };
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(".000Z", "Z");
}

const columns = ["Instance ID", "Availability Zone", "State", "Address", "Registered At"];

function htmlOf(title: string, instances: readonly RingInstance[], withTokens: boolean): string {
  const heads = [...columns, "Last Heartbeat", "Tokens"].map((name) => `<th>${name}</th>`);
  const rows = instances.map((instance) => {
    const { id, zone, state, address, registeredMs, heartbeatMs, tokens } = instance;
    const shown = withTokens ? tokens.join(" ") : String(tokens.length);
    const cells = [id, zone, state, address, timeOf(registeredMs), timeOf(heartbeatMs), shown];
    return `<tr>${cells.map((cell) => `<td>${escapeHtml(cell)}</td>`).join("")}</tr>\n`;
  });
  const name = `${escapeHtml(title)} ring`;
  return `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${name}</title></head>
<body><h1>${name}</h1>
<table border="1"><thead><tr>${heads.join("")}</tr></thead>
<tbody>
${rows.join("")}</tbody></table></body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
