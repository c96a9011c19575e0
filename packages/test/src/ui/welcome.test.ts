import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { queryLines } from "../testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { editor, rows, untilCount } from "../testing/ui/page.js";
import { push } from "../testing/ui/site.js";

/** What `npm start` runs. */
const main = fileURLToPath(new URL("../../../../scripts/start.mjs", import.meta.url));
let first: TestServer;
let second: TestServer;
/** A server where lines can be deleted. */
let erasing: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  first = await startServer(makeFolder(), [], { main });
  second = await startServer(makeFolder());
  erasing = await startServer(makeFolder(), [
    ...["-compactor.retention-enabled=true", "-compactor.delete-request-store=filesystem"],
  ]);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of [first, second, erasing]) await server?.kill("SIGTERM");
  await removeFolders();
});

/** Counts the clicks of the user from now on. */
async function countClicks(page: Page): Promise<() => number> {
  let clicks = 0;
  await page.exposeFunction("noteClick", () => {
    clicks++;
  });
  await page.evaluate("addEventListener('click', (event) => event.isTrusted && noteClick(), true)");
  return () => clicks;
}

describe("a server without logs", () => {
  inBrowser(
    "leads in four clicks to sample lines that are filtered by a field",
    () => first.url,
    async (page) => {
      await page.goto("");
      await page.getByRole("heading", { name: /No logs yet/ }).waitFor();
      const clicks = await countClicks(page);
      await page.getByRole("button", { name: "Fill with sample logs" }).click();
      await untilCount(page, "1,000 newest of 10,000");
      const fields = page.locator("aside.fields");
      await fields.getByRole("button", { name: /status/ }).click();
      await page.getByRole("button", { name: "Only status 502" }).click();
      await until(async () => /status\s*=\s*(502|"502")/.test(await editor(page).inputValue()));
      await untilCount(page, /^(\d+) newest of \1$/);
      await rows(page).first().click();
      const detail = page.getByRole("region", { name: "Line" });
      await detail.getByRole("button", { name: "Only status 502" }).waitFor();
      expect(clicks()).toBe(4);
    },
  );

  inBrowser(
    "shows the first line that comes by itself",
    () => second.url,
    async (page) => {
      await page.goto("");
      const ways = page.getByRole("tablist", { name: "Ways to send" });
      await ways.waitFor();
      expect(await ways.getByRole("tab").count()).toBe(8);
      for (const way of await ways.getByRole("tab").all()) {
        await way.click();
        const { hostname, port } = new URL(second.url);
        const text = await page.getByRole("tabpanel").textContent();
        expect(text).toContain(hostname);
        expect(text).toContain(port);
      }
      const values = [[`${Date.now()}000000`, "the very first line"]] as [string, string][];
      await push(second, [{ stream: { app: "first" }, values }]);
      await rows(page).filter({ hasText: "the very first line" }).waitFor();
    },
  );

  inBrowser(
    "has its sample logs removed again by a click, where deletes are on",
    () => erasing.url,
    async (page) => {
      await page.goto("");
      await page.getByRole("button", { name: "Fill with sample logs" }).click();
      await untilCount(page, "1,000 newest of 10,000");
      await page.getByRole("button", { name: "Remove the sample logs" }).click();
      await page.getByText("The sample logs are being deleted").waitFor();
      await until(async () => (await queryLines(erasing.url, '{sample="true"}')).length === 0);
      await until(async () => (await rows(page).count()) === 0);
    },
  );
});
