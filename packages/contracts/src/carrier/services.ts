import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import type { Catalog, Deletes } from "../catalog.js";
import { catalogAnswer, catalogRequest } from "../codec/query-messages.js";
import { deletesAnswer, deletesRequest } from "../codec/scan/row-masks.js";
import type { Distributor } from "../distributor.js";
import { callRemote, serve, wireOf } from "./method.js";
import { pushOutcomeWire, pushTo, pushWire } from "./pushes.js";

const catalog = "skald.v1.Catalog";
const deletes = "skald.v1.Deletes";
const distributor = "skald.v1.Distributor";

const methods = {
  list: {
    path: `/${catalog}/List`,
    request: wireOf(catalogRequest),
    answer: wireOf(catalogAnswer),
  },
  active: {
    path: `/${deletes}/Active`,
    request: wireOf(deletesRequest),
    answer: wireOf(deletesAnswer),
  },
  pushBatch: {
    path: `/${distributor}/PushBatch`,
    request: pushWire,
    answer: pushOutcomeWire,
  },
};

type Server = Pick<GrpcServer, "add">;

/** Lets other processes call a catalog: the index gateway. */
export function serveCatalog(server: Server, served: Catalog): void {
  const List = serve(methods.list, async ({ counting, share, ...request }, options) =>
    counting === undefined || share === undefined || served.count === undefined
      ? { segments: await served.list(request, options), counted: [] }
      : served.count({ ...request, counting }, { ...options, share }),
  );
  server.add({ name: catalog, methods: { List } });
}

/** The catalog at the other end of a connection. */
export function remoteCatalog(connection: GrpcConnection): Required<Catalog> {
  return {
    list: async (request, options) =>
      (await callRemote(connection, methods.list, request, options)).segments,
    count: async (request, { share, ...options }) => {
      const asked = { ...request, share };
      const { counted, ...answer } = await callRemote(connection, methods.list, asked, options);
      // Outcomes are memory of their own, to be moved to other threads.
      return { countedSegments: 0, ...answer, counted: counted.map((one) => new Uint8Array(one)) };
    },
  };
}

/** Lets other processes ask which rows are deleted. */
export function serveDeletes(server: Server, served: Deletes): void {
  const Active = serve(methods.active, async (request, options) => ({
    filters: await served.active(request, options),
  }));
  server.add({ name: deletes, methods: { Active } });
}

/** The deletes at the other end of a connection. */
export function remoteDeletes(connection: GrpcConnection): Deletes {
  return {
    active: async (request, options) =>
      (await callRemote(connection, methods.active, request, options)).filters,
  };
}

/** Lets other processes call a distributor. */
export function serveDistributor(server: Server, served: Distributor): void {
  const PushBatch = serve(methods.pushBatch, (request, options) =>
    served.pushBatch(request, options),
  );
  server.add({ name: distributor, methods: { PushBatch } });
}

/** The distributor at the other end of a connection. A large push goes as several, one after the other. */
export function remoteDistributor(connection: GrpcConnection): Distributor {
  return {
    pushBatch: (request, options) => pushTo(connection, methods.pushBatch, request, options),
  };
}
