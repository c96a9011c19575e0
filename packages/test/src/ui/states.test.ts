import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, ask, editor, open, rows, strip, untilCount } from "../testing/ui/page.js";
import { emptySite, fill, push } from "../testing/ui/site.js";

let site: TestServer;
/** A server without lines and rules. */
let empty: TestServer;
const hourMs = 3_600_000;

beforeAll(async () => {
  if (!hasBrowser) return;
  [site, empty] = await Promise.all([emptySite(), emptySite()]);
  await fill(site, 4000);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of [site, empty]) await server?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
const run = (page: Page) => page.locator("#run");

describe("a query that runs", () => {
  inBrowser("keeps the old answer in sight, and is ended by Cancel", url, async (page) => {
    await open(page, '{app="web"}');
    await untilCount(page, "of 1,000");
    // The server has the query, and answers nothing.
    await page.route(/query_range/, () => undefined);
    const ended = page.waitForEvent("requestfailed", (one) => one.url().includes("query_range"));
    await ask(page, '{app="api"}');
    await page.getByRole("progressbar", { name: "The query runs" }).waitFor();
    expect(await rows(page).first().textContent()).toContain("web");
    expect(await run(page).textContent()).toBe("Cancel");
    await run(page).click();
    expect((await ended).failure()?.errorText).toMatch(/ABORTED/);
    await page.getByRole("progressbar").waitFor({ state: "detached" });
    expect(await run(page).textContent()).toBe("Run");
    expect(await rows(page).first().textContent()).toContain("web");
    expect(await editor(page).inputValue()).toBe('{app="api"}');
  });
});

describe("a query that takes longer than the server allows", () => {
  inBrowser(
    "is asked of a narrower range in one click",
    url,
    async (page) => {
      await open(page, '{app="web"}');
      await untilCount(page, "of 1,000");
      const body = "the query timed out";
      await page.route("**/query_range*", (route) => route.fulfill({ status: 504, body }));
      await ask(page, '{app="api"}');
      await strip(page).filter({ hasText: "longer than the server allows" }).waitFor();
      await page.unroute("**/query_range*");
      await strip(page).getByRole("button", { name: "Only the newest quarter" }).click();
      await strip(page).waitFor({ state: "detached" });
      await rows(page).filter({ hasText: "api" }).first().waitFor();
      const { searchParams } = new URL(page.url());
      const ns = BigInt(searchParams.get("to")!) - BigInt(searchParams.get("from")!);
      expect(Number(ns / 1_000_000n)).toBe(hourMs / 4);
    },
    { expects: /status of 504/ },
  );
});

describe("an answer that is not whole", () => {
  inBrowser("says what is missing", url, async (page) => {
    await page.route(/query_range\?query=%7B/, async (route) => {
      const answer = await route.fetch();
      const warnings = ["Lines of 05:00 to 06:00 are missing: a store does not answer."];
      await route.fulfill({ json: { ...(await answer.json()), warnings } });
    });
    await open(page, '{app="web"}');
    await page.getByText("Not all is here. Lines of 05:00 to 06:00 are missing").waitFor();
    await page.unroute(/query_range\?query=%7B/);
    await ask(page, '{app="api"}');
    await rows(page).filter({ hasText: "api" }).first().waitFor();
    await strip(page).waitFor({ state: "detached" });
  });
});

describe("a query that is not finished", () => {
  inBrowser("is no error: what may follow is said, and the answer stays", url, async (page) => {
    await open(page, '{app="web"}');
    await editor(page).click();
    await page.keyboard.press("End");
    await page.keyboard.type(" | ");
    await page
      .locator("#problem")
      .filter({ hasText: /^Goes on: a parser/ })
      .waitFor();
    await page.getByRole("option", { name: "json" }).waitFor();
    expect(await editor(page).getAttribute("aria-invalid")).not.toBe("true");
    expect(await rows(page).count()).toBeGreaterThan(10);
    await page.keyboard.press("Escape");
    await page.keyboard.type("js on |");
    await page.keyboard.press("Home");
    await page
      .locator("#problem")
      .filter({ hasText: /^col \d+: / })
      .waitFor();
    expect(await editor(page).getAttribute("aria-invalid")).toBe("true");
  });

  inBrowser("comes back from the history, and is formatted by a key", url, async (page) => {
    await open(page, '{app="web"}');
    await ask(page, '{app="api"}|="timeout"|json');
    await untilCount(page, /^(\d+) newest of \1$/);
    await page.keyboard.press("Alt+f");
    await until(
      async () => (await editor(page).inputValue()) === '{app="api"} |= "timeout" | json',
    );
    await editor(page).fill("");
    await page.keyboard.press("Control+ArrowUp");
    await page.keyboard.press("Control+ArrowUp");
    await until(async () => (await editor(page).inputValue()) === '{app="web"}');
    await page.keyboard.press("Control+ArrowDown");
    await until(async () => (await editor(page).inputValue()).includes("timeout"));
  });
});

describe("a clock of the browser that jumps", () => {
  inBrowser("leaves a page that can be asked", url, async (page) => {
    await open(page, '{app="web"}');
    const now = Date.now();
    await page.clock.setSystemTime(now - 48 * hourMs);
    await ask(page, '{app="api"}');
    await page.getByRole("heading", { name: "No stream has these labels in this range" }).waitFor();
    await page.clock.setSystemTime(now + 48 * hourMs);
    await ask(page, '{app="web"} | json');
    await page.getByRole("button", { name: "Look at 7 days" }).click();
    await untilCount(page, "of 1,000");
  });

  for (const [name, hours] of [
    ["ahead of", 3],
    ["behind", -3],
  ] as const)
    inBrowser(`${name} that of the server shows live lines`, url, async (page) => {
      await page.clock.setSystemTime(Date.now() + hours * hourMs);
      await page.goto(addressOf(`{app="clock${hours}"}`));
      await page.locator("#live").click();
      await untilCount(page, "lines/s");
      for (const text of ["one", "two"]) {
        const values = [[`${Date.now()}000000`, text] as const];
        await push(site, [{ stream: { app: `clock${hours}` }, values }]);
        await rows(page).filter({ hasText: text }).waitFor();
      }
    });
});

describe("a field that leads elsewhere", () => {
  inBrowser("is a link of the site, with the value in it", url, async (page) => {
    await page.route("**/ui/config.json", async (route) => {
      const answer = await route.fetch();
      const links = [{ field: "user", url: "/users/{value}?from=logs" }];
      await route.fulfill({ json: { ...(await answer.json()), links } });
    });
    await open(page, '{app="web"} | json | user="u12"');
    await rows(page).first().click();
    const link = page.getByRole("link", { name: "u12 ↗" });
    await link.waitFor();
    expect(await link.getAttribute("href")).toBe("/users/u12?from=logs");
    expect(await link.getAttribute("rel")).toContain("noopener");
  });
});

describe("a screen beside Explore", () => {
  inBrowser(
    "says that it has nothing to show",
    () => empty.url,
    async (page) => {
      await page.goto("ui/streams");
      await page.getByText("No streams in this range.").waitFor();
      await page.goto("ui/alerts");
      await page.getByText("No rules yet.").waitFor();
      await page.goto("ui/system");
      await page.getByText("Off. The key compactor.retention_enabled").waitFor();
    },
  );

  inBrowser(
    "says what the server does not allow, and comes back",
    url,
    async (page) => {
      const api = /\/(?:loki|prometheus)\/api\/|\/services$/;
      const refuse = () =>
        page.route(api, (one) => one.fulfill({ status: 403, body: "not yours" }));
      for (const [screen, shown] of [
        ["streams", "app"],
        ["alerts", "No rules yet"],
        ["system", "ingester: running"],
      ] as const) {
        await refuse();
        await page.goto(`ui/${screen}`);
        await page.getByText("not yours").first().waitFor();
        await page.unroute(api);
        await page.reload();
        await page.getByText(shown).first().waitFor();
      }
    },
    { expects: /status of 403/ },
  );
});
