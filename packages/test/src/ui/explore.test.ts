import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import {
  ask,
  editor,
  expectFewElements,
  held,
  open,
  rows,
  scrollUntil,
  untilCount,
} from "../testing/ui/page.js";
import { emptySite, fill, push } from "../testing/ui/site.js";

const lines = 20_000;
/** One page of lines. */
const pageLines = 1000;
const maxRequests = 6;
let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  await fill(site, lines);
});

afterAll(async () => {
  await closeBrowser();
  await removeFolders();
});

const url = () => site.url;
describe("explore", () => {
  inBrowser("opens with a query that has lines", url, async (page) => {
    await page.goto("");
    await untilCount(page, "1,000 newest of 20,000");
    await page
      .locator("#problem")
      .filter({ hasText: /Holds .* read / })
      .waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/explore");
    expect(await editor(page).inputValue()).toMatch(/^\{\w+=~"\.\+"\}$/);
    await expectFewElements(page);
  });

  inBrowser("shows the first line after few requests", url, async (page) => {
    await page.goto(`ui/explore?q=${encodeURIComponent('{app="web"}')}&from=now-1h&to=now`);
    await rows(page).first().waitFor();
    // By the browser's clock: what began before the lines were there, the page itself included.
    const asked = await page.evaluate<string[]>(`(() => {
      const all = performance.getEntriesByType("resource");
      const lines = all.find(({ name }) => /query_range\\?query=%7B/.test(name));
      const early = all.filter(({ startTime }) => startTime <= lines.responseEnd);
      return [location.href, ...early.map(({ name }) => name)];
    })()`);
    expect(asked.length > maxRequests ? asked : []).toEqual([]);
  });

  inBrowser("runs what is typed, and writes it into the address", url, async (page) => {
    await open(page, '{app="web"}');
    await ask(page, '{app="payments"} |= "timeout" | json');
    await untilCount(page, /1,000 newest of 1,\d\d\d$/);
    await rows(page).first().filter({ hasText: "timeout while calling bank" }).waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe('{app="payments"} |= "timeout" | json');
    await page.goBack();
    await untilCount(page, "of 5,000");
    expect(await editor(page).inputValue()).toBe('{app="web"}');
  });

  inBrowser(
    "names the place of an error, and keeps the lines",
    url,
    async (page) => {
      await open(page, '{app="web"}');
      await ask(page, 'sum(rat({app="web"}[1m]))');
      await page
        .locator("#problem")
        .filter({ hasText: /no such function/ })
        .waitFor();
      expect(await editor(page).getAttribute("aria-invalid")).toBe("true");
      expect(await rows(page).count()).toBeGreaterThan(10);
      // In the turn of the click: a frame later an event of the text area may have put the old text back.
      await page.getByRole("button", { name: /rate/ }).first().focus();
      const text = await page.evaluate(`(async () => {
        document.activeElement.click();
        await Promise.resolve();
        return document.querySelector("#query").value;
      })()`);
      expect(text).toBe('sum(rate({app="web"}[1m]))');
    },
    { expects: /400/ },
  );

  inBrowser("loads more lines while one scrolls, and holds few elements", url, async (page) => {
    await open(page, '{env="prod"}');
    expect(await held(page)).toBe(pageLines);
    for (let want = 2 * pageLines; want <= 4 * pageLines; want += pageLines) {
      await scrollUntil(page, want);
      await expectFewElements(page);
    }
    const shown = await rows(page).evaluateAll((all) =>
      all.map((row) => [Number(row.getAttribute("aria-rowindex")), row.firstChild?.textContent]),
    );
    const times = shown.sort(([a], [b]) => Number(a) - Number(b)).map(([, time]) => time);
    expect(times).toEqual([...times].sort().reverse());
  });

  inBrowser("counts the values of a field exactly, and filters by one", url, async (page) => {
    await open(page, '{app="web"}');
    await page
      .locator("aside.fields")
      .getByRole("button", { name: /status/ })
      .click();
    await page.getByRole("button", { name: "Only status 500" }).click();
    await until(async () => /status\s*=\s*(500|"500")/.test(await editor(page).inputValue()));
    // Lines of the app that are JSON, with every eleventh number.
    await untilCount(page, /^30[0-9]/);
  });

  inBrowser("works with keys alone", url, async (page) => {
    await open(page, '{app="web"}');
    await page.keyboard.press("/");
    await page.keyboard.press("Control+A");
    await page.keyboard.type('{app="api"}');
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.waitForURL(/api/);
    await rows(page).first().waitFor();
    await page.locator(".list").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const detail = page.getByRole("tab", { name: "Context" });
    await detail.waitFor();
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
  });
});

describe("hostile values of a label", () => {
  const values = [
    'say "hi"',
    "back\\slash\\\\",
    '{a="b"} |= `c`',
    "first\nsecond",
    "it's $& .* [x",
  ];

  inBrowser("are clicked into a query and out again", url, async (page) => {
    const ns = `${Date.now()}000000`;
    const streams = values.map((odd, n) => ({
      stream: { group: "odd", odd },
      values: [[ns, `line ${n}`] as const],
    }));
    await push(site, streams);
    const panel = page.locator("aside.fields");
    for (const [n, value] of values.entries()) {
      await open(page, '{group="odd"}', { open: "odd" });
      await untilCount(page, "5 newest of 5");
      await panel.getByRole("button", { name: `Only odd ${value}`, exact: true }).click();
      await untilCount(page, "1 newest of 1");
      await rows(page)
        .filter({ hasText: `line ${n}` })
        .first()
        .waitFor();
      // The chip of the value takes it out again.
      await page
        .locator(".chip")
        .filter({ hasText: "odd" })
        .last()
        .getByRole("button")
        .last()
        .click();
      await untilCount(page, "5 newest of 5");
      expect(await editor(page).inputValue()).toBe('{group="odd"}');
      await panel.getByRole("button", { name: `Not odd ${value}`, exact: true }).click();
      await untilCount(page, "4 newest of 4");
      const gone = rows(page).filter({ hasText: `line ${n}` });
      await until(async () => (await gone.count()) === 0);
    }
  });
});

describe("hostile lines", () => {
  const hostile = [
    '<img src="http://evil.example/x" onerror="alert(1)"><script>alert(2)</script>',
    "\u001b[31mred\u001b[0m \u0000\u0007 \u202Eright to left\u202C",
    `long ${"x".repeat(250_000)}`,
    JSON.stringify(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`f${i}`, i]))),
    'a"b\\c{d}\nsecond line\n\tat stack (file.js:1:2)',
  ];

  inBrowser("are text", url, async (page) => {
    const nowNs = BigInt(Date.now()) * 1_000_000n;
    const values = hostile.map((line, i) => [String(nowNs + BigInt(i)), line] as const);
    await push(site, [{ stream: { hostile: 'q"uo\\te{}' }, values }]);
    await open(page, '{hostile=~".+"}');
    await untilCount(page, "5");
    expect(await page.locator(".list img, .list script, .list b").count()).toBe(0);
    expect(await page.locator(".list").textContent()).toContain("<script>alert(2)</script>");
    for (let i = 0; i < hostile.length; i++) {
      await rows(page).nth(i).click();
      await page.getByRole("tab", { name: "Context" }).waitFor();
      await expectFewElements(page);
    }
  });
});
