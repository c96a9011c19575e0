import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { accessibilityFaults, closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, editor, open, rows, untilCount } from "../testing/ui/page.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite(["-pattern-ingester.enabled=true"]);
  await fill(site, 4000);
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
const more = (page: Page) => page.getByRole("button", { name: "More", exact: true });
const item = (page: Page, name: string) => page.getByRole("button", { name });
const clipboard = (page: Page) =>
  page.evaluate("navigator.clipboard.readText()") as Promise<string>;
const param = (page: Page, name: string) => new URL(page.url()).searchParams.get(name);

describe("the menu of the view", () => {
  inBrowser("folds chips and chart, also for the next visit", url, async (page) => {
    await open(page, '{app="web"}');
    const chips = page.getByRole("region", { name: "Parts of the query" });
    const chart = page.getByRole("img", { name: /lines, most at/ });
    await chips.waitFor();
    await chart.waitFor();
    const before = await rows(page).count();
    await more(page).click();
    await item(page, "Fold the parts of the query").click();
    await item(page, "Fold the chart").click();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await chips.waitFor({ state: "detached" });
    await chart.waitFor({ state: "detached" });
    await until(async () => (await rows(page).count()) > before);
    await page.reload();
    await rows(page).first().waitFor();
    expect((await chips.count()) + (await chart.count())).toBe(0);
  });

  inBrowser("turns the order, shows raw lines and local time", url, async (page) => {
    await open(page, '{app="web"}');
    await untilCount(page, "newest of 1,000");
    const first = await rows(page).first().textContent();
    await more(page).click();
    await item(page, "Oldest first").click();
    await untilCount(page, "oldest of 1,000");
    expect(await rows(page).first().textContent()).not.toBe(first);
    await more(page).click();
    await item(page, "Raw lines").click();
    await page.keyboard.press("Escape");
    await rows(page).filter({ hasText: '{"level":' }).first().waitFor();
    const zone = page.locator("#time .zone");
    expect(await zone.textContent()).toBe("UTC");
    await more(page).click();
    await item(page, "Times in local time").click();
    await until(async () => (await zone.textContent()) === "local");
  });

  inBrowser("copies selected lines in other forms, and filters by them", url, async (page) => {
    await open(page, '{app="web"}');
    await rows(page).nth(1).click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+J");
    await more(page).click();
    await page.getByText("2 lines", { exact: true }).waitFor();
    await item(page, "Copy with times").click();
    await page.getByText("Copied 2 lines").waitFor();
    const timed = (await clipboard(page)).split("\n");
    expect(timed).toHaveLength(2);
    for (const line of timed) expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z \S/);
    await more(page).click();
    await item(page, "Copy as JSON").click();
    await until(async () => (await clipboard(page)).startsWith("{"));
    const found = (await clipboard(page)).split("\n").map((one) => JSON.parse(one));
    expect(found.map(({ labels }) => labels.app)).toEqual(["web", "web"]);
    await more(page).click();
    await item(page, "Only lines with these texts").click();
    await untilCount(page, "2 newest of 2");
    expect(await editor(page).inputValue()).toMatch(/ \|= .* or /);
  });

  inBrowser("has the counts of the chart as a table, whose times zoom", url, async (page) => {
    await open(page, '{app="web"}');
    await more(page).click();
    await item(page, "Counts as a table").click();
    const dialog = page.getByRole("dialog", { name: "Lines over time" });
    await dialog.getByText(/^1,000 lines, by parts of/).waitFor();
    const cells = dialog.getByRole("row");
    const sums = await cells.evaluateAll((all) =>
      all.slice(1).map((row) => Number(row.lastElementChild?.textContent)),
    );
    expect(sums.reduce((sum, one) => sum + one, 0)).toBe(1000);
    expect(await accessibilityFaults(page)).toEqual([]);
    await cells.nth(3).getByRole("button").click();
    await untilCount(page, `of ${sums[2]}`);
    await page.locator(".list").focus();
    await page.keyboard.press("z");
    await untilCount(page, "of 1,000");
  });
});

describe("the chart of lines over time", () => {
  inBrowser("zooms by a drag, and back by a double click", url, async (page) => {
    await open(page, '{app="web"}');
    await untilCount(page, "of 1,000");
    const box = (await page.getByRole("img", { name: /lines, most at/ }).boundingBox())!;
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width * 0.7, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, y, { steps: 5 });
    await page.mouse.up();
    await until(() => /^\d{19}$/.test(param(page, "from") ?? ""));
    await untilCount(page, /of [1-9]\d\d?$/);
    await page.mouse.dblclick(box.x + box.width / 2, y);
    await untilCount(page, "of 1,000");
  });

  inBrowser("zooms out by a double click while counts are on their way", url, async (page) => {
    await open(page, '{app="web"}');
    await untilCount(page, "of 1,000");
    const chart = page.getByRole("img", { name: /lines, most at/ });
    const box = (await chart.boundingBox())!;
    const [x, y] = [box.x + box.width * 0.7, box.y + box.height / 2];
    let letCountsCome = () => {};
    const held = new Promise<void>((resolve) => {
      letCountsCome = resolve;
    });
    await page.route(/query_range\?query=sum/, (one) => held.then(() => one.continue()));
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + box.width / 10, y, { steps: 5 });
    await page.mouse.up();
    await untilCount(page, /of [1-9]\d\d?$/);
    expect(await chart.count()).toBe(0);
    await page.mouse.dblclick(x, y);
    letCountsCome();
    await untilCount(page, "of 1,000");
  });

  inBrowser("hides a level in list and chart, or filters by it", url, async (page) => {
    await open(page, '{app="web"}');
    const level = page
      .getByRole("toolbar", { name: "View" })
      .getByRole("button", { name: /^info/ });
    await level.click();
    await until(async () => (await rows(page).filter({ hasText: /INF/ }).count()) === 0);
    await level.click();
    await rows(page).filter({ hasText: /INF/ }).first().waitFor();
    await level.click({ modifiers: ["Alt"] });
    await until(async () => /detected_level="info"/.test(await editor(page).inputValue()));
    await until(async () => (await rows(page).filter({ hasText: /ERR/ }).count()) === 0);
  });
});

describe("an open line", () => {
  inBrowser("has its context in both directions, with more of it", url, async (page) => {
    await open(page, '{app="web"} |= "timeout"');
    await rows(page).nth(20).click();
    await page.getByRole("button", { name: "Show context" }).click();
    const context = page.locator(".context ol");
    const self = context.locator(".self");
    await self.waitFor();
    const places = () =>
      context
        .locator("li")
        .evaluateAll((all) => [all.findIndex((one) => one.className === "self"), all.length]);
    // 25 lines and a button on each side.
    await until(async () => (await places()).join() === "26,53");
    const times = await context.locator(".when").allTextContents();
    expect(times[0]).toMatch(/^\+/);
    expect(times.at(-1)).toMatch(/^−/);
    await page.getByRole("button", { name: "25 more before" }).click();
    await until(async () => (await places()).join() === "26,78");
    await page.getByRole("button", { name: "25 more after" }).click();
    await until(async () => (await places()).join() === "51,103");
    // Lines around that the query does not find.
    await context.getByText("order stored").first().waitFor();
    await page.getByRole("searchbox", { name: "Find in context" }).fill("stored");
    await context.locator("mark").first().waitFor();
    await page.getByRole("button", { name: "pod=web-0" }).click();
    await until(async () => (await places()).join() === "51,103");
  });

  inBrowser("has lines like it, counted, and filters by their pattern", url, async (page) => {
    await open(page, '{app="web"} |= "timeout"');
    await rows(page).first().click();
    await page.getByRole("tab", { name: "Similar" }).click();
    await page.getByRole("heading", { name: /\d lines look like this/ }).waitFor();
    await page.getByRole("button", { name: "Only these" }).click();
    await until(async () => (await editor(page).inputValue()).includes("|>"));
    await rows(page).filter({ hasText: "timeout" }).first().waitFor();
  });

  inBrowser("is pinned above other answers", url, async (page) => {
    await open(page, '{app="web"} |= "timeout"');
    await page.locator(".list").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("p");
    const pins = page.getByRole("region", { name: "Pinned lines" });
    await pins.getByText("timeout").waitFor();
    await editor(page).fill('{app="api"} |= "stored"');
    await page.keyboard.press("Enter");
    await untilCount(page, /^(\d+) newest of \1$/);
    await pins.getByText("timeout").waitFor();
    await pins.getByRole("button", { name: "Unpin" }).click();
    await pins.waitFor({ state: "detached" });
  });
});

describe("patterns", () => {
  inBrowser("are counted, and filter in and out", url, async (page) => {
    await page.goto(addressOf('{app="web"}', { view: "patterns" }));
    const only = page.getByRole("button", { name: /^Only .*timeout/ }).first();
    await only.click();
    await until(async () => (await editor(page).inputValue()).includes("|>"));
    await page.keyboard.press("Escape");
    await page
      .getByRole("button", { name: /^Not .*timeout/ })
      .first()
      .click();
    await until(async () => (await editor(page).inputValue()).includes("!>"));
  });
});

describe("chips", () => {
  inBrowser("change, add and take out parts of the text", url, async (page) => {
    await open(page, '{app="web"} |= "timeout" # why');
    const chips = page.getByRole("region", { name: "Parts of the query" });
    await chips
      .getByRole("button", { name: /timeout/ })
      .first()
      .click();
    await page.getByRole("textbox", { name: "Part of the query" }).fill('|= "stored"');
    await page.keyboard.press("Enter");
    await until(async () => (await editor(page).inputValue()) === '{app="web"} |= "stored" # why');
    await chips.getByRole("button", { name: 'Remove |= "stored"' }).click();
    await until(async () => (await editor(page).inputValue()) === '{app="web"} # why');
    await untilCount(page, "of 1,000");
    await chips.getByRole("button", { name: "+ Filter" }).click();
    await page.locator(".menu").waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
  });
});
