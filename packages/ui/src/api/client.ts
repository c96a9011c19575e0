/** What went wrong with a call, in the server's words. A status of 0 means that no answer came. */
export class ApiError extends Error {
  readonly status: number;
  readonly retryAfterMs: number | undefined;
  /** Offset in the query, where the server names one. */
  readonly offset: number | undefined;

  constructor(
    status: number,
    message: string,
    more: { readonly retryAfterMs?: number; readonly offset?: number | undefined } = {},
  ) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.retryAfterMs = more.retryAfterMs;
    this.offset = more.offset;
  }
}

export type Params = Readonly<Record<string, string | number | undefined>>;

export interface CallOptions {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly params?: Params;
  readonly body?: BodyInit;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

let tenantHeader = "";

/** Sets the tenant that calls name from now on; an empty one is not named. */
export function setTenantHeader(tenant: string): void {
  tenantHeader = tenant;
}

export function currentTenant(): string {
  return tenantHeader;
}

/** The address of a path of the server, under whatever prefix the page came from. */
export function addressOf(path: string, params: Params = {}): URL {
  const url = new URL(`../${path.replace(/^\//, "")}`, document.baseURI);
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
  }
  return url;
}

/** Calls the server and returns its answer. Throws ApiError unless the status is 2xx, and AbortError when aborted. */
export async function call(path: string, options: CallOptions = {}): Promise<Response> {
  const { method = "GET", params, body, headers, signal } = options;
  const all: Record<string, string> = { accept: "application/json", ...headers };
  if (tenantHeader !== "") all["x-scope-orgid"] = tenantHeader;
  let response: Response;
  try {
    response = await fetch(addressOf(path, params), {
      method,
      headers: all,
      ...(body !== undefined && { body }),
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(0, "no connection to the server");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function callJson<T>(path: string, options?: CallOptions): Promise<T> {
  return (await (await call(path, options)).json()) as T;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** An error is a JSON object with its text and place, or plain text. */
async function errorOf(response: Response): Promise<ApiError> {
  const text = (await response.text().catch(() => "")).trim();
  const retry = Number(response.headers.get("retry-after"));
  const retryAfterMs = retry > 0 ? { retryAfterMs: retry * 1000 } : {};
  try {
    const { error, message, position } = JSON.parse(text) as Record<string, unknown>;
    const said = typeof error === "string" ? error : message;
    if (typeof said === "string") {
      return new ApiError(response.status, said, { ...retryAfterMs, offset: offsetIn(position) });
    }
  } catch {
    // The text is no JSON, so it is the message itself.
  }
  const said = text.startsWith("<") || text === "" ? response.statusText : text;
  return new ApiError(response.status, said || `status ${response.status}`, retryAfterMs);
}

function offsetIn(position: unknown): number | undefined {
  if (typeof position === "number") return position;
  const offset = (position as { offset?: unknown } | undefined)?.offset;
  return typeof offset === "number" ? offset : undefined;
}
