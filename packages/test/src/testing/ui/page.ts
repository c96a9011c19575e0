import { expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";

/** What people do on the page, and what they see there. */

const maxElements = 1500;

export const rows = (page: Page) => page.locator(".list .row:visible");
export const editor = (page: Page) => page.locator("#query");
/** `1,000 newest of 20,000`, or what a live view says of itself. */
export const count = (page: Page) => page.locator("#count");
/** The line that says what is wrong with an answer, and what happens next. */
export const strip = (page: Page) => page.locator(".strip");
/** How many lines the list has. */
export const held = (page: Page) =>
  page.locator(".list").getAttribute("aria-rowcount").then(Number);

/** The address of a query over the last hour. */
export function addressOf(query: string, more: Readonly<Record<string, string>> = {}): string {
  const params = new URLSearchParams({ q: query, from: "now-1h", to: "now", ...more });
  return `ui/explore?${params}`;
}

/** Opens a query over the last hour and waits for its lines. */
export async function open(
  page: Page,
  query: string,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  await page.goto(addressOf(query, more));
  await rows(page).first().waitFor();
}

/** Replaces the query as a user does, and runs it. */
export async function ask(page: Page, query: string): Promise<void> {
  await editor(page).fill(query);
  await page.keyboard.press("Enter");
}

export async function untilCount(page: Page, text: string | RegExp): Promise<void> {
  await count(page).filter({ hasText: text }).waitFor();
}

/** Scrolls until the list has a number of lines. */
export async function scrollUntil(page: Page, lines: number): Promise<void> {
  const list = page.locator(".list");
  await until(async () => {
    await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    return (await held(page)) >= lines;
  });
}

/** All lines of the list, selected and copied as a user does. */
export async function copyAll(page: Page): Promise<string[]> {
  await page.evaluate("navigator.clipboard.writeText('')");
  await page.locator(".list").focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Control+C");
  let text = "";
  await until(async () => {
    text = await page.evaluate("navigator.clipboard.readText()");
    return text !== "";
  });
  return text.split("\n");
}

export async function expectFewElements(page: Page): Promise<void> {
  expect(await page.locator("*").count()).toBeLessThan(maxElements);
}
