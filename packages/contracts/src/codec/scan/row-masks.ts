import type { Matcher, TimeRange } from "@skald/model";
import {
  field,
  int64,
  type MessageCodec,
  mapped,
  message,
  optional,
  repeated,
  text,
  u32s,
  uint,
} from "@skald/transport/protobuf";
import type { DeletesRequest } from "../../catalog.js";
import type { DuplicateTask, MatchedRows, MatchTask, RowFilter, RowMask } from "../../scan.js";
import { ascends, u32Lists } from "../columns/columns.js";
import { logExpr, matcher } from "../plan/stages.js";
import { taskSource, timeRange } from "./sources.js";

export const rowMask: MessageCodec<RowMask> = message<RowMask>(
  { blocks: field(1, u32s), rows: field(2, u32Lists) },
  ({ blocks, rows }) => {
    if (blocks.length !== rows.length) return "a mask has not rows for each block";
    const isAscending = ascends(blocks, true) && rows.every((one) => ascends(one, true));
    return isAscending ? undefined : "a mask does not ascend";
  },
);

/** A task whose range, if there is one, is of a type that a message can have. */
type Ranged<Task> = Omit<Task, "range"> & { readonly range?: TimeRange };

export const duplicateTask: MessageCodec<DuplicateTask> = mapped(
  message<Ranged<DuplicateTask>>(
    { sources: repeated(1, taskSource), range: optional(2, timeRange) },
    ({ sources }) => (sources.length > 0 ? undefined : "nothing is compared"),
  ),
  (task) => task as Ranged<DuplicateTask>,
  (task): DuplicateTask => task,
);

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

export const matchTask: MessageCodec<MatchTask> = mapped(
  message<Ranged<MatchTask>>(
    {
      sources: repeated(1, taskSource),
      filters: repeated(2, rowFilter),
      range: optional(3, timeRange),
    },
    ({ sources }) => (sources.length === 1 ? undefined : "filters are for one source"),
  ),
  (task) => task as Ranged<MatchTask>,
  (task): MatchTask => task,
);

export const matchedRows: MessageCodec<MatchedRows> = message<MatchedRows>({
  mask: field(1, rowMask),
  rowCount: field(2, uint),
});

export const deletesRequest: MessageCodec<DeletesRequest> = message<DeletesRequest>({
  tenant: field(1, text),
  fromNs: field(2, int64),
  toNs: field(3, int64),
});

export const deletesAnswer = message<{ readonly filters: readonly RowFilter[] }>({
  filters: repeated(1, rowFilter),
});
