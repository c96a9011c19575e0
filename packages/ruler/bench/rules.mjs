// What rules cost: 1000 rules that are evaluated each minute, on a server with data that ends now; prints the CPU of its process in a
// minute without and with them, and how they did. Each looks at one of the server's streams with a label `app`, half of them at counts of the last five
// minutes, half for a word in the lines of the last minute. The server must have `pid` and take rules without a tenant.
// Run: node packages/ruler/bench/rules.mjs URL PID [rules]
// On 1 GB of an hour in 199 streams, 2 cores: see bench/README.md.
import { readFileSync } from "node:fs";

const [url, pid, count = "1000"] = process.argv.slice(2);
const rules = Number(count);
const seconds = 60;
const rulesPerGroup = 10;
const ticksPerSecond = 100;
const namespace = "bench";
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** CPU seconds of the server so far. */
function cpuSeconds() {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

async function measure() {
  const before = cpuSeconds();
  await wait(seconds * 1000);
  return cpuSeconds() - before;
}

async function call(path, options) {
  const answer = await fetch(`${url}${path}`, options);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

function selectorOf(labels) {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return `{${pairs.join(", ")}}`;
}

function ruleOf(number, selectors) {
  const selector = selectors[number % selectors.length];
  return Math.floor(number / selectors.length) % 2 === 0
    ? { record: `lines:rate5m:${number}`, expr: `sum(rate(${selector}[5m]))` }
    : { alert: `Errors${number}`, expr: `sum(count_over_time(${selector} |= "error" [1m])) > 1e6` };
}

const matched = new URLSearchParams({ "match[]": '{app=~".+"}' });
const { data } = await (await call(`/loki/api/v1/series?${matched}`)).json();
const selectors = data.map(selectorOf);
const idle = await measure();
for (let from = 0; from < rules; from += rulesPerGroup) {
  const some = Array.from({ length: rulesPerGroup }, (_, i) => ruleOf(from + i, selectors));
  const body = JSON.stringify({ name: `g${from}`, interval: "1m", rules: some });
  await call(`/loki/api/v1/rules/${namespace}`, { method: "POST", body });
}
// All are known after the next poll, and evaluated once after a minute more.
await wait(2 * seconds * 1000);
const busy = await measure();
const text = await (await call("/metrics")).text();
const sum = (name) =>
  [...text.matchAll(new RegExp(`^loki_prometheus_${name}\\{.*\\} (\\d+)$`, "gm"))].reduce(
    (all, [, n]) => all + Number(n),
    0,
  );
console.table({
  rules,
  streams: selectors.length,
  "evaluated in all": sum("rule_evaluations_total"),
  failed: sum("rule_evaluation_failures_total"),
  missed: sum("rule_group_iterations_missed_total"),
  "CPU s a minute without": idle.toFixed(2),
  "CPU s a minute with": busy.toFixed(2),
  "share of a core": `${(((busy - idle) / seconds) * 100).toFixed(1)} %`,
});
await call(`/loki/api/v1/rules/${namespace}`, { method: "DELETE" });
