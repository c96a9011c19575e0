import { startMetricScan } from "@skald/logql";
import { uncounted } from "./scan-metric.js";
import type { ScanTask } from "./scan-task.js";
import { type Candidate, candidatesOf, type ScanContext, spanOf, viewOf } from "./scan-view.js";
import type { OpenSource } from "./source.js";

/** Bytes of the lines of all blocks that a scan may have to read, from headers. */
export function measureScan(
  { plan, sources }: ScanTask,
  open: OpenSource,
  context: Pick<ScanContext, "check">,
): number {
  const scan = "log" in plan ? undefined : startMetricScan(plan);
  if (scan?.needs.lines === false) return 0;
  let bytes = 0;
  for (const scanned of sources) {
    context.check();
    const view = viewOf(open(scanned.ref), scanned, plan);
    const candidates = candidatesOf(view, spanOf(plan));
    const read = scan === undefined ? candidates : uncounted(scan, view, candidates, context);
    bytes += read.reduce((sum: number, { lineBytes }: Candidate) => sum + lineBytes, 0);
  }
  return bytes;
}
