// The cases, by the names under which docs/limits.md lists them. `run(times, signal)` makes so many calls at once; each resolves
// with an answer of `client.mjs`. `needs` names the applications of `data.mjs` that it reads.
const dayMs = 86_400_000;
const MiB = 1024 * 1024;
/** When a client that leaves does. */
const leavesAfterMs = 3000;

/** All cases for a client; those of tenant A, while the probes are tenant B. */
export function casesOf(client) {
  const ask = (query, params, options) => client.query(client.tenantA, query, params, options);
  const queries = (name, what, times, needs, query, params) => ({
    name,
    what,
    times,
    needs,
    run: (count, signal) => atOnce(count, () => ask(query, params, { signal })),
  });
  const lastHour = { since: "1h", step: "60s" };
  const rows = (limit) => ({ since: "2h", limit: String(limit) });
  const instant = { instant: true };
  const heavy = 'sum by (p) (rate({app="samples"} | logfmt | v > 500 [5m]))';
  const repeat = '{app="rows"} | line_format "{{ repeat 4000000 `x` }}"';
  const byN = 'sum by (n) (count_over_time({app="rows"} | json n="n" [2h]))';
  return [
    queries(
      "B1",
      "40 nested label_replace that double a value",
      1,
      ["rows"],
      doublings(40),
      instant,
    ),
    queries(
      "B2a",
      "topk(100000) of 200k series",
      1,
      ["rows"],
      `count(topk(100000, ${byN}))`,
      instant,
    ),
    queries("B2b", "the same at 7 points", 1, ["rows"], `count(topk(100000, ${byN}))`, {
      since: "1h",
      step: "600s",
    }),
    queries(
      "B3",
      "avg by of avg_over_time, no grouping inside",
      10,
      ["rows"],
      'avg by (method) (avg_over_time({app="rows"} | json | unwrap latency_ms [5m]))',
      lastHour,
    ),
    queries("B4", "line_format repeat 4000000, limit 5000", 1, ["rows"], repeat, rows(5000)),
    {
      name: "B5",
      what: "the same with a filter; the clients leave after 3 s",
      times: 4,
      needs: ["rows"],
      run: (count) =>
        atOnce(count, () =>
          ask(`${repeat} |= "y"`, rows(5000), { signal: AbortSignal.timeout(leavesAfterMs) }),
        ),
    },
    queries("B6", "50 heavy queries", 50, ["samples"], heavy, lastHour),
    {
      name: "B7",
      what: "the same, and pushes of 2.5 MiB meanwhile",
      times: 50,
      needs: ["samples"],
      run: (count, signal) =>
        withBigPushes(
          client,
          atOnce(count, () => ask(heavy, lastHour, { signal })),
        ),
    },
    queries(
      "B8",
      "json and line_format, 5000 rows",
      50,
      ["rows"],
      '{app="rows"} | json | line_format "{{.method}} {{.path}} {{.msg}}"',
      rows(5000),
    ),
    queries("B9", "answers of 195 MB", 30, ["big"], '{app="big"}', rows(5000)),
    queries(
      "B10a",
      "quantile over 2 M samples",
      1,
      ["samples"],
      'quantile_over_time(0.99, {app="samples"} | logfmt v="v" | unwrap v [2h])',
      instant,
    ),
    queries("B10b", "sum by 200k values", 1, ["rows"], `count(${byN})`, instant),
    queries(
      "B10c",
      "join of 100k with 100k series",
      1,
      ["rows"],
      `count(${half(byN)} * on (n) ${half(byN)})`,
      instant,
    ),
    {
      name: "B11",
      what: "a form of 9.9 MB of +",
      times: 1,
      needs: [],
      run: (count, signal) =>
        atOnce(count, () =>
          client.post(client.tenantA, "/loki/api/v1/query", `query=${"+".repeat(9_900_000)}`, {
            type: "application/x-www-form-urlencoded",
            signal,
          }),
        ),
    },
    queries(
      "B12a",
      "10,000 texts of |= or",
      1,
      ["rows"],
      `{app="rows"} |= ${numbered(10_000, (i) => `"zq${i}"`)}`,
      rows(100),
    ),
    queries(
      "B12b",
      "1400 terms of label or",
      1,
      ["rows"],
      `{app="rows"} | json | ${numbered(1400, (i) => `path="/none/${i}"`)}`,
      rows(100),
    ),
    pushes("F1a", "a push with rows on 20,000 days", () => daysBody(20_000)),
    pushes("F1b", "a push with rows on 400 days", () => daysBody(400)),
    {
      name: "F4a",
      what: "a push with 60,000 metadata names, and a flush",
      times: 1,
      needs: [],
      run: (count, signal) => atOnce(count, (i) => pushNames(client, i, signal)),
    },
    {
      name: "F4b",
      what: "the last 100 lines of such pushes",
      times: 1,
      needs: [],
      run: (count, signal) => {
        const pushed = pushNames(client, 0, signal);
        const last = () => ask('{app="names"}', rows(100), { signal });
        return atOnce(count, () => pushed.then(last));
      },
    },
  ];

  function pushes(name, what, body) {
    const streams = body();
    return {
      name,
      what,
      times: 1,
      needs: [],
      run: (count, signal) => atOnce(count, () => client.push(client.tenantA, streams, { signal })),
    };
  }
}

function atOnce(count, call) {
  return Array.from({ length: count }, (_, i) => call(i));
}

function doublings(count) {
  let query = 'label_replace(sum(count_over_time({app="rows"}[2h])), "x", "aaaaaaaa", "", "")';
  for (let i = 0; i < count; i++) query = `label_replace(${query}, "x", "$1$1", "x", "(.*)")`;
  return query;
}

function half(query) {
  return query.replace('n="n"', 'n="n" | n < 100000');
}

function numbered(count, text) {
  return Array.from({ length: count }, (_, i) => text(i)).join(" or ");
}

function daysBody(days) {
  const now = Date.now();
  const values = Array.from({ length: days }, (_, i) => [
    `${BigInt(now - i * dayMs) * 1_000_000n}`,
    `day ${i}`,
  ]);
  return [{ stream: { app: "days" }, values: values.reverse() }];
}

/** 600 rows with 100 names each, then a flush, which is part of the call. */
async function pushNames(client, times, signal) {
  const now = BigInt(Date.now() - times) * 1_000_000n;
  const values = Array.from({ length: 600 }, (_, row) => {
    const pairs = Array.from({ length: 100 }, (_, i) => [
      `name_of_metadata_${row * 100 + i}`,
      `value ${i}`,
    ]);
    return [String(now + BigInt(row)), `row ${row} ${times}`, Object.fromEntries(pairs)];
  });
  const pushed = await client.push(client.tenantA, [{ stream: { app: "names" }, values }], {
    signal,
  });
  if (pushed.status !== 204) return pushed;
  const flushed = await client.post(client.tenantA, "/flush", "", { signal });
  return { ...flushed, ms: pushed.ms + flushed.ms, extra: `push ${Math.round(pushed.ms)}` };
}

/** The calls of a case, while pushes of 2.5 MiB of tenant B follow each other; what those took goes with the answers. */
function withBigPushes(client, calls) {
  let isOver = false;
  const all = Promise.all(calls).finally(() => {
    isOver = true;
  });
  const pushing = pushBig(client, () => isOver);
  return [
    ...calls.slice(0, -1),
    Promise.all([all, pushing]).then(([answers, extra]) => ({ ...answers.at(-1), extra })),
  ];
}

async function pushBig(client, isOver) {
  const times = [];
  const line = "0123456789abcdef".repeat(64);
  while (!isOver()) {
    const now = BigInt(Date.now()) * 1_000_000n;
    const values = Array.from({ length: (2.5 * MiB) / line.length }, (_, i) => [
      String(now + BigInt(i)),
      line,
    ]);
    const { ms, status } = await client.push(client.tenantB, [{ stream: { app: "bulk" }, values }]);
    times.push(status === 204 ? ms : Number.POSITIVE_INFINITY);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  times.sort((a, b) => a - b);
  const p99 = times[Math.min(times.length - 1, Math.floor(times.length * 0.99))];
  return `2.5 MiB pushes ${Math.round(times[times.length >> 1])} / ${Math.round(p99)}`;
}
