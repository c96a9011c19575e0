import { answerScheduled, type Scheduler as Contract, type Querier } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { SkaldError } from "@skald/model";
import { GrpcConnection, GrpcServer, remoteScheduler, serveScheduler } from "@skald/rpc";
import { Metrics } from "@skald/runtime/metrics";
import { LaneWidth, Scheduler, takeCalls } from "@skald/scheduler";

const MiB = 1024 * 1024;
const ends: (() => unknown)[] = [];

/** Ends all that was made here, the last first. */
export async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

/** Has something ended by `endAll`. */
export function endLater(end: () => unknown): void {
  ends.push(end);
}

export interface Carried {
  readonly scheduler: Scheduler;
  /** The scheduler as another process sees it; each has a connection of its own. */
  connect(): Contract;
}

/** One without patience: it never gives up on a call by itself. */
export function makeScheduler(maxOutstandingPerTenant: number): Scheduler {
  const scheduler = new Scheduler({
    ...{ maxOutstandingPerTenant, maxLevels: 3, metrics: new Metrics() },
    sleep: () => new Promise(() => {}),
  });
  ends.push(() => scheduler.stop());
  return scheduler;
}

/** A scheduler of this process. */
export async function byMethodCall(max: number): Promise<Carried> {
  const scheduler = makeScheduler(max);
  const connect = () => scheduler;
  return { scheduler, connect };
}

/** A scheduler behind gRPC, and where it is. */
async function serveOne(max = 0): Promise<{ scheduler: Scheduler; address: string }> {
  const scheduler = makeScheduler(max);
  const server = new GrpcServer({
    ...{ address: "127.0.0.1", port: 0, maxConnections: 0, maxConcurrentStreams: 0 },
    ...{ maxReceiveBytes: MiB, maxSendBytes: MiB, gracefulShutdownMs: 0 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 },
  });
  serveScheduler(server, scheduler);
  const address = `127.0.0.1:${await server.start()}`;
  ends.push(() => server.kill());
  return { scheduler, address };
}

/** A connection of its own. */
function connectTo(address: string): GrpcConnection {
  const connection = new GrpcConnection({
    ...{ address, maxReceiveBytes: MiB, maxSendBytes: MiB, connectTimeoutMs: 60_000 },
    ...{ minReconnectMs: 10, maxReconnectMs: 100 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 },
  });
  ends.push(() => connection.close());
  return connection;
}

/** A scheduler that others reach over gRPC. */
export async function overSocket(max: number): Promise<Carried> {
  const { scheduler, address } = await serveOne(max);
  return { scheduler, connect: () => remoteScheduler(connectTo(address)) };
}

/** A querier whose lists of labels are what `answer` makes of the tenant and the label. */
export function labelQuerier(
  answer: (tenant: string, label: string, signal: AbortSignal) => Promise<string>,
): Querier {
  return querierOf({
    labels: async ({ tenants, label = "" }, { signal }) => {
      const tenant = tenants[0] as string;
      return [{ tenant, texts: [await answer(tenant, label, signal)] }];
    },
  });
}

/** Gives what cuts the querier off. */
export function startTaking(scheduler: Contract, querier: Querier): () => void {
  const stop = new AbortController();
  const done = takeCalls({
    ...{ scheduler, width: new LaneWidth(1), signal: stop.signal },
    answer: (call, options) => answerScheduled(querier, call, options),
    sleep: () => new Promise(() => {}),
  });
  void done;
  const cut = () => stop.abort(new SkaldError("unavailable", "cut off"));
  ends.push(cut);
  return cut;
}

/** A signal that is never aborted. */
export const never: AbortSignal = new AbortController().signal;
/** All of a time with nothing in it. */
const range = { selectors: [], fromNs: 0n, toNs: 1n };

/** Asks for the values of a label. */
export async function ask(
  querier: Querier,
  tenant: string,
  { label = "x", actors = [] as string[], signal = never } = {},
): Promise<string> {
  const found = await querier.run(
    "labels",
    { tenants: [tenant], label, actors, ...range },
    { signal },
  );
  return found[0]?.texts[0] as string;
}

/** Waits for something that others bring about. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate);
}
