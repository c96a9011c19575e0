/** One stream of a query answer. */
export interface Stream {
  readonly stream: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [string, string])[];
}

export interface QueryAnswer {
  readonly status: string;
  readonly data: {
    readonly resultType: string;
    readonly result: never;
    readonly stats: Record<string, unknown>;
  };
}

/** Pushes lines of one stream as JSON; resolves with the status. */
export async function pushJson(
  url: string,
  labels: Readonly<Record<string, string>>,
  values: readonly (readonly [string, string])[],
): Promise<number> {
  const response = await fetch(`${url}/loki/api/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ streams: [{ stream: labels, values }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

/** GETs an endpoint and parses the JSON answer; fails with the text of any other answer. */
export async function getJson<T>(
  url: string,
  path: string,
  params: Readonly<Record<string, string>> = {},
): Promise<T> {
  const response = await fetch(`${url}${path}?${new URLSearchParams(params)}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as T;
}

export async function queryStreams(
  url: string,
  query: string,
  params: Readonly<Record<string, string>> = {},
): Promise<readonly Stream[]> {
  const answer = await getJson<QueryAnswer>(url, "/loki/api/v1/query_range", {
    query,
    limit: "5000",
    ...params,
  });
  return answer.data.result;
}

/** The single value of an instant query that gives one sample or none. */
export async function queryNumber(url: string, query: string): Promise<number> {
  const answer = await getJson<QueryAnswer>(url, "/loki/api/v1/query", { query });
  const result = answer.data.result as readonly { value: [number, string] }[];
  return Number(result[0]?.value[1] ?? 0);
}
