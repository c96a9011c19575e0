import { systemClock } from "@skald/model";
import { type Ring, ringPage } from "@skald/ring";
import type { HttpRequest, HttpResponse, Route } from "@skald/transport";

export interface RingRoutesOptions {
  readonly paths: readonly string[];
  readonly title: string;
  readonly ring: Ring;
}

/** The page of a ring: shown by GET, and POST with `forget=<id>` ends a membership whose owner cannot. */
export function ringRoutes({ paths, title, ring }: RingRoutesOptions): Route[] {
  const show = (request: HttpRequest): HttpResponse => {
    const { contentType, body } = ringPage(ring, {
      title,
      accept: request.headers.accept,
      showTokens: request.params.get("tokens") === "true",
      nowMs: systemClock.nowMs(),
    });
    return { status: 200, headers: { "content-type": contentType }, body };
  };
  const forget = async (request: HttpRequest): Promise<HttpResponse> => {
    const id = request.params.get("forget") ?? "";
    if (ring.view.find(id) !== undefined) await ring.forget(id);
    return { status: 302, headers: { location: "#" } };
  };
  return paths.flatMap((path) => [
    { methods: ["GET"], path, handler: show },
    { methods: ["POST"], path, handler: forget },
  ]);
}
