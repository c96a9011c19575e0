import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import {
  makeFolder,
  removeFolders,
  type StartedProcess,
  spawnServer,
  urlOf,
  waitFor,
} from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, copyAll, open, rows, untilCount } from "../testing/ui/page.js";
import { TestProxy } from "../testing/ui/proxy.js";
import { fill, push } from "../testing/ui/site.js";

let server: StartedProcess;
let proxy: TestProxy;
/** The server without the proxy. */
let site: { readonly url: string };

beforeAll(async () => {
  if (!hasBrowser) return;
  server = spawnServer(makeFolder(), ["-server.path-prefix=/logs"]);
  const address = await urlOf(server);
  site = { url: `${address}/logs` };
  await waitFor(async () => (await fetch(`${site.url}/ready`)).ok);
  proxy = await new TestProxy(Number(new URL(address).port), { old: true }).open();
  await fill(site, 1000);
});

afterAll(async () => {
  await closeBrowser();
  await proxy?.cut();
  await server?.kill("SIGTERM");
  await removeFolders();
});

const url = () => `${proxy.url}/logs`;

describe("behind a proxy with a prefix, which speaks HTTP/1.0 and knows no WebSocket", () => {
  inBrowser("the page and its screens are there", url, async (page) => {
    await page.goto("");
    await untilCount(page, "1,000 newest of 1,000");
    expect(new URL(page.url()).pathname).toBe("/logs/ui/explore");
    for (const screen of ["Streams", "Alerts", "System"]) {
      await page.getByRole("navigation").getByRole("link", { name: screen }).click();
      await page.getByRole("heading", { level: 1, name: screen }).waitFor();
      expect(new URL(page.url()).pathname).toBe(`/logs/ui/${screen.toLowerCase()}`);
    }
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "System" }).waitFor();
  });

  inBrowser(
    "a live view says that there is no WebSocket, and asks instead",
    url,
    async (page) => {
      await page.goto(addressOf('{app="polled"}'));
      await page.locator("#live").click();
      await untilCount(page, /no WebSocket .* every 2 s/);
      const texts = ["one", "two", "three"];
      for (const text of texts) {
        const values = [[`${Date.now()}000000`, text] as const];
        await push(site, [{ stream: { app: "polled" }, values }]);
        await rows(page).filter({ hasText: text }).waitFor();
      }
      expect(await copyAll(page)).toEqual(texts);
    },
    { expects: /WebSocket connection/ },
  );

  inBrowser("a link to what is on the page has the prefix", url, async (page) => {
    await open(page, '{app="web"}');
    await page.getByRole("button", { name: "Share" }).click();
    await page.getByText("Copied the link").waitFor();
    const link = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(link.startsWith(`${proxy.url}/logs/ui/explore?`)).toBe(true);
    await page.goto(link);
    await untilCount(page, "of 250");
  });
});
