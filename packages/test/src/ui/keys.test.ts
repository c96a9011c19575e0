import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { editor, open, rows, untilCount } from "../testing/ui/page.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  await fill(site, 4000);
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
/** The keys of the design. */
const keys = [
  ...["?", "/", "F", "T", "L", "J", "K", "Enter", "Esc", "C", "+", "-", "P", "W", "R", "U", "O"],
  ...["Z", "D", "S", "1", "2", "3", "g e", "g s", "g a", "g y", "Ctrl+Enter", "Alt+F", "Ctrl+S"],
];
const current = (page: Page) => page.locator(".list .row.at");

describe("keys", () => {
  inBrowser("are all listed by ?", url, async (page) => {
    await open(page, '{app="web"}');
    await page.locator(".list").focus();
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    expect(await dialog.locator("kbd").allTextContents()).toEqual(expect.arrayContaining(keys));
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  inBrowser("do nothing while someone types", url, async (page) => {
    await open(page, '{app="web"}');
    const before = page.url();
    const typed = "?/ftljkcpwruozds123gsgagy+-";
    for (const name of ["Query", "Find a field"]) {
      const field = page.getByRole(name === "Query" ? "textbox" : "searchbox", { name });
      await field.fill("");
      await page.keyboard.type(typed);
      expect(await field.inputValue()).toBe(typed);
    }
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(page.url()).toBe(before);
    expect(await page.locator("#live").getAttribute("aria-pressed")).toBe("false");
    const wrap = page.getByRole("button", { name: "Wrap lines" });
    expect(await wrap.getAttribute("aria-pressed")).toBe("false");
  });

  inBrowser("lead from a query to a filter, and from screen to screen", url, async (page) => {
    await open(page, '{app="web"}');
    await page.locator(".list").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    await until(async () => (await current(page).getAttribute("aria-rowindex")) === "1");
    await page.keyboard.press("Enter");
    const detail = page.getByRole("region", { name: "Line" });
    await detail.waitFor();
    await page.keyboard.press("j");
    await until(async () => (await current(page).getAttribute("aria-rowindex")) === "2");
    const value = detail.getByRole("button", { name: /^Only level / });
    await value.focus();
    await page.keyboard.press("+");
    await until(async () => /level/.test(await editor(page).inputValue()));
    await page.locator(".list").focus();
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    await page.keyboard.press("2");
    await page.getByRole("columnheader").first().waitFor();
    await page.keyboard.press("1");
    await rows(page).first().waitFor();
    for (const [key, name] of [
      ["s", "Streams"],
      ["a", "Alerts"],
      ["y", "System"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
    await page.keyboard.press("g");
    await page.keyboard.press("e");
    await untilCount(page, /newest of/);
  });

  inBrowser("select lines and copy them", url, async (page) => {
    await open(page, '{app="web"}');
    await page.locator(".list").focus();
    for (const key of ["j", "Shift+J", "Shift+J", "Control+c"]) await page.keyboard.press(key);
    await page.getByText("Copied 3 lines").waitFor();
    const text = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(text.split("\n")).toHaveLength(3);
  });

  inBrowser(
    "are the list's again after Escape in a field, and after J on a button",
    url,
    async (page) => {
      await open(page, '{app="web"}');
      const focused = page.locator(".list:focus");
      for (const key of ["/", "f"]) {
        await page.keyboard.press(key);
        await page.locator("input:focus, textarea:focus").waitFor();
        await page.keyboard.press("Escape");
        await focused.waitFor();
      }
      await page.getByRole("button", { name: "Wrap lines" }).focus();
      await page.keyboard.press("j");
      await focused.waitFor();
      await page.keyboard.press("Enter");
      const tabs = page.getByRole("tablist", { name: "About the line" });
      await tabs.getByRole("tab", { name: "Fields" }).focus();
      await page.keyboard.press("ArrowRight");
      await tabs
        .getByRole("tab", { name: "JSON", selected: true })
        .or(tabs.getByRole("tab", { name: "Raw", selected: true }))
        .waitFor();
      await page.keyboard.press("Tab");
      expect(await tabs.locator(":focus").count()).toBe(0);
    },
  );

  inBrowser(
    "open and close the fields where the window is narrow",
    url,
    async (page) => {
      await open(page, '{app="web"}');
      const panel = page.locator("aside.fields");
      expect(await panel.isVisible()).toBe(false);
      await page.keyboard.press("f");
      await page.locator("#find-field:focus").waitFor();
      await page.keyboard.type("status");
      await page.keyboard.press("Escape");
      await panel.waitFor({ state: "hidden" });
      await page.keyboard.press("f");
      await panel.getByRole("button", { name: /status/ }).click();
      // A filter shows what it finds.
      await panel.getByRole("button", { name: "Only status 500" }).click();
      await panel.waitFor({ state: "hidden" });
      await untilCount(page, /^(\d+) newest of \1$/);
    },
    { context: { viewport: { width: 390, height: 844 } } },
  );

  inBrowser("reach every control in the order of the page", url, async (page) => {
    await open(page, '{app="web"}');
    await page.locator("body").focus();
    const seen: string[] = [];
    for (let n = 0; n < 80; n++) {
      await page.keyboard.press("Tab");
      const name = (await page.evaluate(
        "document.activeElement.ariaLabel ?? document.activeElement.id ?? ''",
      )) as string;
      seen.push(name || "other");
      if (name === "Lines") break;
    }
    const place = (name: string) => seen.indexOf(name);
    expect(place("Query")).toBeGreaterThan(0);
    expect(place("Lines")).toBeGreaterThan(place("Query"));
    expect(place("Wrap lines")).toBeLessThan(place("Lines"));
  });
});
