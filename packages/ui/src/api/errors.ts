import { ApiError } from "./client.js";

/** How an error is shown: a sentence, whether and when to ask again, and the server's own words. */
export interface Trouble {
  readonly title: string;
  readonly detail: string;
  readonly status: number;
  /** ms until it is asked again by itself; undefined where only the user can change something. */
  readonly retryMs?: number;
  readonly offset?: number | undefined;
}

/** Waits between attempts: 1, 2, 4, 8, 16, then 30 seconds. */
export function backoffMs(attempt: number): number {
  return Math.min(30_000, 1000 * 2 ** attempt);
}

/** The sentence for an error of a query, which was tried `attempt` times before. */
export function troubleOf(error: unknown, attempt: number, tenant: string): Trouble {
  if (!(error instanceof ApiError)) {
    return { title: "This page has a fault.", detail: String(error), status: -1 };
  }
  const { status, message, retryAfterMs, offset } = error;
  const base = { status, detail: message, offset };
  const again = { retryMs: retryAfterMs ?? backoffMs(attempt) };
  switch (status) {
    case 0:
      return { ...base, title: "The server does not answer. Trying again.", ...again };
    case 401:
      return { ...base, title: "This server asks for a tenant. Choose one." };
    case 403:
      return { ...base, title: `You may not read tenant ${tenant || "of this address"} here.` };
    case 429:
      return { ...base, title: "Many queries wait. Trying again.", ...again };
    case 504:
      return { ...base, title: "The query took longer than the server allows. Ask for less." };
    default:
      if (status >= 500)
        return {
          ...base,
          title: `The server does not answer (${status}). Trying again.`,
          ...again,
        };
      return { ...base, title: message };
  }
}
