import { compactionJobs } from "@skald/compactor/jobs";
import type { ImportJob } from "@skald/loki-store";
import { type DoorBody, decodeBody, decodeDoor, type PushBody } from "@skald/push";
import type { RuleJobName } from "@skald/ruler/jobs";
import { type JobHandler, type JobResult, serveJobs } from "@skald/runtime";
import { scanJobs, TailRunner, type TailTask } from "@skald/scan";
import type { HeadBlockRef, SharedStreams } from "@skald/storage";
import { openHeadBlock, type SealInput, sealSegment, textsByNumber } from "@skald/storage";

/** A head to seal, with its blocks by reference to shared memory. */
export interface SealJob extends Omit<SealInput, "heads"> {
  readonly heads: readonly (SharedStreams & { readonly blocks: readonly HeadBlockRef[] })[];
}

export interface DecodeJob {
  readonly input: PushBody;
  readonly maxBytes: number;
}

export interface DecodeRecordsJob {
  readonly input: DoorBody;
  readonly maxBytes: number;
}

const tails = new TailRunner();

/** Few threads ever read rules, so its code is loaded only then. */
function ruleJob(name: RuleJobName): JobHandler {
  return async (payload) => (await import("@skald/ruler/jobs")).ruleJobs[name](payload);
}

serveJobs({
  ...scanJobs(),
  ...compactionJobs(),
  seal: (job: SealJob): JobResult => {
    const heads = job.heads.map(({ blocks, ...streams }) => ({
      blocks: blocks.map(openHeadBlock),
      streamTexts: textsByNumber(streams),
    }));
    return { value: sealSegment({ ...job, heads }) };
  },
  tail: (task: TailTask, { check }): JobResult => {
    const startMs = performance.now();
    const found = tails.run(task, check);
    return { value: { found, workMs: performance.now() - startMs } };
  },
  decode_push: ({ input, maxBytes }: DecodeJob): JobResult => {
    const push = decodeBody(input, maxBytes);
    return { value: push, transfer: buffersOf(push) };
  },
  decode_records: ({ input, maxBytes }: DecodeRecordsJob): JobResult => {
    const records = decodeDoor(input, maxBytes);
    return { value: records, transfer: buffersOf({ ...records, ...records.push }) };
  },
  read_rule_group: ruleJob("read_rule_group"),
  read_rule_groups: ruleJob("read_rule_groups"),
  write_rules: ruleJob("write_rules"),
  import_chunks: async (job: ImportJob): Promise<JobResult> => ({
    value: (await import("@skald/loki-store/jobs")).importChunks(job),
  }),
});

/** The buffers of columns, which are moved instead of copied; each is named once. */
function buffersOf(columns: object): ArrayBuffer[] {
  const buffers = Object.values(columns).flatMap((column) =>
    ArrayBuffer.isView(column) ? [column.buffer] : [],
  );
  return [...new Set(buffers)].filter((buffer) => buffer instanceof ArrayBuffer);
}
