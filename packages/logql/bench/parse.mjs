/*
 * Times the parser and the printers: `node packages/logql/bench/parse.mjs`. On one core of a shared 2-core machine:
 * 200 bytes without a regex 5 us, with one 50 us (compiling it), tokens alone 3.5 us, printing 3 us.
 */
import { tokenize } from "../dist/syntax/lexer.js";
import { parseQuery } from "../dist/syntax/parser.js";
import { formatQuery, printQuery } from "../dist/syntax/print.js";

const plain =
  'sum by (app, env) (rate({cluster="prod-eu-west", namespace="checkout"} |= "timeout" != "healthz" | json ' +
  '| status >= 500 and duration > 1.5s or level="error" | line_format "{{.msg}}" [5m] offset 1h)) / 60';
const regex = plain.replace('namespace="checkout"', 'namespace=~"checkout|cart.*"');
const filters = `{app="a"} | ${Array.from({ length: 1000 }, (_, i) => `id="${i}"`).join(" or ")}`;
const expr = parseQuery(plain);

const rows = {};
measure("tokenize", plain, () => tokenize(plain));
measure("parse", plain, () => parseQuery(plain));
measure("parse, one regex", regex, () => parseQuery(regex));
measure("parse, 1000 filters", filters, () => parseQuery(filters));
measure("print", plain, () => printQuery(expr));
measure("format", plain, () => formatQuery(expr));
console.table(rows);

function measure(name, text, run) {
  const best = Math.min(...Array.from({ length: 5 }, () => sample(run)));
  rows[name] = { bytes: text.length, us: Math.round(best * 10) / 10 };
}

/** us per run, over 100 ms or so. */
function sample(run) {
  let rounds = 0;
  const start = performance.now();
  while (performance.now() - start < 100) {
    for (let i = 0; i < 10; i++) run();
    rounds += 10;
  }
  return ((performance.now() - start) * 1000) / rounds;
}
