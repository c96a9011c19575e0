import {
  answerScheduled,
  type Querier as Contract,
  type ScheduledAnswer,
  scheduledQuerier,
} from "@skald/contracts";
import { Frontend, queryActors, queryHandlers, queryTags } from "@skald/frontend";
import { steadyClock, systemClock } from "@skald/model";
import { CorruptSegments, Querier, QueryTooHeavy } from "@skald/querier";
import { type JobContext, type JobResult, MemoryShare, serveJobs } from "@skald/runtime";
import { remoteStores } from "./kept-results.js";
import type {
  AnswerHead,
  CallJob,
  CallReply,
  DamagedSegment,
  QueryJob,
  QueryReply,
} from "./query-job.js";
import { remoteServices } from "./remote.js";

/** Damaged segments that queries of this thread have met; the thread with the log counts and names them. */
let report: (found: DamagedSegment) => void = () => undefined;
const corrupt = new CorruptSegments({
  clock: steadyClock,
  onFound: (segment, error) => report({ segment, reason: (error as Error).message }),
});

// A query thread: a request comes in, its answer goes out. Sources are found, and scanned, elsewhere.
serveJobs({
  query: async (job: QueryJob, context: JobContext): Promise<JobResult> => {
    report = (found) => void context.call("corrupt", found);
    try {
      return { value: await answer(job, context) };
    } catch (error) {
      if (!(error instanceof QueryTooHeavy)) throw error;
      const { cost } = error;
      return { value: { kind: "too_heavy", cost } satisfies QueryReply };
    }
  },
  call: async (job: CallJob, context: JobContext): Promise<JobResult> => {
    report = (found) => void context.call("corrupt", found);
    try {
      const options = { signal: context.signal };
      const body = await answerScheduled(querierOf(job, context), job.call, options);
      return { value: { kind: "answer", body } satisfies CallReply, transfer: ownBuffer(body) };
    } catch (error) {
      if (!(error instanceof QueryTooHeavy)) throw error;
      const { cost } = error;
      return { value: { kind: "too_heavy", cost } satisfies CallReply };
    }
  },
});

function querierOf(job: Omit<CallJob, "call">, context: JobContext): Querier {
  const { maxCost, threads } = job;
  const { deletes, ...services } = remoteServices(context);
  return new Querier({
    ...services,
    ...(job.hidesRows ? { deletes } : {}),
    deletesOf: (tenant) => job.deletes.get(tenant) ?? "",
    threads,
    corrupt,
    shouldStop: context.isCancelled,
    memory: new MemoryShare(job.memory, context.isCancelled),
    ...(maxCost === undefined ? {} : { maxCost, maxHeldBytes: maxCost }),
  });
}

/** A querier elsewhere, by the scheduler that the process is connected to. */
function elsewhere({ call }: JobContext): Contract {
  return scheduledQuerier(() => ({
    run: (asked, { signal }) => call("schedule", asked, { signal }) as Promise<ScheduledAnswer>,
  }));
}

async function answer(job: QueryJob, context: JobContext): Promise<QueryReply> {
  const { headers, limits } = job;
  const querier = job.isScheduled === true ? elsewhere(context) : querierOf(job, context);
  const frontend = new Frontend({
    querier,
    limitsOf: () => limits,
    clock: systemClock,
    actors: queryActors({ headers }),
    queryTags: queryTags({ headers }),
    queueSeconds: Number(process.hrtime.bigint() - job.sentNs) / 1e9,
    // Whoever gave the query up does not listen any more.
    onQuery: (facts) => void context.call("queried", facts).catch(() => undefined),
    alignToStep: job.options.alignToStep,
    splitsByTime: job.isScheduled,
    results: { stores: remoteStores(job.kept, context), changes: querier },
  });
  const handler = queryHandlers(frontend, job.options)[job.endpoint];
  const response = await handler({
    method: job.method,
    path: job.path,
    variables: job.variables,
    headers,
    params: new URLSearchParams(job.params),
    body: new Uint8Array(0),
    signal: context.signal,
  });
  const { status, headers: answered = {}, body } = response;
  const head: AnswerHead = { status, headers: answered };
  if (body === undefined) return { kind: "answer", ...head };
  if (typeof body === "string" || body instanceof Uint8Array) {
    return { kind: "answer", ...head, body };
  }
  return write(head, body, context);
}

/** Hands an answer over piece by piece, making one while the one before is sent; one of a single piece at once. */
async function write(
  head: AnswerHead,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { call, signal }: JobContext,
): Promise<QueryReply> {
  let held: Uint8Array | undefined;
  let sending: Promise<unknown> | undefined;
  const send = async (piece: Uint8Array) => {
    if (sending === undefined) await call("head", head, { signal });
    await sending;
    sending = call("write", piece, { signal, transfer: ownBuffer(piece) });
    // Who waits for it next is told; a piece that cannot be made may come first.
    sending.catch(() => undefined);
  };
  for await (const piece of pieces) {
    if (held !== undefined) await send(held);
    held = piece;
  }
  if (sending === undefined) return { kind: "answer", ...head, body: held ?? new Uint8Array(0) };
  if (held !== undefined) await send(held);
  await sending;
  return { kind: "written" };
}

/** The memory of a piece that is all of it, to be moved. */
function ownBuffer({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
