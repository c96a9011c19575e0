import { emptyLabels, type Labels } from "@skald/model";
import { codeOf, type LabelTable, type StreamColumn } from "@skald/storage";

/** Labels of some names only, by stream; streams that are equal in them share one object, made once. */
export function projectedLabels(
  table: LabelTable,
  names: readonly string[],
): (stream: number) => Labels {
  const columns = [...new Set(names)].sort().flatMap((name) => table.column(name) ?? []);
  const [only] = columns;
  if (only === undefined) return () => emptyLabels;
  const known = new Map<number | string, Labels>();
  const keyOf = columns.length === 1 ? (stream: number) => codeOf(only, stream) : keysOf(columns);
  return (stream) => {
    const key = keyOf(stream);
    let labels = known.get(key);
    if (labels === undefined) {
      labels = labelsIn(columns, stream);
      known.set(key, labels);
    }
    return labels;
  };
}

/** The codes of a stream as one number, or one text where they do not fit. */
function keysOf(columns: readonly StreamColumn[]): (stream: number) => number | string {
  const combinations = columns.reduce((product, { valueCount }) => product * (valueCount + 1), 1);
  if (combinations > Number.MAX_SAFE_INTEGER) {
    return (stream) => columns.map((column) => codeOf(column, stream)).join();
  }
  return (stream) => {
    let key = 0;
    for (const column of columns) key = key * (column.valueCount + 1) + codeOf(column, stream);
    return key;
  };
}

function labelsIn(columns: readonly StreamColumn[], stream: number): Labels {
  const has = columns.filter((column) => codeOf(column, stream) > 0);
  return {
    names: has.map(({ name }) => name),
    values: has.map((column) => column.value(codeOf(column, stream) - 1)),
  };
}
