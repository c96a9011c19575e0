import type { Catalog } from "@skald/contracts";

/**
 * A catalog whose listings are not older than the last leave of an ingester that had all its rows stored: queries do not
 * miss that one any more, so what they read has to have its rows. `sinceLeftMs` tells how long ago that was, in ms.
 */
export function listedSince(catalog: Catalog, sinceLeftMs: () => number): Catalog {
  return {
    list: (request, options) => {
      const maxAgeMs = Math.min(request.maxAgeMs ?? Number.POSITIVE_INFINITY, sinceLeftMs());
      const isAny = maxAgeMs === Number.POSITIVE_INFINITY;
      return catalog.list(isAny ? request : { ...request, maxAgeMs }, options);
    },
  };
}
