import { type Querier, type ScheduledAnswer, scheduledQuerier } from "@skald/contracts";
import { FrontendThread, type QueryJob } from "@skald/frontend";
import { steadyClock } from "@skald/model";
import {
  answerCallJob,
  type CallJob,
  CorruptSegments,
  onQueryThread,
  type QuerierJob,
} from "@skald/querier";
import { type JobContext, type JobResult, serveJobs } from "@skald/runtime";

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
    return answerCallJob(job, context, corrupt);
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
