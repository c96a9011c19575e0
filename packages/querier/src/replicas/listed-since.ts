import type { Catalog } from "@skald/contracts";

/**
 * A catalog whose listings are not older than the last leave of an ingester that had all its rows stored: queries do not
 * miss that one any more, so what they read has to have its rows. `sinceLeftMs` tells how long ago that was, in ms.
 */
export function listedSince(catalog: Catalog, sinceLeftMs: () => number): Catalog {
  const young = <Request extends { readonly maxAgeMs?: number }>(request: Request): Request => {
    const maxAgeMs = Math.min(request.maxAgeMs ?? Number.POSITIVE_INFINITY, sinceLeftMs());
    return maxAgeMs === Number.POSITIVE_INFINITY ? request : { ...request, maxAgeMs };
  };
  const { count } = catalog;
  return {
    list: (request, options) => catalog.list(young(request), options),
    ...(count === undefined
      ? {}
      : { count: (request, options) => count.call(catalog, young(request), options) }),
  };
}
