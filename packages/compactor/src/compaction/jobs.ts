import type { SegmentRef } from "@skald/model";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import {
  type DayChange,
  type DroppedRows,
  decodeDayIndex,
  type EditedDay,
  editDay,
  type MergeOptions,
  mergeSegments,
  type OpenedSegmentFile,
  openSegmentFile,
  type SealedSegment,
} from "@skald/storage";

/** Segments to merge into one. The answer is the written segment, or undefined when no row is left. */
export interface MergeJob
  extends Pick<MergeOptions, "level" | "filters" | "sync" | "texts" | "fields"> {
  readonly tenant: string;
  readonly id: string;
  readonly path: string;
  /** In order of arrival. Their files are on this machine. */
  readonly inputs: readonly MergeSource[];
}

export interface MergeSource {
  readonly ref: SegmentRef;
  /** Rows to drop. */
  readonly dropped?: DroppedRows | undefined;
}

/** Time of work before the job waits for its next turn. */
const turnMs = 20;
/** The call that a job makes then. It continues when the call is answered. */
export const turnCall = "turn";

/** The jobs of a compactor, for a worker thread. */
export function compactionJobs(): Record<string, JobHandler> {
  return {
    merge_segments: async (job: MergeJob, context: JobContext) => ({
      value: await merge(job, context),
    }),
    edit_day: (change: DayChange): JobResult => {
      const edited: EditedDay = editDay(change);
      return { value: edited };
    },
    open_day: ({ name, bytes }: { readonly name: string; readonly bytes: Uint8Array }) => ({
      value: decodeDayIndex(name, bytes),
    }),
  };
}

/** Merges step by step, and waits while others need the processors. */
async function merge(
  { inputs, ...job }: MergeJob,
  { check, call }: JobContext,
): Promise<SealedSegment | undefined> {
  const opened: OpenedSegmentFile[] = [];
  try {
    for (const { ref } of inputs) opened.push(openSegmentFile(ref));
    const segments = opened.map(({ segment }, i) => ({ segment, dropped: inputs[i]?.dropped }));
    const steps = mergeSegments({ ...job, inputs: segments });
    try {
      let sinceMs = performance.now();
      for (;;) {
        check();
        const step = steps.next();
        if (step.done === true) return step.value;
        if (performance.now() - sinceMs < turnMs) continue;
        await call(turnCall, undefined);
        sinceMs = performance.now();
      }
    } finally {
      steps.return(undefined);
    }
  } finally {
    for (const { close } of opened) close();
  }
}
