import { connect, type Socket } from "node:net";

/** One stream of a query answer. */
export interface Stream {
  readonly stream: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [string, string])[];
}

export interface QueryAnswer {
  readonly status: string;
  readonly warnings?: readonly string[];
  readonly data: {
    readonly resultType: string;
    readonly result: never;
    readonly stats: Record<string, unknown>;
  };
}

/** Pushes lines of one stream as JSON; resolves with the status code. */
export async function pushJson(
  url: string,
  labels: Readonly<Record<string, string>>,
  values: readonly (readonly [string, string, Readonly<Record<string, string>>?])[],
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const response = await fetch(`${url}/loki/api/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ streams: [{ stream: labels, values }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

/** GETs an endpoint and parses the JSON answer; rejects with the text of an answer that is not 2xx. */
export async function getJson<T>(
  url: string,
  path: string,
  params: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<T> {
  const response = await fetch(`${url}${path}?${new URLSearchParams(params)}`, { headers });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

export async function queryStreams(
  url: string,
  query: string,
  params: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly Stream[]> {
  const asked = { query, limit: "5000", ...params };
  const answer = await getJson<QueryAnswer>(url, "/loki/api/v1/query_range", asked, headers);
  return answer.data.result;
}

/** The lines of a log query, oldest first. */
export async function queryLines(
  url: string,
  query: string,
  params: Readonly<Record<string, string>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const streams = await queryStreams(url, query, params, headers);
  const rows = streams.flatMap(({ values }) => [...values]);
  rows.sort((a, b) => (BigInt(a[0]) < BigInt(b[0]) ? -1 : a[0] === b[0] ? 0 : 1));
  return rows.map(([, line]) => line);
}

/** The sum of a metric's samples whose labels include all of `labels`. */
export async function readMetric(
  url: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  let sum = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue;
    if (wanted.every((label) => line.includes(label)))
      sum += Number(line.slice(line.lastIndexOf(" ") + 1));
  }
  return sum;
}

/** The present time as a push has it, in ns, plus some ns. */
export function nowNs(plus = 0): string {
  return `${BigInt(Date.now()) * 1_000_000n + BigInt(plus)}`;
}

/** The value of an instant query that gives one sample, or 0 when it gives none. */
export async function queryNumber(
  url: string,
  query: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const answer = await getJson<QueryAnswer>(url, "/loki/api/v1/query", { query }, headers);
  const result = answer.data.result as readonly { value: [number, string] }[];
  return Number(result[0]?.value[1] ?? 0);
}

/** A bare connection, for requests that no HTTP client would send. */
export interface Wire {
  readonly socket: Socket;
  /** Sends as fast as the other side reads; resolves when everything is sent or the connection ended. */
  send(bytes: Uint8Array | string): Promise<void>;
  /** Resolves with everything received, as text, when the other side has closed or reset the connection. */
  closed(): Promise<string>;
  /** Resolves with everything received as soon as it contains the text; rejects when the connection ends first. */
  until(text: string): Promise<string>;
}

export async function openWire(port: number): Promise<Wire> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let onText = (): void => undefined;
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    onText();
  });
  // The other side may close with a reset.
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return {
    socket,
    send: async (bytes) => {
      if (socket.destroyed || socket.write(bytes)) return;
      await Promise.race([ended, new Promise((resolve) => socket.once("drain", resolve))]);
    },
    closed: async () => {
      await ended;
      return text;
    },
    until: (part) =>
      new Promise((resolve, reject) => {
        onText = () => {
          if (text.includes(part)) resolve(text);
        };
        onText();
        void ended.then(() => reject(new Error(`closed before ${part} came: ${text}`)));
      }),
  };
}
