import { randomQueryTexts } from "@skald/logql/testing/query-texts";
import { type Random, seededRandom } from "@skald/testkit";
import { pick } from "./data.js";

/** A call of the API: its path and parameters. */
export interface Asked {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
}

/** One query in this many is anything that the grammar allows; the others find something. */
const anyQueryEvery = 4;
const secondNs = 1_000_000_000n;

/** Random calls over the last `spanMs` before `endMs`: the same for the same seed. */
export function randomQueries(
  seed: number,
  count: number,
  range: { readonly endMs: number; readonly spanMs: number },
): Asked[] {
  const random = seededRandom(seed);
  const wild = randomQueryTexts(seed, Math.ceil(count / anyQueryEvery));
  return Array.from({ length: count }, (_, i) => {
    if (i % anyQueryEvery === 0) return asked(random, wild[i / anyQueryEvery] as string, range);
    if (random(12) === 0) return metadataCall(random, range);
    const query = random(2) === 0 ? logQuery(random) : metricQuery(random, 0);
    return asked(random, query, range);
  });
}

function asked(
  random: Random,
  query: string,
  { endMs, spanMs }: { readonly endMs: number; readonly spanMs: number },
): Asked {
  const endNs = BigInt(endMs - random(spanMs >> 1)) * 1_000_000n + BigInt(random(2));
  if (random(3) === 0) {
    return {
      path: "/loki/api/v1/query",
      params: { query, time: String(endNs), limit: String(1 + random(500)) },
    };
  }
  const startNs = endNs - BigInt(1 + random(spanMs)) * 1_000_000n;
  const params = {
    query,
    start: String(startNs),
    end: String(endNs),
    direction: pick(random, ["forward", "backward"]),
    limit: String(pick(random, [1, 10, 100, 1000, 5000])),
    step: String(Number((endNs - startNs) / secondNs) / (1 + random(20)) + 1),
  };
  return { path: "/loki/api/v1/query_range", params };
}

function metadataCall(
  random: Random,
  { endMs, spanMs }: { readonly endMs: number; readonly spanMs: number },
): Asked {
  const times = { start: `${endMs - spanMs}000000`, end: `${endMs - random(spanMs >> 1)}000000` };
  switch (random(3)) {
    case 0:
      return { path: "/loki/api/v1/labels", params: times };
    case 1: {
      const name = pick(random, ["app", "env", "level", "pod", "none"]);
      return {
        path: `/loki/api/v1/label/${name}/values`,
        params: { ...times, query: selector(random) },
      };
    }
    default:
      return { path: "/loki/api/v1/series", params: { ...times, "match[]": selector(random) } };
  }
}

function selector(random: Random): string {
  return pick(random, [
    '{app="api"}',
    '{app=~"api|web"}',
    '{app!="api", pod=~".+"}',
    '{env="prod"}',
    '{app=~".+", env=""}',
    '{app="error", level!="info"}',
    '{pod=~"web-.*"}',
    '{app=~".+"}',
    '{app="none"}',
  ]);
}

function logQuery(random: Random): string {
  return selector(random) + stages(random, random(4));
}

function stages(random: Random, count: number): string {
  return Array.from({ length: count }, () => ` ${stage(random)}`).join("");
}

function stage(random: Random): string {
  switch (random(8)) {
    case 0:
      return pick(random, [
        '|= "error"',
        '!= "GET"',
        '|~ "(?i)ERR|x[0-9]"',
        '|> "<_> status=<_>"',
        '|= ip("10.0.1.0/24")',
        '|= "full" or "tick"',
        '!~ "^$"',
      ]);
    case 1:
    case 2:
      return pick(random, [
        "| json",
        "| logfmt",
        "| json | logfmt",
        '| json b="a.b[0]", s="status"',
        "| logfmt --strict",
        '| logfmt d="dur", a',
        "| unpack",
      ]);
    case 3:
      return pick(random, [
        '| pattern `<ip> - "<method> <path>" <status> <size>`',
        "| regexp `(?P<ip>\\d+\\.\\d+\\.\\d+\\.\\d+)`",
        "| decolorize",
      ]);
    case 4:
      return pick(random, [
        '| level="error"',
        '| level=~"err.*|warn"',
        "| status >= 300",
        "| dur > 100ms",
        "| bytes < 2MB",
        "| count > 50 and level != `info`",
        '| trace="t7" or status=200',
        '| __error__=""',
        '| ip=ip("10.0.0.0/16")',
      ]);
    case 5:
      return pick(random, [
        "| line_format `{{.method}} {{.path}} {{.status | default 0}}`",
        "| line_format `{{__timestamp__ | unixEpoch}} {{ToUpper .level}}`",
        "| line_format `{{.dur}}{{__line__ | trunc 7}}`",
      ]);
    case 6:
      return pick(random, [
        "| label_format level=method",
        "| label_format new=`{{.status}}x`, old=app",
        "| drop pod, level",
        '| keep app, level, status=~"2.*"',
        "| drop __error__, __error_details__",
      ]);
    default:
      return pick(random, ["| detected_level != `debug`", "| trace != ``", '| _x="x1"']);
  }
}

function metricQuery(random: Random, depth: number): string {
  const range = pick(random, ["30s", "5m", "1h", "6h"]);
  const offset = random(5) === 0 ? " offset 10m" : "";
  switch (depth > 2 ? random(3) : random(7)) {
    case 0:
    case 1: {
      const op = pick(random, ["count_over_time", "rate", "bytes_rate", "bytes_over_time"]);
      return `${op}(${logQuery(random)} [${range}]${offset})`;
    }
    case 2:
      return unwrapped(random, `[${range}]${offset}`);
    case 3:
    case 4: {
      const op = pick(random, [
        "sum",
        "avg",
        "max",
        "min",
        "count",
        "stddev",
        "topk",
        "bottomk",
        "sort",
      ]);
      const by =
        op === "sort"
          ? ""
          : pick(random, ["", " by (app)", " by (level, env)", " without (pod)", " by (status)"]);
      const parameter = op.endsWith("k") ? `${1 + random(4)}, ` : "";
      return `${op}${by}(${parameter}${metricQuery(random, depth + 1)})`;
    }
    case 5: {
      const op = pick(random, [
        "+",
        "-",
        "*",
        "/",
        "%",
        ">",
        ">= bool",
        "and",
        "or",
        "unless",
        "== on (app)",
        "/ ignoring (pod)",
      ]);
      const right = random(2) === 0 ? metricQuery(random, depth + 1) : String(random(50) / 4);
      return `(${metricQuery(random, depth + 1)}) ${op} (${right})`;
    }
    default:
      return pick(random, [
        `label_replace(${metricQuery(random, depth + 1)}, "app", "x-$1", "app", "(.*)")`,
        `absent_over_time(${logQuery(random)} [${range}])`,
        `sum(${metricQuery(random, depth + 1)}) or vector(0)`,
      ]);
  }
}

function unwrapped(random: Random, range: string): string {
  const unwrap = pick(random, ["count", "status", "duration(dur)", "bytes(bytes)", "n"]);
  const op = pick(random, [
    "sum",
    "avg",
    "max",
    "min",
    "stddev",
    "stdvar",
    "first",
    "last",
    "quantile",
    "rate",
  ]);
  const name = op === "rate" ? "rate" : `${op}_over_time`;
  const parameter = op === "quantile" ? `${random(101) / 100}, ` : "";
  const by = ["sum", "rate"].includes(op)
    ? ""
    : pick(random, ["", " by (app)", " by (level)", " without (pod, trace)"]);
  const parser = pick(random, ["| json", "| logfmt", "| json | logfmt"]);
  const clean = random(4) === 0 ? "" : ' | __error__=""';
  return `${name}(${parameter}${selector(random)} ${parser} | unwrap ${unwrap}${clean} ${range})${by}`;
}
