import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { editor, untilCount } from "../testing/ui/page.js";
import { emptySite, push } from "../testing/ui/site.js";

let site: TestServer;
const minuteMs = 60_000;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  const at = (minutesAgo: number, n = 0) =>
    String(BigInt(Date.now() - minutesAgo * minuteMs) * 1_000_000n + BigInt(n));
  const lines = (count: number, minutesAgo: number, text = "x".repeat(100)) =>
    Array.from({ length: count }, (_, n) => [at(minutesAgo, n), `${text} ${n}`] as const);
  const ofApp = (app: string) => ({ app, env: "prod" });
  // Lines of a stream come in order.
  await push(site, [
    { stream: ofApp("grows"), values: lines(100, 90) },
    { stream: ofApp("silent"), values: lines(50, 90) },
  ]);
  await push(site, [
    { stream: ofApp("grows"), values: lines(300, 10) },
    { stream: ofApp("steady"), values: lines(20, 10) },
    { stream: { ...ofApp("once"), request: "r1" }, values: lines(1, 5) },
  ]);
  const many = Array.from({ length: 1200 }, (_, n) => ({
    stream: { user: `u${n}` },
    values: lines(2, 3),
  }));
  await push(site, many);
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
const labels = (page: Page) => page.locator("main > table > tbody > tr");
const cellsOf = (page: Page, name: string) =>
  labels(page)
    .filter({ has: page.getByRole("button", { name, exact: false }) })
    .first();

describe("streams", () => {
  inBrowser("show which labels and values make much, grow or fell silent", url, async (page) => {
    await page.goto("ui/streams");
    const app = cellsOf(page, "app");
    await app.getByText(/^\+\d+ %$/).waitFor();
    expect(await cellsOf(page, "user").textContent()).toContain("over 1000 values");
    await page.getByRole("button", { name: "by values" }).click();
    await until(async () => /user/.test((await labels(page).first().textContent()) ?? ""));
    await page.getByRole("button", { name: "▸ app" }).click();
    // The row of the open label holds them all.
    const value = (name: string) =>
      page
        .getByRole("row")
        .filter({ has: page.getByRole("button", { name, exact: true }) })
        .last();
    await value("grows")
      .getByText(/^\+\d+ %$/)
      .waitFor();
    await value("steady").getByText("new").waitFor();
    await value("silent").getByText("silent now").waitFor();
    await value("grows").getByRole("button", { name: "grows" }).click();
    await untilCount(page, "300 newest of 300");
    expect(await editor(page).inputValue()).toBe('{app="grows"}');
  });

  inBrowser("of one line are listed, and open in Explore", url, async (page) => {
    await page.goto("ui/streams");
    const single = page.getByRole("region", { name: "Streams of one line" });
    const only = single.getByRole("button", { name: /request="r1"/ });
    await only.waitFor();
    expect(await single.getByRole("button").count()).toBe(1);
    await only.click();
    await untilCount(page, "1 newest of 1");
  });

  inBrowser("are of the range of the address, also of an absolute one", url, async (page) => {
    const to = BigInt(Date.now()) * 1_000_000n;
    const from = to - 3_600_000_000_000n;
    await page.goto(`ui/streams?from=${from}&to=${to}`);
    await cellsOf(page, "app").waitFor();
    const chosen = page.getByRole("combobox", { name: "Time range" }).locator("option:checked");
    expect(await chosen.textContent()).toMatch(/^\d{4}-.* – /);
  });
});
