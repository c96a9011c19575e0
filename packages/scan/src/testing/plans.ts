import {
  defaultQueryLimits,
  type Plan,
  parseQuery,
  planQuery,
  type QueryParams,
} from "@skald/logql";
import { testDayNs } from "./sources.js";

/** A plan over times that are ns after midnight of the test day, for 100 rows unless told; the end of a log query is exclusive. */
export function planOf(
  query: string,
  params: Partial<Omit<QueryParams, "startNs" | "endNs">> & { from?: number; to?: number } = {},
): Plan {
  const { from = 0, to = 1e9, ...rest } = params;
  return planQuery(
    parseQuery(query),
    {
      startNs: testDayNs + BigInt(from),
      endNs: testDayNs + BigInt(to),
      stepNs: 0n,
      limit: 100,
      direction: "forward",
      intervalNs: 0n,
      ...rest,
    },
    { ...defaultQueryLimits, maxSeries: 1e6 },
  );
}
