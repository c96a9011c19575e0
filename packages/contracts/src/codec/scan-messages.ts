import type { Matcher, SegmentLocation, SegmentRef, TimeRange } from "@skald/model";
import {
  bool,
  double,
  type FieldsOf,
  f64s,
  field,
  int64,
  type Member,
  type MessageCodec,
  mapped,
  message,
  optional,
  repeated,
  text,
  u32s,
  uint,
  union,
} from "@skald/transport/protobuf";
import type {
  DigestTask,
  MinuteDigests,
  PlacedHashes,
  RowHashTask,
  SkippedMinutes,
  StreamMinutes,
} from "../agreement.js";
import type { DeletesRequest } from "../catalog.js";
import type {
  CompareWish,
  FlushRequest,
  Selection,
  SelectRequest,
  WindowDigests,
} from "../ingester.js";
import type {
  AskedSpan,
  HeldChanges,
  HeldChangesRequest,
  QueryShare,
  SpanChanges,
} from "../querier.js";
import type {
  DuplicateTask,
  LabelTask,
  MatchedRows,
  MatchTask,
  RowFilter,
  RowMask,
  ScanSource,
  ScanTask,
  StreamTask,
  VolumeTask,
} from "../scan.js";
import type { HeadRef, SourceRef } from "../source.js";
import { ascends, textList, u32Lists } from "./columns.js";
import { scanPlan } from "./plan/plan.js";
import { logExpr, matcher } from "./plan/stages.js";
import { volumePlan } from "./volumes.js";

const location: MessageCodec<SegmentLocation> = union<SegmentLocation>({
  file: [
    1,
    message<Member<SegmentLocation, "file">>({
      path: field(1, text),
      instance: optional(2, text),
    }),
  ],
  object: [2, message<Member<SegmentLocation, "object">>({ key: field(1, text) })],
});

const segmentFields = message<Omit<SegmentRef, "kind">>({
  id: field(1, text),
  tenant: field(2, text),
  minNs: field(3, int64),
  maxNs: field(4, int64),
  location: field(5, location),
  sizeBytes: field(6, uint),
  replaces: optional(7, textList),
});

export const segmentRef: MessageCodec<SegmentRef> = mapped(
  segmentFields,
  (ref) => ref,
  (ref): SegmentRef => ({ kind: "segment", ...ref }),
);

const headFields = message<Omit<HeadRef, "kind">>({
  id: field(1, text),
  tenant: field(2, text),
  minNs: field(3, int64),
  maxNs: field(4, int64),
  view: field(5, text),
  sizeBytes: field(6, uint),
  instance: optional(7, text),
});

export const sourceRef: MessageCodec<SourceRef> = union<SourceRef>({
  segment: [1, segmentFields],
  head: [2, headFields],
});

export const rowMask: MessageCodec<RowMask> = message<RowMask>(
  { blocks: field(1, u32s), rows: field(2, u32Lists) },
  ({ blocks, rows }) => {
    if (blocks.length !== rows.length) return "a mask has not rows for each block";
    const isAscending = ascends(blocks, true) && rows.every((one) => ascends(one, true));
    return isAscending ? undefined : "a mask does not ascend";
  },
);

interface Part {
  readonly from: number;
  readonly to: number;
}

const part: MessageCodec<Part> = message<Part>(
  { from: field(1, double), to: field(2, double) },
  ({ from, to }) => (from >= 0 && from <= to && to <= 1 ? undefined : "a part is none of a whole"),
);

/** Why lists of minutes are no lists of minutes; undefined when they are. */
function refuseMinutes({ streams, counts, minutes }: StreamMinutes): string | undefined {
  const isWhole = counts.length === streams.length && sumOf(counts) === minutes.length;
  return isWhole ? undefined : "minutes are not those of their streams";
}

function sumOf(numbers: Uint32Array): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

const minuteFields = {
  streams: field(1, f64s),
  counts: field(2, u32s),
  minutes: field(3, u32s),
};

const streamMinutes: MessageCodec<StreamMinutes> = message<StreamMinutes>(
  minuteFields,
  refuseMinutes,
);

const skippedMinutes: MessageCodec<SkippedMinutes> = message<SkippedMinutes>(
  { all: field(1, u32s), some: field(2, streamMinutes) },
  ({ all }) =>
    all.length % 2 === 0 && ascends(all) ? undefined : "stretches of minutes do not ascend",
);

export const minuteDigests: MessageCodec<MinuteDigests> = message<MinuteDigests>(
  { ...minuteFields, rows: field(4, u32s), sums: field(5, u32s) },
  (digests) => {
    const { minutes, rows, sums } = digests;
    const isWhole = rows.length === minutes.length && sums.length === 2 * minutes.length;
    return isWhole ? refuseMinutes(digests) : "digests are not those of their minutes";
  },
);

export const placedHashes: MessageCodec<PlacedHashes> = message<PlacedHashes>(
  {
    minute: field(1, u32s),
    source: field(2, u32s),
    block: field(3, u32s),
    row: field(4, u32s),
    hashes: field(5, u32s),
  },
  ({ minute, source, block, row, hashes }) => {
    const lengths = [source.length, block.length, row.length, hashes.length / 2];
    const isWhole = lengths.every((length) => length === minute.length);
    return isWhole ? undefined : "hashes are not those of their rows";
  },
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

export const queryShare: MessageCodec<QueryShare> = message<QueryShare>({
  tenant: field(1, text),
  actors: repeated(2, text),
  cost: field(3, double),
});

interface Selector {
  readonly matchers: readonly Matcher[];
}

const selectorFields: MessageCodec<Selector> = message<Selector>({
  matchers: repeated(1, matcher),
});

/** Matchers that must all match. */
export const selector: MessageCodec<Selector["matchers"]> = mapped(
  selectorFields,
  (matchers) => ({ matchers }),
  ({ matchers }) => matchers,
);

const streamPart: MessageCodec<NonNullable<StreamTask["part"]>> = message<
  NonNullable<StreamTask["part"]>
>({ index: field(1, uint), count: field(2, uint) }, ({ index, count }) =>
  index < count ? undefined : "a part is none of its number",
);

const streamTaskFields = {
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, sourceRef),
  selectors: repeated(4, selector),
  part: optional(5, streamPart),
};

const streamTask: MessageCodec<StreamTask> = message<StreamTask>(streamTaskFields);

const labelTask: MessageCodec<LabelTask> = message<LabelTask>({
  ...streamTaskFields,
  label: optional(6, text),
});

interface Range {
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

const range: MessageCodec<Range> = message<Range>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
});

/** A task whose range, if there is one, is of a type that a message can have. */
type Ranged<Task> = Omit<Task, "range"> & { readonly range?: Range };

const duplicateTask: MessageCodec<DuplicateTask> = mapped(
  message<Ranged<DuplicateTask>>({
    newer: field(1, sourceRef),
    older: repeated(2, sourceRef),
    range: optional(3, range),
  }),
  (task) => task as Ranged<DuplicateTask>,
  (task): DuplicateTask => task,
);

interface Selectors {
  readonly selectors: readonly (readonly Matcher[])[];
}

const selectors: MessageCodec<Selectors["selectors"]> = mapped(
  message<Selectors>({ selectors: repeated(1, selector) }),
  (list) => ({ selectors: list }),
  (list) => list.selectors,
);

const rowFilter: MessageCodec<RowFilter> = message<RowFilter>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  id: optional(3, text),
  log: field(4, logExpr),
  nowNs: field(5, int64),
  unless: optional(6, selectors),
});

const matchTask: MessageCodec<MatchTask> = mapped(
  message<Ranged<MatchTask>>({
    source: field(1, sourceRef),
    filters: repeated(2, rowFilter),
    range: optional(3, range),
  }),
  (task) => task as Ranged<MatchTask>,
  (task): MatchTask => task,
);

export const matchedRows: MessageCodec<MatchedRows> = message<MatchedRows>({
  mask: field(1, rowMask),
  rowCount: field(2, uint),
});

const digestTask: MessageCodec<DigestTask<SourceRef>> = message<DigestTask<SourceRef>>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, sourceRef),
  matchers: repeated(4, matcher),
  minutesEach: field(5, uint),
});

const rowHashTask: MessageCodec<RowHashTask<SourceRef>> = message<RowHashTask<SourceRef>>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  sources: repeated(3, sourceRef),
  wanted: field(4, streamMinutes),
});

const volumeTask: MessageCodec<VolumeTask> = message<VolumeTask>({
  plan: field(1, volumePlan),
  sources: repeated(2, scanSource),
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

export const timeRange: MessageCodec<TimeRange> = message<TimeRange>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
});

const compareWish: MessageCodec<CompareWish> = message<CompareWish>({
  windows: repeated(1, timeRange),
  minutesEach: field(2, uint),
});

export const selectRequest: MessageCodec<SelectRequest> = message<SelectRequest>({
  tenant: field(1, text),
  fromNs: field(2, int64),
  toNs: field(3, int64),
  matchers: repeated(4, matcher),
  share: optional(5, queryShare),
  compare: optional(6, compareWish),
});

const windowDigests: MessageCodec<WindowDigests> = message<WindowDigests>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  digests: field(3, minuteDigests),
  sources: field(4, uint),
  instance: optional(5, text),
});

export const selection: MessageCodec<Selection> = message<Selection>({
  view: optional(1, text),
  sources: repeated(2, sourceRef),
  completeFromNs: optional(3, int64),
  compared: optional(
    4,
    message<NonNullable<Selection["compared"]>>({ windows: repeated(1, windowDigests) }),
  ),
});

export const askedSpan: MessageCodec<AskedSpan> = message<AskedSpan>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
  since: optional(3, text),
});

export const spanChanges: MessageCodec<SpanChanges> = message<SpanChanges>({
  token: field(1, text),
  changed: repeated(2, timeRange),
});

export const heldChangesRequest: MessageCodec<HeldChangesRequest> = message<HeldChangesRequest>({
  tenant: field(1, text),
  spans: repeated(2, askedSpan),
});

export const heldChanges: MessageCodec<HeldChanges> = message<HeldChanges>({
  spans: repeated(1, spanChanges),
  lookedFromNs: optional(2, int64),
});

export const flushRequest: MessageCodec<FlushRequest> = message<FlushRequest>({
  tenant: optional(1, text),
});

/** Views that are given back: one, and more where there are any. */
export const releaseRequest = message<{
  readonly view: string;
  readonly more: readonly string[];
}>({ view: field(1, text), more: repeated(2, text) });
/** Whether a call may give several back. */
export const released = message<{ readonly takesMany: boolean }>({ takesMany: field(1, bool) });
export const measureAnswer = message<{ readonly bytes: number }>({ bytes: field(1, double) });

export const deletesRequest: MessageCodec<DeletesRequest> = message<DeletesRequest>({
  tenant: field(1, text),
  fromNs: field(2, int64),
  toNs: field(3, int64),
});

export const deletesAnswer = message<{ readonly filters: readonly RowFilter[] }>({
  filters: repeated(1, rowFilter),
});
