import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, ask, editor, open, rows, untilCount } from "../testing/ui/page.js";
import { emptySite, fill, push } from "../testing/ui/site.js";

let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  await fill(site, 4000);
  // Only a longer range has these.
  const beforeNs = BigInt(Date.now() - 3 * 3_600_000) * 1_000_000n;
  const values = Array.from(
    { length: 100 },
    (_, n) => [String(beforeNs + BigInt(n)), `timeout ${n}`] as const,
  );
  await push(site, [{ stream: { app: "api" }, values }]);
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
const detail = (page: Page) => page.getByRole("region", { name: "Line" });

async function copiedLink(page: Page): Promise<string> {
  await page.getByText("Copied the link").waitFor();
  return page.evaluate("navigator.clipboard.readText()");
}

describe("a link", () => {
  inBrowser("to what is on the page has absolute times", url, async (page) => {
    await page.goto(addressOf('{app="web"} |= "timeout"', { view: "table", cols: "status,user" }));
    await untilCount(page, /newest of/);
    await page.keyboard.press("s");
    const link = await copiedLink(page);
    const params = new URL(link).searchParams;
    for (const name of ["from", "to"]) expect(params.get(name)).toMatch(/^\d{19}$/);
    expect(params.get("q")).toBe('{app="web"} |= "timeout"');
    expect([params.get("view"), params.get("cols")]).toEqual(["table", "status,user"]);
    // The address bar stays relative.
    expect(page.url()).not.toMatch(/from=\d/);
    const other = await page.context().newPage();
    await other.goto(link);
    await untilCount(other, /newest of/);
    await other.getByRole("columnheader", { name: "status" }).waitFor();
  });

  inBrowser("to one line opens it", url, async (page) => {
    await open(page, '{app="web"}');
    await rows(page).nth(7).click();
    await detail(page).getByRole("button", { name: "Link to line" }).click();
    const link = await copiedLink(page);
    const text = await detail(page).getByRole("note").textContent();
    const time = await detail(page).locator(".title b").textContent();
    const other = await page.context().newPage();
    await other.goto(link);
    await detail(other).getByRole("note").waitFor();
    expect(await detail(other).getByRole("note").textContent()).toBe(text);
    expect(await detail(other).locator(".title b").textContent()).toBe(time);
  });

  inBrowser("with parts that nobody knows is read as far as it can be", url, async (page) => {
    await page.goto("ui/explore?q=%7Bapp%3D%22web%22%7D&from=yesterday&view=graph&pane=2&tz=CET");
    await untilCount(page, "of 1,000");
    await page.goto("ui/nowhere?q=%7Bapp%3D%22api%22%7D");
    await untilCount(page, "of 1,000");
  });
});

describe("back and forward", () => {
  inBrowser("go from query to query, range to range and screen to screen", url, async (page) => {
    await open(page, '{app="web"}');
    await ask(page, '{app="api"} |= "timeout"');
    await untilCount(page, /of 33\d/);
    await page.locator(".list").focus();
    await page.keyboard.press("t");
    await page.getByRole("button", { name: "Last 24 hours", exact: true }).click();
    await untilCount(page, /of 43\d$/);
    await page.getByRole("navigation").getByRole("link", { name: "Streams" }).click();
    await page.getByRole("heading", { level: 1, name: "Streams" }).waitFor();
    await page.goBack();
    await untilCount(page, /of 43\d$/);
    await page.goBack();
    await untilCount(page, /of 33\d/);
    await page.goBack();
    await untilCount(page, "of 1,000");
    expect(await editor(page).inputValue()).toBe('{app="web"}');
    await page.goForward();
    await untilCount(page, /of 33\d/);
    expect(await editor(page).inputValue()).toBe('{app="api"} |= "timeout"');
    await page.goForward();
    await untilCount(page, /of 43\d$/);
    await page.goForward();
    await page.getByRole("heading", { level: 1, name: "Streams" }).waitFor();
  });

  inBrowser("leave a live view", url, async (page) => {
    await open(page, '{app="web"}');
    await ask(page, '{app="api"}');
    await page.locator("#live").click();
    await untilCount(page, "lines/s");
    await page.goBack();
    await untilCount(page, "of 1,000");
    expect(await page.locator("#live").getAttribute("aria-pressed")).toBe("false");
    await until(async () => (await editor(page).inputValue()) === '{app="web"}');
    await rows(page).filter({ hasText: "web" }).first().waitFor();
  });
});

describe("a browser that keeps nothing for the page", () => {
  inBrowser(
    "shows the page all the same",
    url,
    async (page) => {
      await page.goto("");
      await untilCount(page, "of 4,000");
      await page.keyboard.press("w");
      await page.keyboard.press("Control+s");
      await page.getByRole("dialog").getByRole("textbox").fill("mine");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Saved queries and history" }).click();
      await page.getByText("mine", { exact: true }).waitFor();
    },
    {
      prepare: `Object.defineProperty(window, "localStorage", {
        get() { throw new DOMException("forbidden", "SecurityError"); },
      })`,
    },
  );

  inBrowser(
    "has no room left: the page says nothing of it and goes on",
    url,
    async (page) => {
      await page.goto("");
      await untilCount(page, "of 4,000");
      await ask(page, '{app="api"}');
      await untilCount(page, "of 1,000");
    },
    {
      prepare: `Storage.prototype.setItem = () => {
        throw new DOMException("full", "QuotaExceededError");
      }`,
    },
  );
});

describe("two tabs", () => {
  inBrowser("have their own queries, and share what was saved", url, async (page) => {
    await open(page, '{app="web"}');
    const other = await page.context().newPage();
    await open(other, '{app="api"}');
    await page.keyboard.press("Control+s");
    await page.getByRole("dialog").getByRole("textbox").fill("of the web");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await other.keyboard.press("Control+s");
    await other.getByRole("dialog").getByRole("textbox").fill("of the api");
    await other.keyboard.press("Enter");
    await other.getByRole("dialog").waitFor({ state: "detached" });
    const third = await page.context().newPage();
    await open(third, '{app="web"}');
    await third.getByRole("button", { name: "Saved queries and history" }).click();
    await third.getByText("of the web", { exact: true }).waitFor();
    await third.getByText("of the api", { exact: true }).waitFor();
    expect(await editor(page).inputValue()).toBe('{app="web"}');
    expect(await editor(other).inputValue()).toBe('{app="api"}');
  });
});
