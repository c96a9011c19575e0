import type { EndpointDocs, ParamDocs } from "@skald/transport";

const logql: ParamDocs = { name: "query", type: "logql", required: true, says: "The query." };
const selector: ParamDocs = { ...logql, type: "selector", says: "The streams." };
const someStreams: ParamDocs = {
  name: "query",
  type: "selector",
  fallback: "all streams",
  says: "Only of these streams.",
};
const limit: ParamDocs = {
  name: "limit",
  type: "integer",
  fallback: "100",
  says: "Most lines of an answer.",
};
const direction: ParamDocs = {
  name: "direction",
  type: "text",
  values: ["forward", "backward"],
  fallback: "backward",
  says: "Whether the oldest line comes first, or the newest; in any case of letters.",
};
const step: ParamDocs = {
  name: "step",
  type: "span",
  fallback: "range / 250, at least 1 s",
  says: "Time between two points of a graph.",
};
const name: ParamDocs = { name: "name", type: "text", required: true, says: "In the path." };

const end: ParamDocs = { name: "end", type: "time", fallback: "now", says: "End of the range." };

function rangeOf(since: string): readonly ParamDocs[] {
  return [
    { name: "start", type: "time", fallback: "end - since", says: "Start of the range." },
    end,
    {
      name: "since",
      type: "duration",
      fallback: since,
      says: "Length of the range, back from its end or from now, without a start.",
    },
  ];
}

const lastHour = rangeOf("1h");
const lastHours = rangeOf("6h");

const queryErrors = {
  400: "a query that cannot be parsed, or that a limit of the tenant forbids",
  429: "too many queries of the tenant wait",
  504: "longer than `query_timeout`",
};
const list = "`{status, data: [text]}`, sorted.";
const app = '{app="shop"}';

/** What is to be known about each endpoint of the query API. */
export const queryDocs = {
  query: {
    group: "Query",
    says: "A metric query at one time.",
    tenant: "many",
    params: [
      logql,
      { name: "time", type: "time", fallback: "now", says: "The time." },
      limit,
      direction,
    ],
    answers: { 200: "An envelope with a `vector`, or a `scalar` of a number; Parquet on demand." },
    errors: { ...queryErrors, 400: `${queryErrors[400]}; a log query` },
    example: {
      params: { query: "vector(1)+vector(1)" },
      status: 200,
      contains: '"resultType":"vector"',
    },
    differs: "a number that is not one (`1/0`) is answered with `NaN`, where the original hangs",
  },
  query_range: {
    group: "Query",
    says: "Log lines of a range of time, or a metric query at each step in it.",
    tenant: "many",
    params: [
      logql,
      ...lastHour,
      { ...limit, says: "Most lines of an answer; `warnings` say when it was reached." },
      direction,
      step,
      {
        name: "interval",
        type: "span",
        fallback: "0",
        says: "Least time between two lines of the answer, whatever their streams; `limit` counts these lines.",
      },
    ],
    answers: {
      200:
        "An envelope with `streams` or a `matrix`; Parquet on demand. `data.stats.skald` has `phases` in ms (`queue`, `plan`, " +
        "`find`, `scan`, `merge`, and `encode` at the pace of the client), `blocks` (`total`, `read`, `refused` by filters, " +
        "`counted` from headers) and `bytesToRead`, the lines in the blocks that scans had to read if no limit came first.",
    },
    errors: {
      ...queryErrors,
      400: `${queryErrors[400]}; an end before the start; more than 11,000 points`,
    },
    example: {
      params: { query: `${app} |= "paid"`, since: "30m", limit: "10" },
      status: 200,
      contains: '"resultType":"streams"',
    },
  },
  labels: {
    group: "Query",
    says: "Names of labels.",
    tenant: "many",
    params: [...lastHours, someStreams],
    answers: { 200: list },
    example: { params: { since: "1h" }, status: 200, contains: '"success"' },
    differs: "`data` is there when it is empty; the last six hours count, as documented, not one",
  },
  label_values: {
    group: "Query",
    says: "Values of a label.",
    tenant: "many",
    params: [name, ...lastHours, someStreams],
    answers: { 200: list },
    example: { variables: { name: "app" }, status: 200, contains: '"success"' },
    differs: "`data` is there when it is empty; the last six hours count, as documented, not one",
  },
  series: {
    group: "Query",
    says: "Label sets of streams.",
    tenant: "many",
    params: [
      {
        name: "match[]",
        type: "selector",
        required: true,
        repeats: true,
        says: "Streams that any of these matches; `match` as well.",
      },
      ...lastHour,
    ],
    answers: { 200: "`{status, data: [labels]}`." },
    errors: { 400: "no `match[]`" },
    example: { params: { "match[]": app }, status: 200, contains: '"data":' },
    differs: "without `match[]` the answer is 400, as documented, not all series",
  },
  index_stats: {
    group: "Explore",
    says: "How much there is of a selector.",
    tenant: "many",
    params: [selector, ...lastHour, step],
    answers: { 200: "`{streams, chunks, bytes, entries}`." },
    errors: { 400: "more than a selector" },
    example: { params: { query: app }, status: 200, contains: '"entries":' },
    differs: "what is in memory only is counted too",
  },
  index_shards: {
    group: "Explore",
    says: "Parts of all hashes of streams that have about the same size.",
    tenant: "many",
    params: [
      selector,
      ...lastHour,
      step,
      {
        name: "targetBytesPerShard",
        type: "size",
        fallback: "600MB",
        says: "Size of a part.",
      },
    ],
    answers: { 200: "`{shards: [{bounds, stats}], statistics}`." },
    example: { params: { query: app }, status: 200, contains: '"shards":' },
  },
  index_volume: volumeDocs("Bytes by labels.", "vector", []),
  index_volume_range: volumeDocs("Bytes by labels and step.", "matrix", [step]),
  detected_labels: {
    group: "Explore",
    says: "Labels that are worth showing, with the number of their values.",
    tenant: "many",
    params: [someStreams, ...lastHour],
    answers: { 200: "`{detectedLabels: [{label, cardinality}]}`, or `{}`." },
    example: { status: 200, contains: "{" },
  },
  detected_fields: fieldsDocs("Fields in a sample of lines.", [], {}),
  detected_field_values: fieldsDocs("Values of a field in a sample of lines.", [name], {
    name: "status",
  }),
  explain: {
    group: "Explore",
    says: "What a query will read, by indexes, headers and filters alone.",
    tenant: "many",
    params: [logql, ...lastHour, limit, direction, step],
    answers: {
      200:
        "`{query, kind, parts, cached, exact, refusedBy}`. A part, of a log query or of a range aggregation, has " +
        "`{selector, streams, entries, bytes, segments, blocks, blocksToRead, bytesToRead, answeredBy, needles}`. A query " +
        "reads no more than `bytesToRead`, and less where its limit ends it. `exact` is false where headers were looked at " +
        "for 50 ms and more are left, whose blocks then all count, or where kept answers or deletes may spare it a part. " +
        "`refusedBy` is the error of a query that a limit forbids.",
    },
    errors: { 400: "a query that cannot be parsed", 504: queryErrors[504] },
    example: { params: { query: `${app} |= "paid"` }, status: 200, contains: '"bytesToRead":' },
    differs: "Loki has only `index/stats`, which knows neither stages nor blocks",
  },
  legacy_query: {
    group: "Query",
    says: "Log lines of a range of time in the old form; use `query_range`.",
    tenant: "many",
    params: [
      logql,
      ...lastHour,
      limit,
      direction,
      step,
      { name: "interval", type: "span", fallback: "0", says: "As of `query_range`." },
      { name: "regexp", type: "text", says: "As `|~` behind the query: only lines that match." },
    ],
    answers: { 200: "`{streams: [{labels, entries: [{ts, line}]}], stats}`." },
    errors: { ...queryErrors, 400: `${queryErrors[400]}; a metric query` },
    example: { params: { query: app }, status: 200, contains: '"streams":' },
  },
  format_query: {
    group: "Query",
    says: "The query, written well.",
    tenant: "none",
    params: [logql],
    answers: { 200: "`{status, data: text}`." },
    errors: { 400: '`{"status":"invalid-query","error":text}`' },
    example: { params: { query: '{app=  "shop"}|="paid"' }, status: 200, contains: "|=" },
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;

function volumeDocs(says: string, kind: string, more: readonly ParamDocs[]): EndpointDocs {
  return {
    group: "Explore",
    says,
    tenant: "many",
    params: [
      selector,
      ...lastHour,
      { ...limit, says: "Most series of an answer; 0 is 100." },
      ...more,
      {
        name: "targetLabels",
        type: "names",
        fallback: "those of the query",
        says: "Labels to group by.",
      },
      {
        name: "aggregateBy",
        type: "text",
        values: ["series", "labels"],
        fallback: "series",
        says: "Whether values of labels make a group, or only their names.",
      },
    ],
    answers: { 200: `An envelope with a \`${kind}\`, largest first.` },
    errors: { 404: "`volume_enabled` is off for the tenant" },
    example: { params: { query: app, limit: "5" }, status: 200, contains: '"resultType":' },
    differs: "`start` and `end` have defaults; too many series are 400, not 500",
  };
}

function fieldsDocs(
  says: string,
  more: readonly ParamDocs[],
  variables: Readonly<Record<string, string>>,
): EndpointDocs {
  return {
    group: "Explore",
    says,
    tenant: "many",
    params: [
      ...more,
      { ...logql, says: "A log query." },
      ...lastHour,
      step,
      { name: "line_limit", type: "integer", fallback: "100", says: "Lines of the sample." },
      {
        name: "limit",
        type: "integer",
        fallback: "1000",
        says: "Most of an answer; `field_limit` as well.",
      },
    ],
    answers: { 200: "`{fields: [...], limit}` or `{values: [text], limit}`, or `{}`." },
    errors: queryErrors,
    example: { variables, params: { query: app }, status: 200, contains: "{" },
  };
}
