import {
  bool,
  double,
  type FieldsOf,
  field,
  int64,
  type MessageCodec,
  message,
  optional,
  repeated,
  text,
  uint,
} from "@skald/transport/protobuf";
import type { DigestTask, RowHashTask } from "../../agreement.js";
import type { QueryShare } from "../../querier.js";
import type {
  DuplicateTask,
  LabelTask,
  MatchTask,
  ScanSource,
  ScanTask,
  StreamTask,
  VolumeTask,
} from "../../scan.js";
import type { SourceRef } from "../../source.js";
import { volumePlan } from "../columns/volumes.js";
import { scanPlan } from "../plan/plan.js";
import { digestTask, rowHashTask, skippedMinutes } from "./digests.js";
import { duplicateTask, matchTask, rowMask, selector } from "./row-masks.js";
import { sourceRef, taskSource } from "./sources.js";

interface Part {
  readonly from: number;
  readonly to: number;
}

const part: MessageCodec<Part> = message<Part>(
  { from: field(1, double), to: field(2, double) },
  ({ from, to }) => (from >= 0 && from <= to && to <= 1 ? undefined : "a part is none of a whole"),
);

const scanSource: MessageCodec<ScanSource> = message<ScanSource>({
  ref: field(1, sourceRef),
  sequence: field(2, uint),
  part: optional(3, part),
  mask: optional(4, rowMask),
  tenantLabel: optional(5, text),
  skipped: optional(6, skippedMinutes),
});

const scanTask: MessageCodec<ScanTask> = message<ScanTask>({
  plan: field(1, scanPlan),
  sources: repeated(2, scanSource),
  boundNs: optional(3, int64),
});

const streamPart: MessageCodec<NonNullable<StreamTask["part"]>> = message<
  NonNullable<StreamTask["part"]>
>({ index: field(1, uint), count: field(2, uint) }, ({ index, count }) =>
  index < count ? undefined : "a part is none of its number",
);

const streamTaskFields = {
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, taskSource),
  selectors: repeated(4, selector),
  part: optional(5, streamPart),
};

const streamTask: MessageCodec<StreamTask> = message<StreamTask>(streamTaskFields);

const labelTask: MessageCodec<LabelTask> = message<LabelTask>({
  ...streamTaskFields,
  label: optional(6, text),
});

const volumeTask: MessageCodec<VolumeTask> = message<VolumeTask>({
  plan: field(1, volumePlan),
  sources: repeated(2, scanSource),
});

export const queryShare: MessageCodec<QueryShare> = message<QueryShare>({
  tenant: field(1, text),
  actors: repeated(2, text),
  cost: field(3, double),
});

/** A task and on whose account it runs, and whether anybody waits for it. */
export interface Shared<Task> {
  readonly task: Task;
  readonly share: QueryShare;
  readonly background?: boolean;
}

function sharedCall<Task extends object>(task: MessageCodec<Task>): MessageCodec<Shared<Task>> {
  const fields = {
    task: field(1, task),
    share: field(2, queryShare),
    background: optional(3, bool),
  };
  return message<Shared<Task>>(fields as unknown as FieldsOf<Shared<Task>>);
}

export const scanCall: MessageCodec<Shared<ScanTask>> = sharedCall(scanTask);
export const volumesCall: MessageCodec<Shared<VolumeTask>> = sharedCall(volumeTask);
export const streamsCall: MessageCodec<Shared<StreamTask>> = sharedCall(streamTask);
export const labelsCall: MessageCodec<Shared<LabelTask>> = sharedCall(labelTask);
export const duplicatesCall: MessageCodec<Shared<DuplicateTask>> = sharedCall(duplicateTask);
export const digestsCall: MessageCodec<Shared<DigestTask<SourceRef>>> = sharedCall(digestTask);
export const rowHashesCall: MessageCodec<Shared<RowHashTask<SourceRef>>> = sharedCall(rowHashTask);
export const matchesCall: MessageCodec<Shared<MatchTask>> = sharedCall(matchTask);
