import type { Ring } from "./ring.js";

/** A page in the form that was asked for. */
export interface RingPage {
  readonly contentType: string;
  readonly body: string;
}

export interface RingPageRequest {
  /** The name of the ring, for people. */
  readonly title: string;
  /** The Accept header. */
  readonly accept: string | undefined;
  /** Whether the page lists the tokens. JSON always does. */
  readonly showTokens: boolean;
  /** This process's clock, in ms since the epoch. */
  readonly nowMs: number;
}

/** Shows the last view of a ring: HTML with a button that forgets an instance, or JSON for programs. */
export function ringPage(ring: Pick<Ring, "view" | "ageMs">, request: RingPageRequest): RingPage {
  const rows = rowsOf(ring, request.nowMs);
  if ((request.accept ?? "").includes("application/json"))
    return { contentType: "application/json", body: toJson(rows, request.nowMs) };
  return { contentType: "text/html; charset=utf-8", body: toHtml(rows, request) };
}

interface Row {
  readonly id: string;
  /** The state in the ring, or UNHEALTHY. */
  readonly state: string;
  readonly address: string;
  readonly zone: string;
  readonly ageMs: number;
  /** The time of its last heartbeat, by this process's clock. */
  readonly seenMs: number;
  readonly registeredMs: number;
  readonly tokens: readonly number[];
  readonly ownership: number;
}

function rowsOf(ring: Pick<Ring, "view" | "ageMs">, nowMs: number): Row[] {
  const { view } = ring;
  const ownership = view.ownership();
  return view.instances.map((instance) => {
    const age = ring.ageMs(instance.id);
    const { id, address, zone, registeredMs } = instance;
    return {
      ...{ id, address, zone, registeredMs, ageMs: age, seenMs: nowMs - age },
      state: instance.isHealthy ? instance.state : "UNHEALTHY",
      tokens: [...instance.tokens],
      ownership: ownership.get(id) ?? 0,
    };
  });
}

/** Loki's text for a missing time. */
const noTime = "0001-01-01T00:00:00Z";

function toJson(rows: readonly Row[], nowMs: number): string {
  const shards = rows.map(({ id, state, address, seenMs, registeredMs, zone, tokens }) => ({
    ...{ id, state, address, timestamp: timeText(seenMs) },
    registered_timestamp: timeText(registeredMs),
    read_only: false,
    read_only_updated_timestamp: noTime,
    ...{ zone, tokens },
  }));
  return `${JSON.stringify({ shards, now: timeText(nowMs) })}\n`;
}

function timeText(ms: number): string {
  return ms === 0 ? noTime : new Date(ms).toISOString();
}

const style = `
body { font: 14px system-ui, sans-serif; margin: 2em; color: #1f2328; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .4em .8em; border-bottom: 1px solid #d0d7de; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } .tokens { max-width: 60em; font-size: 12px; }
.UNHEALTHY { color: #cf222e; } .ACTIVE { color: #1a7f37; } .PENDING, .JOINING, .LEAVING { color: #9a6700; }`;

const columns = [
  "Instance ID",
  "Availability Zone",
  "State",
  "Address",
  "Registered At",
  "Read-Only",
  "Read-Only Updated",
  "Last Heartbeat",
  "Tokens",
  "Ownership",
  "Actions",
];

function toHtml(rows: readonly Row[], { title, nowMs, showTokens }: RingPageRequest): string {
  const heading = escapeHtml(title);
  const other = showTokens
    ? '<a href="?">Hide tokens</a>'
    : '<a href="?tokens=true">Show tokens</a>';
  return `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>${heading}</title><style>${style}</style></head>
<body>
<h1>${heading}</h1>
<p>Current time: ${timeText(nowMs)}</p>
<form action="" method="POST">
<table>
<thead><tr>${columns.map((column) => `<th>${column}</th>`).join("")}</tr></thead>
<tbody>
${rows.map((row) => htmlRow(row)).join("\n")}
</tbody>
</table>
</form>
<p>${rows.length === 0 ? "The ring is empty." : other}</p>
${showTokens ? rows.map(htmlTokens).join("\n") : ""}
</body>
</html>
`;
}

function htmlRow(row: Row): string {
  const registered = row.registeredMs === 0 ? "" : timeText(row.registeredMs);
  const heartbeat = `${agoText(row.ageMs)} (${timeText(row.seenMs).slice(11, 23)})`;
  const button = `<button name="forget" value="${escapeHtml(row.id)}" type="submit">Forget</button>`;
  const cells = [
    ...[row.id, row.zone].map(textCell),
    `<td class="${row.state}">${row.state}</td>`,
    ...[row.address, registered, "false", "", heartbeat].map(textCell),
    `<td class="number">${row.tokens.length}</td>`,
    `<td class="number">${(row.ownership * 100).toFixed(2)}%</td>`,
    `<td>${button}</td>`,
  ];
  return `<tr>${cells.join("")}</tr>`;
}

function textCell(text: string): string {
  return `<td>${escapeHtml(text)}</td>`;
}

function htmlTokens({ id, tokens }: Row): string {
  return `<h2>${escapeHtml(id)}</h2>\n<p class="tokens">${tokens.join(" ")}</p>`;
}

/** `3s ago`, `2m5s ago`. */
function agoText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 60 ? `${seconds}s ago` : `${Math.floor(seconds / 60)}m${seconds % 60}s ago`;
}

function escapeHtml(text: string): string {
  const escapes: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replace(/[&<>"']/g, (sign) => escapes[sign]!);
}
