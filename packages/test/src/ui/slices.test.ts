import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Page, Route } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  await fill(site, 5000);
});

afterAll(async () => {
  await closeBrowser();
  await removeFolders();
});

const url = () => site.url;

/**
 * Lets the server say that a query reads much, and has as many lines as its text has characters, so that the page shows of which query
 * it knows this; and hold what is asked of the whole hour back until nobody waits.
 */
async function makeLong(page: Page, bytes: number, asked: number[]): Promise<void> {
  await page.route(/api\/v1\/explain/, async (route) => {
    const answer = await route.fetch();
    const { parts, ...rest } = (await answer.json()) as { parts: object[] };
    const { length } = new URL(route.request().url()).searchParams.get("query") ?? "";
    const told = parts.map((part) => ({ ...part, bytesToRead: bytes, entries: length }));
    await route.fulfill({ json: { ...rest, parts: told, exact: true } });
  });
  await page.route(/query_range/, (route: Route) => {
    const params = new URL(route.request().url()).searchParams;
    const ns = BigInt(params.get("end") ?? 0) - BigInt(params.get("start") ?? 0);
    const seconds = Number(ns / 1_000_000_000n);
    asked.push(seconds);
    return seconds > 3000 ? undefined : route.continue();
  });
}

describe("a long query", () => {
  inBrowser("is ended and asked in slices, the newest first", url, async (page) => {
    const asked: number[] = [];
    await makeLong(page, 500e6, asked);
    const query = encodeURIComponent('{app="web"} |= "timeout"');
    const ended = page.waitForEvent("requestfailed", (one) => one.url().includes("query_range"));
    await page.goto(`/ui/explore?q=${query}&from=now-1h&to=now`);
    await ended;
    await page.locator(".list .row:visible").first().waitFor();
    await page
      .locator("#count")
      .filter({ hasText: /newest of \d+$/ })
      .waitFor();
    // Lines of a sixteenth of the hour, then of twice as much; counts by level in quarters.
    expect(asked.filter((seconds) => seconds === 225)).toHaveLength(1);
    expect(asked.filter((seconds) => seconds === 450)).toHaveLength(1);
    expect(asked.filter((seconds) => seconds > 800 && seconds < 900).length).toBeGreaterThan(2);
  });

  inBrowser("of more than 1 GB is asked again before it runs", url, async (page) => {
    const query = encodeURIComponent('{app="web"}');
    await page.goto(`/ui/explore?q=${query}&from=now-1h&to=now`);
    await page.locator(".list .row:visible").first().waitFor();
    await makeLong(page, 4.1e9, []);
    await page.unroute(/query_range/);
    for (const text of ["timeout", "bank"]) {
      const asked = `{app="web"} |= "${text}"`;
      await page.locator("#query").fill(asked);
      const known = page.locator("#problem").filter({ hasText: `${asked.length} lines` });
      await known.waitFor();
    }
    await page.keyboard.press("Control+Enter");
    await page.locator("#problem").filter({ hasText: "About 4.1 GB" }).waitFor();
    await page.keyboard.press("Control+Enter");
    await page.waitForURL(/bank/);
  });
});

describe("a metric query", () => {
  inBrowser("has its values at the end as bars", url, async (page) => {
    const query = encodeURIComponent('sum by (app) (count_over_time({env="prod"}[1h]))');
    await page.goto(`/ui/explore?q=${query}&from=now-1h&to=now`);
    await page.getByRole("button", { name: "Instant" }).click();
    const rows = page.locator(".instant tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(4);
    expect(new URL(page.url()).searchParams.get("view")).toBe("instant");
    await page.getByRole("button", { name: "Bars", exact: true }).click();
    await page.locator(".plot").waitFor();
  });
});
