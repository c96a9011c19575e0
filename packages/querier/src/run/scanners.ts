import type { Scanner, SegmentScanner, SourceRef } from "@skald/contracts";

/** Who scans the sources of a side. Segments that are nobody's own can be read on the side of the store, wherever they are. */
export type Scanners = Readonly<
  Record<"ingester", Scanner> & Record<"store", SegmentScanner<SourceRef>>
>;
