import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { expect, it } from "@jest/globals";
import { noteProgram } from "@skald/testkit";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";

/** Chromium by its names, below the folders of PATH; the variable CHROMIUM has the path of another. */
const program =
  process.env.CHROMIUM ??
  ["chromium", "chromium-browser", "google-chrome"]
    .flatMap((name) =>
      (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name)),
    )
    .find((path) => existsSync(path));

/** Whether there is a browser to test with. */
export const hasBrowser = program !== undefined;

export interface BrowserTest {
  /** Such as the size of the window and the colour scheme. */
  readonly context?: BrowserContextOptions;
  /** JavaScript that runs in each page before the page's own. */
  readonly prepare?: string;
  /** Errors of the console that the test makes on purpose. */
  readonly expects?: RegExp;
}

/**
 * Declares a test in a page of a new, empty browser profile. At its end there must be no error in the console, which includes
 * what the content security policy refused, and no request to another host. Without a browser it is skipped, and fails when
 * the variable CI is set.
 */
export function inBrowser(
  name: string,
  urlOf: () => string,
  run: (page: Page) => Promise<void>,
  { context: options = {}, expects, prepare }: BrowserTest = {},
): void {
  noteProgram("chromium", program);
  if (program === undefined) {
    if (!process.env.CI) it.skip(name, () => undefined);
    else
      it(name, () => {
        throw new Error("chromium is not installed: with CI set no test of it is left out");
      });
    return;
  }
  it(name, async () => {
    const context = await (await openBrowser()).newContext({
      ...{ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", locale: "en-GB" },
      ...{ permissions: ["clipboard-read", "clipboard-write"] },
      ...{ baseURL: new URL("./", `${urlOf()}/`).href, ...options },
    });
    try {
      context.setDefaultTimeout(statesWithinMs);
      if (prepare !== undefined) await context.addInitScript({ content: prepare });
      const seen = watch(context, new URL(urlOf()).host);
      await run(await context.newPage());
      expect(seen.errors.filter((text) => expects?.test(text) !== true)).toEqual([]);
      expect(seen.foreign).toEqual([]);
    } finally {
      await context.close();
    }
  });
}

/** Longer than any state takes on a busy machine. */
const statesWithinMs = 60_000;

/** Notes what no page of a test may do: errors, and requests to other hosts. */
function watch(context: BrowserContext, host: string): { errors: string[]; foreign: string[] } {
  const errors: string[] = [];
  const foreign: string[] = [];
  const check = (address: string) => {
    const url = new URL(address);
    if (url.protocol !== "data:" && url.protocol !== "blob:" && url.host !== host)
      foreign.push(address);
  };
  context.on("console", (message) => {
    if (message.type() === "error") errors.push(`${message.text()} ${message.location().url}`);
  });
  context.on("weberror", (error) => errors.push(String(error.error())));
  context.on("request", (request) => check(request.url()));
  context.on("page", (page) => page.on("websocket", (socket) => check(socket.url())));
  return { errors, foreign };
}

let browser: Promise<Browser> | undefined;

function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: program ?? "",
    // Root, as in a container, may not use the sandbox.
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  return browser;
}

/** Ends the browser of a test file. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

const axePath = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What axe-core has against the page: rules and the elements that break them. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // The policy of the page allows no script of a test, but the debugger may run one.
  await page.evaluate(readFileSync(axePath, "utf8"));
  // Colours count as they are in the end, not while an answer fades in.
  await page.evaluate(`(async () => {
    const ending = (one) => one.effect.getComputedTiming().endTime !== Infinity;
    const fades = document.getAnimations().filter(ending);
    await Promise.allSettled(fades.map(({ finished }) => finished));
  })()`);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: AxeNode[] }[] }> };
    };
    const { violations } = await axe.run();
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    );
  });
}

interface AxeNode {
  readonly html: string;
  /** What is wrong and how to mend it, such as the colours of a contrast. */
  readonly failureSummary: string;
}
