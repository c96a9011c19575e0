import {
  bool,
  double,
  field,
  int64,
  type MessageCodec,
  message,
  optional,
  repeated,
  text,
  uint,
} from "@skald/transport/protobuf";
import type {
  CompareWish,
  FlushRequest,
  Selection,
  SelectRequest,
  WindowDigests,
} from "../ingester.js";
import type { AskedSpan, HeldChanges, HeldChangesRequest, SpanChanges } from "../querier.js";
import { matcher } from "./plan/stages.js";
import { minuteDigests } from "./scan/digests.js";
import { sourceRef, timeRange } from "./scan/sources.js";
import { queryShare } from "./scan/tasks.js";

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
  storedAgoMs: optional(5, double),
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
