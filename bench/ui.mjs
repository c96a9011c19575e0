// What the web interface takes in a real Chromium: `node bench/ui.mjs [--lines 100000] [--rate 5000] [--url http://127.0.0.1:3100]`.
// Starts the built program with lines of its own, and prints how long the page takes until it is painted and until its first lines,
// the time of frames while 100,000 lines are scrolled, its heap, and the longest task at 5,000 live lines a second. With --url the
// first two are of that server and its last hour, such as one with the kit's data. Wall clock: run it on a quiet machine.
import { parseArgs } from "node:util";
import { withSite } from "../scripts/ui/site.mjs";

const { values: args } = parseArgs({
  options: {
    lines: { type: "string", default: "100000" },
    rate: { type: "string", default: "5000" },
    url: { type: "string" },
  },
});
const lines = Number(args.lines);
const rate = Number(args.rate);
const opens = 5;
const liveSeconds = 10;
const frames = 600;
const batchesPerSecond = 10;
const rows = [];
const note = (what, value, limit) => rows.push({ what, value, limit });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const flags = ["-distributor.ingestion-rate-limit-mb=1000", "-ingester.per-stream-rate-limit=1GB"];
await withSite(flags, async ({ url, browser }) => {
  await fill(url);
  await measureOpening(browser, args.url ?? url);
  const page = await openPage(browser, url);
  await measureScrolling(page);
  await measureLive(page, url);
});
console.table(rows);

async function push(url, values) {
  const body = JSON.stringify({ streams: [{ stream: { app: "bench" }, values }] });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
}

function line(n) {
  const level = n % 50 === 0 ? "error" : "info";
  return JSON.stringify({ level, msg: "request completed", status: 200, path: `/api/${n}`, n });
}

/** Lines of the last half hour. */
async function fill(url) {
  const startMs = Date.now() - 30 * 60_000;
  const batch = 5000;
  for (let from = 0; from < lines; from += batch) {
    const count = Math.min(batch, lines - from);
    const values = Array.from({ length: count }, (_, at) => {
      const ms = startMs + Math.floor(((from + at) * 30 * 60_000) / lines);
      return [`${ms}000000`, line(from + at)];
    });
    await push(url, values);
  }
}

async function openPage(browser, url) {
  const context = await browser.newContext({
    ...{ viewport: { width: 1440, height: 900 }, baseURL: `${url}/` },
  });
  return context.newPage();
}

/** From the request of the page to its first paint, and to its first line; each time in a new profile. */
async function measureOpening(browser, url) {
  const painted = [];
  const firstLines = [];
  for (let n = 0; n < opens; n++) {
    const page = await openPage(browser, url);
    await page.goto("ui/explore");
    await page.locator(".list .row:visible").first().waitFor();
    firstLines.push(await page.evaluate(() => performance.now()));
    painted.push(
      await page.evaluate(
        () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
      ),
    );
    await page.context().close();
  }
  note("painted, median ms", median(painted), 300);
  note("first lines, median ms", median(firstLines), 1000);
}

async function measureScrolling(page) {
  await page.goto("ui/explore?q=%7Bapp%3D%22bench%22%7D");
  const held = () => page.locator(".list").getAttribute("aria-rowcount").then(Number);
  await page.locator(".list .row:visible").first().waitFor();
  while ((await held()) < lines)
    await page.locator(".list").evaluate((list) => list.scrollTo(0, list.scrollHeight));
  const times = await page.evaluate(scrollAll, frames);
  note(`frames while scrolling ${lines} lines, p95 ms`, quantile(times, 0.95), 17);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  note(`heap with ${lines} lines, MB`, usedSize / 1e6, 120);
}

/** Scrolls by three screens a frame; the times between frames. Runs in the page. */
function scrollAll(count) {
  return new Promise((resolve) => {
    const list = document.querySelector(".list");
    const times = [];
    let before = performance.now();
    const next = (now) => {
      times.push(now - before);
      before = now;
      list.scrollTop = (list.scrollTop + 3 * list.clientHeight) % list.scrollHeight;
      if (times.length < count) requestAnimationFrame(next);
      else resolve(times.slice(1));
    };
    requestAnimationFrame(next);
  });
}

async function measureLive(page, url) {
  await page.locator("#live").click();
  await page.locator("#count").filter({ hasText: "lines/s" }).waitFor();
  await page.evaluate(() => {
    globalThis.longTasks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) globalThis.longTasks.push(duration);
    }).observe({ entryTypes: ["longtask"] });
  });
  for (let batch = 0; batch < liveSeconds * batchesPerSecond; batch++) {
    const startedAt = performance.now();
    const ns = BigInt(Date.now()) * 1_000_000n;
    const count = rate / batchesPerSecond;
    await push(
      url,
      Array.from({ length: count }, (_, n) => [String(ns + BigInt(n)), line(n)]),
    );
    await pause(Math.max(0, 1000 / batchesPerSecond - (performance.now() - startedAt)));
  }
  const tasks = await page.evaluate(() => globalThis.longTasks);
  // Shorter tasks than 50 ms are not reported at all.
  note(`tasks over 50 ms at ${rate} live lines/s`, tasks.length, 0);
  note("the longest of them, ms", Math.max(0, ...tasks), 50);
  const said = await page.locator("#count").textContent();
  note("lines dropped", Number(/([\d,]+) dropped/.exec(said)?.[1]?.replaceAll(",", "") ?? 0), 0);
}

function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

function median(values) {
  return quantile(values, 0.5);
}
