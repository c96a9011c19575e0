import { systemClock } from "@skald/model";
import { type Ring, ringPage } from "@skald/ring";
import type { EndpointDocs, HttpRequest, HttpResponse, Route } from "@skald/transport";

export interface RingRoutesOptions {
  readonly path: string;
  readonly title: string;
  readonly ring: Ring;
}

/** The page of a ring: GET shows it, and POST with `forget=<id>` ends a membership whose owner cannot do so. */
export function ringRoutes({ path, title, ring }: RingRoutesOptions): Route[] {
  const show = ({ headers, params }: HttpRequest): HttpResponse => {
    const { contentType, body } = ringPage(ring, {
      title,
      accept: headers.accept,
      showTokens: params.get("tokens") === "true",
      nowMs: systemClock.nowMs(),
    });
    return { status: 200, headers: { "content-type": contentType }, body };
  };
  const forget = async ({ params }: HttpRequest): Promise<HttpResponse> => {
    const id = params.get("forget") ?? "";
    if (ring.view.find(id) !== undefined) await ring.forget(id);
    return { status: 302, headers: { location: "#" } };
  };
  return [
    { methods: ["GET"], path, handler: show, docs: showDocs(title) },
    { methods: ["POST"], path, handler: forget, docs: forgetDocs(title) },
  ];
}

function showDocs(title: string): EndpointDocs {
  return {
    group: "Rings",
    says: `${title}: members with their state, health and last heartbeat.`,
    tenant: "none",
    params: [{ name: "tokens", type: "boolean", fallback: "false", says: "List their tokens." }],
    answers: { 200: "HTML, or JSON to who accepts that: `{shards: [...], now}`." },
    example: { headers: { accept: "application/json" }, status: 200, contains: '"shards":' },
  };
}

function forgetDocs(title: string): EndpointDocs {
  return {
    group: "Rings",
    says: `${title}: ends the membership of an instance that cannot do so itself.`,
    tenant: "none",
    params: [{ name: "forget", type: "text", required: true, says: "The instance." }],
    answers: { 302: "Nothing; back to the page." },
    example: { params: { forget: "nobody" }, status: 302 },
  };
}
