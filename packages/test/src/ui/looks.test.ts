import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { accessibilityFaults, closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, open, rows, untilCount } from "../testing/ui/page.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;
let empty: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  [site, empty] = await Promise.all([emptySite(), emptySite()]);
  await fill(site, 1000);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of [site, empty]) await server?.kill("SIGTERM");
  await removeFolders();
});

const heading = (page: Page, name: string | RegExp) =>
  page.getByRole("heading", { level: 1, name }).waitFor();

/** Each screen, and how to see that it is there. */
const screens: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  Explore: (page) => open(page, '{app="web"} | json', { open: "app" }),
  "an open line": async (page) => {
    await open(page, '{app="web"} | json');
    await rows(page).nth(2).click();
    await page.getByRole("tab", { name: "Context" }).waitFor();
  },
  chart: async (page) => {
    await page.goto(addressOf('sum by (app) (count_over_time({env="prod"}[1m]))'));
    await page.locator(".u-over").waitFor();
  },
  Streams: async (page) => {
    await page.goto("ui/streams");
    await heading(page, "Streams");
  },
  Alerts: async (page) => {
    await page.goto("ui/alerts");
    await heading(page, "Alerts");
  },
  System: async (page) => {
    await page.goto("ui/system");
    await heading(page, "System");
  },
};

const sizes = [
  [1440, 900],
  [760, 900],
  [390, 844],
  [320, 640],
] as const;

async function expectNoFault(page: Page): Promise<void> {
  expect(await accessibilityFaults(page)).toEqual([]);
  const wide = await page.locator("html").evaluate(({ scrollWidth }) => scrollWidth);
  expect(wide).toBeLessThanOrEqual(page.viewportSize()!.width);
}

describe("no fault of accessibility, and nothing wider than the window", () => {
  for (const colorScheme of ["dark", "light"] as const) {
    for (const [name, show] of Object.entries(screens))
      inBrowser(
        `${name}, ${colorScheme}`,
        () => site.url,
        async (page) => {
          for (const [width, height] of sizes) {
            await page.setViewportSize({ width, height });
            await show(page);
            await expectNoFault(page);
          }
        },
        { context: { colorScheme } },
      );
    inBrowser(
      `Welcome, ${colorScheme}`,
      () => empty.url,
      async (page) => {
        for (const [width, height] of sizes) {
          await page.setViewportSize({ width, height });
          await page.goto("");
          await heading(page, /No logs yet/);
          await expectNoFault(page);
        }
      },
      { context: { colorScheme } },
    );
  }
});

describe("at 320 px", () => {
  inBrowser(
    "the button for downloads is in view, whatever the levels and counts take",
    () => site.url,
    async (page) => {
      await open(page, '{env="prod"}');
      await untilCount(page, " of ");
      const { x, width } = (await page.locator("#download").boundingBox())!;
      expect(x + width).toBeLessThanOrEqual(320);
    },
    { context: { viewport: { width: 320, height: 640 } } },
  );
});

describe("at 390 px", () => {
  inBrowser(
    "the count of lines is there as a whole, with the levels above it",
    () => site.url,
    async (page) => {
      await open(page, '{env="prod"}');
      await untilCount(page, "1,000 newest of 1,000");
      const [wide, room] = await page
        .locator("#count")
        .evaluate(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth] as const);
      expect(wide).toBeLessThanOrEqual(room);
      expect(await page.locator(".legend").getByText("error").isVisible()).toBe(true);
    },
    { context: { viewport: { width: 390, height: 844 } } },
  );
});
