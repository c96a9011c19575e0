import type {
  Catalog,
  Deletes,
  Distributor,
  PatternIngester,
  Querier,
  Rules,
  Scheduler,
  Tailer,
} from "@skald/contracts";
import { decodePush } from "@skald/contracts/codec";
import type { GrpcConnection } from "./client.js";
import { pushTo } from "./ingester.js";
import { encodedWire, methodsOf } from "./methods.js";
import type { GrpcServer } from "./server.js";

// For each service a function that lets other processes call it, and one that gives the service at the other end of a
// connection.

type Adds = Pick<GrpcServer, "add">;

const catalog = methodsOf("Catalog");

/** The index gateway serves its catalog. */
export function serveCatalog(server: Adds, served: Catalog): void {
  server.add("Catalog", catalog, {
    List: async ({ counting, share, ...request }, call) =>
      counting === undefined || share === undefined || served.count === undefined
        ? { segments: await served.list(request, call), counted: [] }
        : served.count({ ...request, counting }, { ...call, share }),
  });
}

export function remoteCatalog(connection: GrpcConnection): Required<Catalog> {
  return {
    list: async (request, options) =>
      (await connection.call(catalog.List, request, options)).segments,
    count: async (request, { share, ...options }) => {
      const asked = { ...request, share };
      const { counted, ...answer } = await connection.call(catalog.List, asked, options);
      // Outcomes are memory of their own, to be moved to other threads.
      return { countedSegments: 0, ...answer, counted: counted.map((one) => new Uint8Array(one)) };
    },
  };
}

const deletes = methodsOf("Deletes");

export function serveDeletes(server: Adds, served: Deletes): void {
  server.add("Deletes", deletes, { Active: (request, call) => served.active(request, call) });
}

export function remoteDeletes(connection: GrpcConnection): Deletes {
  return { active: (request, options) => connection.call(deletes.Active, request, options) };
}

const pushed = methodsOf("Distributor");
const distributor = { PushBatch: { ...pushed.PushBatch, request: encodedWire } };

export function serveDistributor(server: Adds, served: Distributor): void {
  server.add("Distributor", distributor, {
    PushBatch: async (encoded, call) => served.pushBatch(decodePush(encoded), call),
  });
}

/** A large push goes as several, one after the other. */
export function remoteDistributor(connection: GrpcConnection): Distributor {
  return {
    pushBatch: ({ tenant, batch }, options) =>
      pushTo(connection, distributor.PushBatch, { tenant, whole: batch }, options),
  };
}

const tailer = methodsOf("Tailer");

export function serveTailer(server: Adds, served: Tailer): void {
  server.add("Tailer", tailer, { Tail: (request, call) => served.tail(request, call) });
}

/** An open tail counts as a call that runs, and a server limits those of a connection: tails should have their own. */
export function remoteTailer(connection: GrpcConnection): Tailer {
  return {
    async *tail(request, options) {
      try {
        yield* connection.stream(tailer.Tail, request, options);
      } catch (error) {
        // A tail whose signal was aborted has ended as it should.
        if (!options.signal.aborted) throw error;
      }
    },
  };
}

const patterns = methodsOf("PatternIngester");

export function servePatternIngester(server: Adds, served: PatternIngester): void {
  server.add("PatternIngester", patterns, {
    Learn: async (lines, call) => {
      await served.learn(lines, call);
      return {};
    },
    Patterns: (request, call) => served.patterns(request, call),
  });
}

export function remotePatternIngester(connection: GrpcConnection): PatternIngester {
  return {
    learn: async (lines, options) => void (await connection.call(patterns.Learn, lines, options)),
    patterns: (request, options) => connection.call(patterns.Patterns, request, options),
  };
}

const rules = methodsOf("Rules");

/** A ruler serves the state of its groups to other rulers. */
export function serveRules(server: Adds, served: Rules): void {
  server.add("Rules", rules, {
    Groups: (request, call) => served.groups(request, call),
    Changed: async (_, call) => {
      await served.changed(call);
      return {};
    },
  });
}

export function remoteRules(connection: GrpcConnection): Rules {
  return {
    groups: (request, options) => connection.call(rules.Groups, request, options),
    changed: async (options) => void (await connection.call(rules.Changed, {}, options)),
  };
}

const scheduler = methodsOf("Scheduler");

/** Every call that waits is a stream: a server for it must allow many. */
export function serveScheduler(server: Adds, served: Scheduler): void {
  server.add("Scheduler", scheduler, {
    Run: (call, options) => served.run(call, options),
    Take: (request, call) => served.take(request, call),
    Finish: async (request, call) => {
      await served.finish(request, call);
      return {};
    },
    Watch: (request, call) => served.watch(request, call),
  });
}

export function remoteScheduler(connection: GrpcConnection): Scheduler {
  return {
    run: (call, options) => connection.call(scheduler.Run, call, options),
    take: (request, options) => connection.call(scheduler.Take, request, options),
    finish: async (request, options) =>
      void (await connection.call(scheduler.Finish, request, options)),
    watch: (request, options) => connection.call(scheduler.Watch, request, options),
  };
}

const querier = methodsOf("Querier");

/** Lets tools ask a querier. Frontends ask through a scheduler, which shares queriers out fairly. */
export function serveQuerier(server: Adds, served: Querier): void {
  server.add("Querier", querier, {
    Query: (request, call) => served.run("query", request, call),
    Streams: (request, call) => served.run("streams", request, call),
    Labels: (request, call) => served.run("labels", request, call),
    Volumes: (request, call) => served.run("volumes", request, call),
    Explain: (request, call) => served.run("explain", request, call),
    Changes: (request, call) => served.run("changes", request, call),
  });
}
