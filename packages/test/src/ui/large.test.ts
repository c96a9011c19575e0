import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import {
  addressOf,
  count,
  editor,
  expectFewElements,
  held,
  open,
  rows,
  scrollUntil,
  untilCount,
} from "../testing/ui/page.js";
import { emptySite, fill, push } from "../testing/ui/site.js";

const lines = 100_000;
const streams = 50_000;
const series = 1000;
/** Lines of a live view: what comes in a second, and what a page holds. */
const second = 20_000;
const liveLines = 50_000;
const rowPx = 22;
/** Rows beside those in view, to scroll to. */
const spareRows = 12;
let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite([
    ...["-distributor.ingestion-rate-limit-mb=1000", "-distributor.ingestion-burst-size-mb=1000"],
    ...["-ingester.per-stream-rate-limit=1GB", "-ingester.per-stream-rate-limit-burst=1GB"],
    ...["-ingester.max-global-streams-per-user=0", `-querier.max-query-series=${series}`],
  ]);
  await fill(site, lines);
  const ns = `${Date.now()}000000`;
  const batch = 5000;
  for (let from = 0; from < streams; from += batch)
    await push(
      site,
      Array.from({ length: batch }, (_, n) => ({
        stream: { many: from + n < series ? "few" : "all", id: `id-${from + n}` },
        values: [[ns, `line of ${from + n}`] as const],
      })),
    );
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;

/** Counts how often rows are filled from now on: each time a row says which one it is. */
async function countFills(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`(() => {
    globalThis.fills = 0;
    new MutationObserver((changes) => { globalThis.fills += changes.length; }).observe(
      document.querySelector(".list"), { subtree: true, attributeFilter: ["aria-rowindex"] });
  })()`);
  return () => page.evaluate("globalThis.fills");
}

/** Counts how often elements of rows come or go, or are moved, from now on. */
async function countMoves(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(`(() => {
    globalThis.moves = 0;
    new MutationObserver((changes) => { globalThis.moves += changes.length; }).observe(
      document.querySelector(".list .window"), { subtree: true, childList: true });
  })()`);
  return () => page.evaluate("globalThis.moves");
}

/** Resolves when the page has drawn what it was told to. */
const drawn = (page: Page) =>
  page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");

describe("100,000 lines", () => {
  inBrowser(
    "are held by few elements, and a scroll fills what comes in view",
    url,
    async (page) => {
      await open(page, '{env="prod"}');
      await scrollUntil(page, lines);
      await untilCount(page, "100,000 newest of 100,000");
      await expectFewElements(page);
      const list = page.locator(".list");
      await list.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2));
      await drawn(page);
      const onScreen =
        Math.ceil((await list.evaluate((element) => element.clientHeight)) / rowPx) + 1;
      const fills = await countFills(page);
      for (let screen = 1; screen <= 20; screen++) {
        const before = await fills();
        await list.evaluate((element) => element.scrollBy(0, element.clientHeight));
        await drawn(page);
        const filled = (await fills()) - before;
        expect(filled).toBeGreaterThan(0);
        expect(filled).toBeLessThanOrEqual(onScreen + spareRows);
      }
      await expectFewElements(page);
      expect(await rows(page).count()).toBeLessThanOrEqual(onScreen + spareRows);
      // Lines take the elements of lines of the same form as they are; every twelfth has the same form and stream.
      const jump = (line: number) =>
        list.evaluate((element, top) => element.scrollTo(0, top), line * rowPx);
      await jump(12_000);
      await drawn(page);
      const moves = await countMoves(page);
      await jump(60_000);
      await drawn(page);
      expect(await moves()).toBe(0);
    },
  );
});

describe("an answer of 50 MB", () => {
  inBrowser("is shown in rows that say how much they leave out", url, async (page) => {
    const chars = 50_000;
    const batch = 100;
    for (let from = 0; from < 1000; from += batch) {
      const ns = BigInt(Date.now()) * 1_000_000n;
      const values = Array.from({ length: batch }, (_, n) => {
        return [String(ns + BigInt(n)), `wide ${from + n} ${"word ".repeat(chars / 5)}`] as const;
      });
      await push(site, [{ stream: { app: "wide" }, values }]);
    }
    await open(page, '{app="wide"}');
    await untilCount(page, "1,000 newest of 1,000");
    await rows(page).first().filter({ hasText: "wide 999 word" }).waitFor();
    await expectFewElements(page);
    const shown = await rows(page).first().textContent();
    expect(shown!.length).toBeLessThan(3000);
    expect(shown).toContain("… 49 KB, open");
    await page.locator(".list").evaluate((list) => list.scrollTo(0, list.scrollHeight));
    await rows(page).filter({ hasText: "wide 0 word" }).click();
    await page.getByRole("note").filter({ hasText: "wide 0 word" }).waitFor();
    await expectFewElements(page);
  });
});

describe("50,000 values of a label", () => {
  inBrowser("are counted, offered and chosen from", url, async (page) => {
    await open(page, '{many=~".+"}');
    const panel = page.locator("aside.fields");
    await panel.getByRole("button", { name: /^\W*L?\W*id\s*50,?000/ }).click();
    await panel.locator(".value, .bad, .note-row").first().waitFor();
    await editor(page).click();
    await editor(page).fill("");
    await page.keyboard.type('{id="id-4999');
    const offers = page.getByRole("option");
    await offers.filter({ hasText: "id-49999" }).waitFor();
    await expectFewElements(page);
    await offers.filter({ hasText: "id-49999" }).click();
    await page.keyboard.type("}");
    await page.keyboard.press("Enter");
    await untilCount(page, "1 newest of 1");
    await rows(page).filter({ hasText: "line of 49999" }).waitFor();
  });
});

describe("1,000 series", () => {
  inBrowser("are drawn as the largest, and the rest is counted", url, async (page) => {
    await page.goto(addressOf('sum by (id) (count_over_time({many="few"}[1m]))'));
    await page.getByText("1000 series").waitFor();
    await page.getByText(/950/).waitFor();
    await expectFewElements(page);
  });
});

describe("a tail at 20,000 lines a second", () => {
  inBrowser("counts each line that waits or was dropped, and goes on", url, async (page) => {
    await page.goto(addressOf('{app="flood"}'));
    await page.locator("#live").click();
    await untilCount(page, "lines/s");
    const flood = async (batch: number) => {
      const ns = BigInt(Date.now()) * 1_000_000n;
      const values = Array.from({ length: second }, (_, n) => {
        return [String(ns + BigInt(n)), `flood ${batch} ${n}`] as const;
      });
      await push(site, [{ stream: { app: "flood" }, values }]);
    };
    const say = (line: string) =>
      push(site, [{ stream: { app: "flood" }, values: [[`${Date.now()}000000`, line]] }]);
    // Its line says that the connection is there.
    await say("the start");
    await rows(page).filter({ hasText: "the start" }).waitFor();
    // Nothing shows counts of another answer.
    expect(await page.locator(".histogram, .legend b").count()).toBe(0);
    await flood(0);
    await until(async () => (await held(page)) === second + 1);
    await rows(page).first().click();
    await untilCount(page, "paused");
    const seconds = 5;
    for (let batch = 1; batch <= seconds; batch++) await flood(batch);
    const numberIn = async (pattern: RegExp) => {
      const said = pattern.exec((await count(page).textContent()) ?? "")?.[1] ?? "0";
      return Number(said.replaceAll(",", ""));
    };
    const known = async () =>
      (await numberIn(/paused, ([\d,]+) new/)) + (await numberIn(/([\d,]+) dropped/));
    await until(async () => (await known()) >= seconds * second);
    expect(await known()).toBe(seconds * second);
    expect(await numberIn(/([\d,]+) dropped/)).toBeGreaterThanOrEqual(seconds * second - liveLines);
    expect(await held(page)).toBe(second + 1);
    await expectFewElements(page);
    await page.locator("#resume").click();
    await say("the end");
    await rows(page).filter({ hasText: "the end" }).waitFor();
    await expectFewElements(page);
    // All rows move up; each is filled once.
    const fills = await countFills(page);
    await say("after the end");
    await rows(page).filter({ hasText: "after the end" }).waitFor();
    expect(await fills()).toBeLessThanOrEqual(await page.locator(".list .row").count());
  });

  inBrowser("ends at the end where lines wrap", url, async (page) => {
    await page.goto(addressOf('{app="long"}'));
    await page.getByRole("button", { name: "Wrap lines" }).click();
    await page.locator("#live").click();
    await untilCount(page, "lines/s");
    const ns = BigInt(Date.now()) * 1_000_000n;
    const values = Array.from({ length: 500 }, (_, n) => {
      return [String(ns + BigInt(n)), `${n} ${"word ".repeat(200)}`] as const;
    });
    await push(site, [{ stream: { app: "long" }, values }]);
    await until(async () => (await held(page)) === values.length);
    await rows(page)
      .filter({ hasText: /499 word/ })
      .waitFor();
    const left = `(() => {
      const { scrollTop, clientHeight, scrollHeight } = document.querySelector(".list");
      return scrollHeight - clientHeight - scrollTop;
    })()`;
    await until(async () => Number(await page.evaluate(left)) < 1);
  });
});
