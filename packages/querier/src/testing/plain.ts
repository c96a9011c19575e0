import type { QueryAnswer } from "@skald/contracts";
import { groupLogRows, type LogResult, lineAt, type QueryResult } from "@skald/logql";
import { formatLabels } from "@skald/model";
import { testDayNs } from "@skald/scan/testing";

/** An answer as plain values that can be compared: rows in order, or values by series. */
export function plain({ result }: QueryAnswer): unknown {
  return result.kind === "streams" ? plainRows(result) : plainSeries(result);
}

function plainRows(result: LogResult): string[] {
  const texts = new Array<string>(result.rowCount);
  for (const { labels, rows } of groupLogRows(result, "all")) {
    for (const at of rows) {
      const line = Buffer.from(lineAt(result.lines, at)).toString();
      const time = (result.timestamps[at] as bigint) - testDayNs;
      texts[at] = `${time} ${formatLabels(labels)} ${line}`;
    }
  }
  return texts;
}

function plainSeries(result: QueryResult): unknown {
  switch (result.kind) {
    case "scalar":
      return result.value;
    case "vector":
      return result.samples.map(({ labels, value }) => `${formatLabels(labels)} ${value}`).sort();
    case "matrix":
      return result.series.map(
        ({ labels, at, values }) =>
          `${formatLabels(labels)} ${[...at].join()} ${[...values].join()}`,
      );
  }
}
