import type { IncomingHttpHeaders } from "node:http";
import { quote, SkaldError } from "@skald/model";

/**
 * Refuses what a browser sends for a page of another origin: such a page could read the lines of a WebSocket, or stop the
 * process, with nothing but a visit. Clients that are no browsers send none of the headers that are looked at.
 */
export class AllowedOrigins {
  readonly #allowed: ReadonlySet<string>;

  /** Further origins, `https://host:port`, whose pages may do all that the server's own may. */
  constructor(allowed: readonly string[] = []) {
    this.#allowed = new Set(allowed.map((origin) => originOf(origin) ?? origin));
  }

  /** Throws 403 where a page of another origin opens a WebSocket, which it could read. */
  checkSocket(headers: IncomingHttpHeaders): void {
    if (this.#isForeign(headers)) throw refusal(headers);
  }

  /** Throws 403 where a page of another origin changes something, though it could not read the answer. */
  checkChange(headers: IncomingHttpHeaders): void {
    const { "sec-fetch-site": site, origin } = headers;
    if (site === "same-origin" || site === "none") return;
    // Browsers say the site over HTTPS and to this machine only, and the origin with all but GET.
    const isForeign = site === undefined ? this.#isForeign(headers) : !this.#isAllowed(origin);
    if (isForeign) throw refusal(headers);
  }

  /** Whether the origin is neither the server's own, by whatever name a proxy in front has, nor allowed. */
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

/** The origin as browsers write it; undefined where the text is none. */
export function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { origin, protocol, pathname, search, hash, username } = new URL(text);
  const isBare = pathname === "/" && search === "" && hash === "" && username === "";
  return /^https?:$/.test(protocol) && isBare ? origin : undefined;
}

/** A host and its port, without those that go without saying: a proxy may take TLS off. */
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
