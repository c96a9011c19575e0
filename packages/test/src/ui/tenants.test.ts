import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, copyAll, open, rows, strip, untilCount } from "../testing/ui/page.js";
import { emptySite, push } from "../testing/ui/site.js";

/** One of them has characters that a subprotocol may not have as they are. */
const tenants = { shop: 3, "bank's(eu)*": 5 } as const;
let site: TestServer;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite(["-auth.enabled=true"]);
  for (const [tenant, lines] of Object.entries(tenants)) {
    await pushTo(
      tenant,
      Array.from({ length: lines }, (_, n) => `${tenant} ${n}`),
    );
  }
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;

let lastNs = 0n;
async function pushTo(tenant: string, lines: readonly string[]): Promise<void> {
  const values = lines.map((line) => {
    const now = BigInt(Date.now()) * 1_000_000n;
    lastNs = now > lastNs ? now : lastNs + 1n;
    return [String(lastNs), line] as const;
  });
  await push(site, [{ stream: { app: "till" }, values }], tenant);
}

/** Chooses a tenant in the menu of the top bar. */
async function choose(page: Page, tenant: string): Promise<void> {
  await page.locator("#tenant").click();
  await page.getByRole("button", { name: tenant, exact: true }).click();
}

describe("a server with tenants", () => {
  inBrowser(
    "asks for a tenant, shows the lines of the one that is chosen, and remembers it",
    url,
    async (page) => {
      await page.goto(addressOf('{app="till"}'));
      await strip(page).filter({ hasText: "asks for a tenant" }).waitFor();
      await choose(page, "shop");
      await untilCount(page, "3 newest of 3");
      expect(await strip(page).count()).toBe(0);
      await choose(page, "bank's(eu)*");
      await untilCount(page, "5 newest of 5");
      expect(await rows(page).filter({ hasText: "shop" }).count()).toBe(0);
      expect(new URL(page.url()).searchParams.get("tenant")).toBe("bank's(eu)*");
      await page.goBack();
      await untilCount(page, "3 newest of 3");
      await page.goto("");
      await untilCount(page, "5 newest of 5");
    },
    { expects: /401/ },
  );

  inBrowser("takes a tenant by name that it does not know", url, async (page) => {
    await open(page, '{app="till"}', { tenant: "shop" });
    await page.locator("#tenant").click();
    await page.getByRole("textbox", { name: "Tenant" }).fill("nobody");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "No stream has these labels" }).waitFor();
    expect(new URL(page.url()).searchParams.get("tenant")).toBe("nobody");
  });

  inBrowser("follows the lines of the tenant that is chosen", url, async (page) => {
    await open(page, '{app="till"}', { tenant: "bank's(eu)*" });
    await page.locator("#live").click();
    await untilCount(page, "lines/s");
    await pushTo("shop", ["of another"]);
    await pushTo("bank's(eu)*", ["live one"]);
    await rows(page).filter({ hasText: "live one" }).waitFor();
    const seen = await copyAll(page);
    expect(seen.at(-1)).toBe("live one");
    expect(seen.filter((line) => !/^bank|^live/.test(line))).toEqual([]);
  });
});
