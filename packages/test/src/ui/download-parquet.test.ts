import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { parquetReadObjects } from "hyparquet";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { emptySite, fill } from "../testing/ui/site.js";

const lines = 12_000;
let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  // A limit that the lines need many answers for.
  site = await emptySite([
    "-frontend.support-parquet-encoding=true",
    "-validation.max-entries-limit=1000",
  ]);
  await fill(site, lines);
});

afterAll(async () => {
  await closeBrowser();
  await removeFolders();
});

describe("a download as Parquet", () => {
  inBrowser(
    "joins the answers for parts of the range into one file",
    () => site.url,
    async (page) => {
      await page.goto(`/ui/explore?q=${encodeURIComponent('{env="prod"}')}&from=now-1h&to=now`);
      await page.locator(".list .row:visible").first().waitFor();
      await page.keyboard.press("d");
      await page.getByRole("radio", { name: /Parquet/ }).check();
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Download", exact: true }).click(),
      ]);
      expect(saved.suggestedFilename()).toBe("skald.parquet");
      const file = readFileSync(await saved.path());
      const rows = await parquetReadObjects({ file: new Uint8Array(file).buffer });
      expect(rows.length).toBe(lines);
      const times = rows.map(({ timestamp }) => Number(timestamp));
      expect(times).toEqual([...times].sort((a, b) => a - b));
      expect(new Set(rows.map(({ line }) => line)).size).toBeGreaterThan(4000);
      await page.locator("#downloaded").filter({ hasText: "12,000 lines" }).waitFor();
    },
    // A file picker of the system cannot be answered here, so the browser holds the file.
    { prepare: "delete globalThis.showSaveFilePicker", expects: /400/ },
  );
});
