import type { IncomingHttpHeaders } from "node:http";
import { quote, SkaldError } from "@skald/model";

/**
 * Refuses requests that a browser sends for a page of another origin: a mere visit to such a page could read the lines of a
 * WebSocket, or stop the process. Other clients do not send the headers that are checked.
 */
export class AllowedOrigins {
  readonly #allowed: ReadonlySet<string>;

  /** `allowed` are further origins, `https://host:port`, with the same rights as the server's own. */
  constructor(allowed: readonly string[] = []) {
    this.#allowed = new Set(allowed.map((origin) => originOf(origin) ?? origin));
  }

  /** Throws 403 if a page of another origin opens a WebSocket, which it could read. */
  checkSocket(headers: IncomingHttpHeaders): void {
    if (this.#isForeign(headers)) throw refusal(headers);
  }

  /** Throws 403 if a page of another origin changes something, although it could not read the answer. */
  checkChange(headers: IncomingHttpHeaders): void {
    const { "sec-fetch-site": site, origin } = headers;
    if (site === "same-origin" || site === "none") return;
    // Browsers send the site only over HTTPS and to localhost, and the origin with every method except GET.
    const isForeign = site === undefined ? this.#isForeign(headers) : !this.#isAllowed(origin);
    if (isForeign) throw refusal(headers);
  }

  /** Whether the origin is neither allowed nor the server's own, also by the name of a proxy in front. */
  #isForeign(headers: IncomingHttpHeaders): boolean {
    const { origin, host = "", "x-forwarded-host": forwarded = "" } = headers;
    if (origin === undefined || this.#isAllowed(origin)) return false;
    const known = originOf(origin);
    if (known === undefined) return true;
    const asked = hostOf(new URL(known).host);
    return ![host, ...String(forwarded).split(",")].some((name) => hostOf(name) === asked);
  }

  #isAllowed(origin: string | undefined): boolean {
    return origin !== undefined && this.#allowed.has(originOf(origin) ?? origin);
  }
}

/** The origin as browsers write it; undefined if the text is not an origin. */
export function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { origin, protocol, pathname, search, hash, username } = new URL(text);
  const isBare = pathname === "/" && search === "" && hash === "" && username === "";
  return /^https?:$/.test(protocol) && isBare ? origin : undefined;
}

/** A host and its port without the default ports, because a proxy may end TLS. */
function hostOf(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/:(80|443)$/, "");
}

const maxQuotedLength = 200;

function refusal({ origin = "another site" }: IncomingHttpHeaders): SkaldError {
  const page = quote(origin.slice(0, maxQuotedLength));
  const text = `a page of ${page} may not do this; allow it with ui.allowed_origins`;
  return new SkaldError("unauthenticated", text, { status: 403 });
}
