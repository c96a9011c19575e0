import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { ask, editor, open, rows, strip, untilCount } from "../testing/ui/page.js";
import { TestProxy } from "../testing/ui/proxy.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;
let proxy: TestProxy;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  proxy = await new TestProxy(site.port).open();
  await fill(site, 4000);
});

afterAll(async () => {
  await closeBrowser();
  await proxy?.cut();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;

interface Refusal {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body: string;
}

/** Answers all queries with an error, as a proxy or a server does; resolves with what ends it. */
async function refuse(page: Page, refusal: Refusal): Promise<() => Promise<void>> {
  await page.route("**/loki/api/v1/**", (route) => route.fulfill(refusal));
  return () => page.unroute("**/loki/api/v1/**");
}

/** A page with an answer, and a next query that is refused. */
async function openRefused(page: Page, refusal: Refusal): Promise<() => Promise<void>> {
  await open(page, '{app="web"}');
  await untilCount(page, "of 1,000");
  const end = await refuse(page, refusal);
  await ask(page, '{app="api"}');
  return end;
}

/** The old answer is there, with the query that is to be answered. */
async function expectKept(page: Page): Promise<void> {
  expect(await rows(page).count()).toBeGreaterThan(10);
  expect(await rows(page).first().textContent()).toContain("web");
  expect(await editor(page).inputValue()).toBe('{app="api"}');
}

async function untilRecovered(page: Page): Promise<void> {
  await strip(page).waitFor({ state: "detached" });
  await rows(page).filter({ hasText: "api" }).first().waitFor();
  await untilCount(page, "of 1,000");
}

const html = "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>";
const passing = [
  ["429", { status: 429, headers: { "retry-after": "1" }, body: "too many" }, "Many queries wait"],
  ["502 of a proxy", { status: 502, body: html }, "does not answer (502)"],
  ["503", { status: 503, body: "starting" }, "does not answer (503)"],
] as const;

describe("an error that passes", () => {
  for (const [name, refusal, says] of passing)
    inBrowser(
      `is said, and asked again until it is over: ${name}`,
      url,
      async (page) => {
        const end = await openRefused(page, refusal);
        await strip(page).filter({ hasText: says }).waitFor();
        await strip(page).getByText("Trying again.").waitFor();
        await strip(page).getByRole("button", { name: "Cancel" }).waitFor();
        expect(await strip(page).textContent()).not.toContain("<html");
        await expectKept(page);
        await end();
        await untilRecovered(page);
      },
      { expects: new RegExp(`status of ${refusal.status}`) },
    );

  inBrowser(
    "is given up by Cancel",
    url,
    async (page) => {
      await openRefused(page, { status: 503, body: "starting" });
      await strip(page).getByRole("button", { name: "Cancel" }).click();
      await strip(page).waitFor({ state: "detached" });
      await expectKept(page);
    },
    { expects: /status of 503/ },
  );

  inBrowser(
    "is said of a network that is gone, also of a screen that was not open yet",
    () => proxy.url,
    async (page) => {
      await open(page, '{app="web"}');
      await untilCount(page, "of 1,000");
      await proxy.cut();
      await ask(page, '{app="api"}');
      await strip(page).filter({ hasText: "The server does not answer. Trying again." }).waitFor();
      await expectKept(page);
      await page.getByRole("navigation").getByRole("link", { name: "Streams" }).click();
      await page.getByText("does not give this part of the page").waitFor();
      await proxy.open();
      await page.getByRole("heading", { level: 1, name: "Streams" }).waitFor();
      await page.goBack();
      await untilRecovered(page);
    },
    { expects: /ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET/ },
  );

  inBrowser(
    "is mended by loading the page again, once, where the browser does not ask for a part twice",
    url,
    async (page) => {
      await open(page, '{app="web"}');
      let loads = 0;
      page.on("load", () => loads++);
      await page.route("**/streams-*.js", (route) =>
        loads < 1 ? route.abort() : route.continue(),
      );
      await page.route("**/alerts-*.js", (route) => route.abort());
      const link = (name: string) => page.getByRole("navigation").getByRole("link", { name });
      await link("Streams").click();
      await page.getByRole("heading", { level: 1, name: "Streams" }).waitFor();
      expect(loads).toBe(1);
      await link("Alerts").click();
      await page.getByText("does not give this part of the page").waitFor();
      await page.waitForTimeout(4000);
      expect(loads).toBe(1);
    },
    { expects: /ERR_FAILED/ },
  );
});

const lasting = [
  ["401", { status: 401, body: "no org id" }, "asks for a tenant"],
  ["403", { status: 403, body: "not for you" }, "You may not read tenant"],
  ["504", { status: 504, body: "the query timed out" }, "longer than the server allows"],
] as const;

describe("an error that stays", () => {
  for (const [name, refusal, says] of lasting)
    inBrowser(
      `is said, and nothing is lost: ${name}`,
      url,
      async (page) => {
        const end = await openRefused(page, refusal);
        await strip(page).filter({ hasText: says }).waitFor();
        expect(await strip(page).textContent()).toContain(refusal.body);
        await expectKept(page);
        await end();
        await page.keyboard.press("Control+Enter");
        await untilRecovered(page);
      },
      { expects: new RegExp(`status of ${refusal.status}`) },
    );

  inBrowser(
    "is said before there is any line",
    url,
    async (page) => {
      const end = await refuse(page, { status: 503, body: "starting" });
      await page.goto("");
      await strip(page).filter({ hasText: "does not answer (503)" }).waitFor();
      await end();
      await untilCount(page, "of 4,000");
    },
    { expects: /status of 503/ },
  );
});

describe("nothing found", () => {
  inBrowser("says what a wider range, or one filter less, would have", url, async (page) => {
    await open(page, '{app="web"}');
    await ask(page, '{app="web"} |= "timeout" |= "never written"');
    await page.getByRole("heading", { name: /^No line of 1 stream in/ }).waitFor();
    await page.getByRole("button", { name: /^Look at 24 hours\s*1 k lines/ }).waitFor();
    const without = page.getByRole("button", { name: /^Without \|= "never written"\s*\d+ lines/ });
    await without.click();
    await untilCount(page, /^(\d+) newest of \1$/);
    expect(await editor(page).inputValue()).toBe('{app="web"} |= "timeout"');
  });
});
