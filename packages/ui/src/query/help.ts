/** A function or stage: how it is written, what it does. */
export interface Help {
  readonly name: string;
  readonly signature: string;
  readonly says: string;
}

const list = (rows: readonly (readonly [string, string, string])[]): readonly Help[] =>
  rows.map(([name, signature, says]) => ({ name, signature, says }));

/** Stages, without the pipe. */
export const stageHelp = list([
  ["json", "| json", "fields of a JSON line"],
  ["logfmt", "| logfmt", "fields of a logfmt line"],
  ["pattern", '| pattern "<ip> - <user> <_>"', "fields by the places in a text"],
  ["regexp", '| regexp "(?P<status>\\\\d+)"', "fields by named groups"],
  ["unpack", "| unpack", "fields that Promtail packed"],
  ["line_format", '| line_format "{{.msg}}"', "another text for the line"],
  ["label_format", "| label_format a=b", "renames or makes fields"],
  ["drop", "| drop name", "without these fields"],
  ["keep", "| keep name", "only these fields"],
  ["decolorize", "| decolorize", "without colour codes"],
]);

/** Functions over a range, and over their results. */
export const functionHelp = list([
  ["rate", "rate({..} [5m])", "lines per second"],
  ["count_over_time", "count_over_time({..} [5m])", "lines in each window"],
  ["bytes_rate", "bytes_rate({..} [5m])", "bytes per second"],
  ["bytes_over_time", "bytes_over_time({..} [5m])", "bytes in each window"],
  ["sum_over_time", "sum_over_time({..} | unwrap x [5m])", "sum of a field"],
  ["avg_over_time", "avg_over_time({..} | unwrap x [5m])", "mean of a field"],
  ["min_over_time", "min_over_time({..} | unwrap x [5m])", "smallest value of a field"],
  ["max_over_time", "max_over_time({..} | unwrap x [5m])", "largest value of a field"],
  ["first_over_time", "first_over_time({..} | unwrap x [5m])", "first value of a field"],
  ["last_over_time", "last_over_time({..} | unwrap x [5m])", "last value of a field"],
  ["stddev_over_time", "stddev_over_time({..} | unwrap x [5m])", "standard deviation of a field"],
  ["stdvar_over_time", "stdvar_over_time({..} | unwrap x [5m])", "variance of a field"],
  ["quantile_over_time", "quantile_over_time(0.95, {..} | unwrap x [5m])", "quantile of a field"],
  ["rate_counter", "rate_counter({..} | unwrap x [5m])", "growth per second of a counter"],
  ["absent_over_time", "absent_over_time({..} [5m])", "1 where no line is"],
  ["sum", "sum by (app) (..)", "sum of series"],
  ["avg", "avg by (app) (..)", "mean of series"],
  ["min", "min by (app) (..)", "smallest of series"],
  ["max", "max by (app) (..)", "largest of series"],
  ["count", "count by (app) (..)", "number of series"],
  ["stddev", "stddev by (app) (..)", "standard deviation of series"],
  ["stdvar", "stdvar by (app) (..)", "variance of series"],
  ["topk", "topk(10, ..)", "the largest series"],
  ["bottomk", "bottomk(10, ..)", "the smallest series"],
  ["approx_topk", "approx_topk(10, ..)", "the largest series, estimated"],
  ["sort", "sort(..)", "series in order of value"],
  ["sort_desc", "sort_desc(..)", "series in order of value, largest first"],
  ["label_replace", 'label_replace(.., "to", "$1", "from", "(.*)")', "a label from another"],
  ["vector", "vector(1)", "a number as a series"],
]);

const byName = new Map([...stageHelp, ...functionHelp].map((help) => [help.name, help]));

export function helpFor(word: string): Help | undefined {
  return byName.get(word.toLowerCase());
}
