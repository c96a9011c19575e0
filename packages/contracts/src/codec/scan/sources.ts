import type { SegmentLocation, SegmentRef, TimeRange } from "@skald/model";
import {
  bool,
  field,
  int64,
  type Member,
  type MessageCodec,
  mapped,
  message,
  optional,
  text,
  uint,
  union,
} from "@skald/transport/protobuf";
import type { HeadRef, SourceRef, TaskSource } from "../../source.js";
import { textList } from "../columns/columns.js";

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
  isApart: optional(8, bool),
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

export const taskSource: MessageCodec<TaskSource> = message<TaskSource>({
  ref: field(1, sourceRef),
});

export const timeRange: MessageCodec<TimeRange> = message<TimeRange>({
  fromNs: field(1, int64),
  toNs: field(2, int64),
});
