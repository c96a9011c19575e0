import { parseByteSize } from "../../go/byte-size.js";
import { parseGoDuration, secondsOf } from "../../go/duration.js";
import { type Parsed, parseGoFloat } from "../../go/float.js";
import { quickDuration, quickNumber, quickSize } from "../../go/quick-number.js";
import type { Unwrap } from "../../syntax/ast.js";
import { readText } from "../row/bytes.js";
import { stageErrors } from "../row/labels.js";
import { compileLabelFilter } from "./label-filter.js";
import type { RowState } from "./row-state.js";

/** The number of the current row; undefined when it has none or a filter refuses it. */
export type RowValue = () => number | undefined;

/**
 * `| unwrap duration(l) | filters`: a row without the label has no value, one whose value cannot be read has 0 and an
 * error; the filters see that error.
 */
export function prepareUnwrap({ label, conversion, filters }: Unwrap): (row: RowState) => RowValue {
  const prepared = filters.map(compileLabelFilter);
  const isDuration = conversion === "duration" || conversion === "duration_seconds";
  const quick = isDuration ? quickDuration : conversion === "bytes" ? quickSize : quickNumber;
  const parse: (text: string) => Parsed<number> =
    conversion === "bytes" ? parseByteSize : isDuration ? parseGoDuration : parseGoFloat;
  return (row) => {
    const { labels } = row;
    const slot = labels.names.slotOf(label);
    const tests = prepared.map((filter) => filter(row));
    return () => {
      if (!labels.find(slot) || labels.foundStart === labels.foundEnd) return undefined;
      const { foundBytes, foundStart, foundEnd } = labels;
      let value = quick(foundBytes, foundStart, foundEnd);
      if (Number.isNaN(value)) {
        const parsed = parse(readText(foundBytes, foundStart, foundEnd));
        if ("error" in parsed) {
          labels.fail(stageErrors.unwrap, parsed.error);
          value = 0;
        } else value = parsed.value;
      }
      for (const test of tests) if (!test()) return undefined;
      return isDuration ? secondsOf(value) : value;
    };
  };
}
