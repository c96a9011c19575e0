import {
  answerScheduled,
  type Querier,
  type ScheduledAnswer,
  type ScheduledCall,
  scheduledQuerier,
} from "@skald/contracts";
import { FrontendThread, type QueryJob } from "@skald/frontend";
import { steadyClock } from "@skald/model";
import { CorruptSegments, onQueryThread, type QuerierJob } from "@skald/querier";
import { type JobContext, type JobResult, serveJobs } from "@skald/runtime";

/** A call that was taken from a scheduler. */
export interface CallJob extends QuerierJob {
  readonly call: ScheduledCall;
}

/** How such a job ends. */
export interface CallReply {
  readonly kind: "answer";
  readonly body: Uint8Array;
}

/** A segment that a query found damaged, by its file or key. */
export interface DamagedSegment {
  readonly segment: string;
  readonly reason: string;
}

/** Damaged segments that queries of this thread have met; the thread with the log counts and names them. */
let report: (found: DamagedSegment) => void = () => undefined;
const corrupt = new CorruptSegments({
  clock: steadyClock,
  onFound: (segment, error) => report({ segment, reason: (error as Error).message }),
});

const frontend = new FrontendThread();

// A query thread: a request comes in, its answer goes out. Sources are scanned elsewhere.
serveJobs({
  query: (job: QueryJob & QuerierJob, context: JobContext): Promise<JobResult> => {
    watch(context);
    return onQueryThread(job, context, corrupt, async (querierOf) => {
      const querier = (planned: unknown): Querier =>
        job.isElsewhere ? elsewhere(context) : querierOf({ planned });
      return { value: await frontend.answer(job, context, querier) };
    });
  },
  call: (job: CallJob, context: JobContext): Promise<JobResult> => {
    watch(context);
    return onQueryThread(job, context, corrupt, async (querierOf) => {
      const options = { signal: context.signal };
      const body = await answerScheduled(querierOf(), job.call, options);
      const value: CallReply = { kind: "answer", body };
      const isAlone = body.byteLength === body.buffer.byteLength;
      return { value, transfer: isAlone ? [body.buffer as ArrayBuffer] : [] };
    });
  },
});

/** Has damaged segments reported by a job. */
function watch({ call }: JobContext): void {
  report = (found) => void call("corrupt", found);
}

/** A querier elsewhere, by the scheduler that the process is connected to. */
function elsewhere({ call }: JobContext): Querier {
  return scheduledQuerier(() => ({
    run: (asked, { signal }) => call("schedule", asked, { signal }) as Promise<ScheduledAnswer>,
  }));
}
