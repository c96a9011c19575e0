import type { EndpointDocs, RawHandler, Route, SocketRoute } from "@skald/transport";

/** What one module of the process serves. */
export interface ApiPart {
  /** The targets that run it. */
  readonly targets: readonly string[];
  readonly routes?: readonly Route[] | undefined;
  readonly rawRoutes?: ReadonlyMap<string, RawHandler> | undefined;
  readonly socketRoutes?: readonly SocketRoute[] | undefined;
}

/** An endpoint under all its names. */
export interface Endpoint {
  readonly methods: readonly string[];
  /** The published name first. */
  readonly paths: readonly string[];
  readonly targets: readonly string[];
  /** Absent when its route says nothing about it. */
  readonly docs: EndpointDocs | undefined;
}

/** What is served, as its routes say it: those with the same docs are one endpoint. */
export function describeApi(parts: readonly ApiPart[]): Endpoint[] {
  const found = new Map<unknown, Endpoint>();
  for (const { path, methods, targets, docs } of parts.flatMap(placesOf)) {
    const key = docs ?? `${methods} ${path}`;
    const known = found.get(key) ?? { methods, paths: [], targets, docs };
    const paths = known.paths.includes(path) ? known.paths : [...known.paths, path];
    found.set(key, { ...known, paths });
  }
  return [...found.values()];
}

function placesOf({ targets, routes = [], rawRoutes = new Map() }: ApiPart) {
  const raw = [...rawRoutes].map(([path, { docs }]) => ({ path, methods: ["POST"], docs }));
  return [...routes, ...raw].map(({ path, methods, docs }) => ({ path, methods, docs, targets }));
}

/** Starts of the names that agents and Grafana know from the reference. */
const referenceNames = ["/loki/", "/prometheus/", "/api/prom/"];

/** The same without the names of the reference. */
export function underPublishedNames(parts: readonly ApiPart[]): ApiPart[] {
  const isPublished = (path: string) => !referenceNames.some((start) => path.startsWith(start));
  return parts.map(({ targets, routes = [], rawRoutes = new Map(), socketRoutes = [] }) => ({
    targets,
    socketRoutes: socketRoutes.filter(({ path }) => isPublished(path)),
    routes: routes.filter(({ path }) => isPublished(path)),
    rawRoutes: new Map([...rawRoutes].filter(([path]) => isPublished(path))),
  }));
}
