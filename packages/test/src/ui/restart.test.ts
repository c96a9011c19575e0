import { afterAll, afterEach, beforeEach, describe, expect } from "@jest/globals";
import { freePort, until } from "@skald/testkit";
import { queryLines } from "../testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { addressOf, copyAll, count, open, rows, strip, untilCount } from "../testing/ui/page.js";
import { TestProxy } from "../testing/ui/proxy.js";
import { fill, push } from "../testing/ui/site.js";

/** What the browser says of a server that is gone. */
const gone = /ERR_CONNECTION_|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED|WebSocket connection/;
const query = '{app="live"}';
let server: TestServer;
let start: () => Promise<TestServer>;

beforeEach(async () => {
  if (!hasBrowser) return;
  const folder = makeFolder();
  const port = await freePort();
  start = () => startServer(folder, [`-server.http-listen-port=${port}`]);
  server = await start();
});
afterEach(async () => {
  await server?.kill("SIGTERM");
});
afterAll(async () => {
  await closeBrowser();
  await removeFolders();
});

const url = () => server.url;

/** Pushes numbered lines of the present one after the other until it is stopped; a dead server does not stop it. */
function keepPushing(): () => Promise<void> {
  let isOver = false;
  const done = (async () => {
    for (let n = 0; !isOver; n++) {
      await pushLines([`pushed ${n}`]).catch(() => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  return async () => {
    isOver = true;
    await done;
  };
}

let lastNs = 0n;
async function pushLines(lines: readonly string[]): Promise<void> {
  const values = lines.map((line) => {
    const now = BigInt(Date.now()) * 1_000_000n;
    lastNs = now > lastNs ? now : lastNs + 1n;
    return [String(lastNs), line] as const;
  });
  await push(server, [{ stream: { app: "live" }, values }]);
}

describe("a server that is killed and started again", () => {
  inBrowser(
    "loses no line of a live view, and shows none twice",
    url,
    async (page) => {
      await page.goto(addressOf(query));
      await page.locator("#live").click();
      await untilCount(page, "lines/s");
      const stop = keepPushing();
      await rows(page).filter({ hasText: "pushed" }).nth(10).waitFor();
      await server.kill("SIGKILL");
      await untilCount(page, "trying again");
      server = await start();
      await stop();
      await pushLines(["the last line"]);
      await rows(page).filter({ hasText: "the last line" }).waitFor();
      const stored = await queryLines(server.url, query);
      expect(stored.length).toBeGreaterThan(10);
      expect((await copyAll(page)).sort()).toEqual(stored.sort());
    },
    { expects: gone },
  );

  inBrowser(
    "gives the answer of a query that ran meanwhile",
    url,
    async (page) => {
      await fill(server, 1000);
      await open(page, '{app="web"}');
      // The server has the query, and never answers it.
      server.process.kill("SIGSTOP");
      const sent = page.waitForRequest(/query_range/);
      await page.getByRole("textbox", { name: "Query" }).fill('{app="api"}');
      await page.keyboard.press("Enter");
      await sent;
      await server.kill("SIGKILL");
      await strip(page).filter({ hasText: "does not answer" }).waitFor();
      expect(await count(page).textContent()).toContain("of 250");
      server = await start();
      await strip(page).waitFor({ state: "detached" });
      await until(() => new URL(page.url()).searchParams.get("q") === '{app="api"}');
      await untilCount(page, "250 newest of 250");
      await rows(page).filter({ hasText: "api" }).first().waitFor();
      const stored = await queryLines(server.url, '{app="api"}');
      expect((await copyAll(page)).sort()).toEqual(stored.sort());
    },
    { expects: gone },
  );
});

describe("a way to the server that is cut for longer", () => {
  let proxy: TestProxy;
  beforeEach(async () => {
    if (hasBrowser) proxy = await new TestProxy(server.port).open();
  });
  afterEach(() => proxy?.cut());

  inBrowser(
    "is named as a gap where the server has more lines than it sends at once",
    () => proxy.url,
    async (page) => {
      await page.goto(addressOf(query));
      await page.locator("#live").click();
      await untilCount(page, "lines/s");
      await pushLines(["before"]);
      await rows(page).filter({ hasText: "before" }).waitFor();
      await proxy.cut();
      await untilCount(page, "trying again");
      await pushLines(Array.from({ length: 3000 }, (_, n) => `missed ${n}`));
      await proxy.open();
      await rows(page).filter({ hasText: "missed 2999" }).waitFor();
      await pushLines(["after"]);
      await rows(page).filter({ hasText: "after" }).waitFor();
      const seen = await copyAll(page);
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.slice(0, 3)).toEqual([
        "before",
        expect.stringContaining("may be missing"),
        expect.stringContaining("missed"),
      ]);
      expect(seen.at(-1)).toBe("after");
      expect(seen.length).toBeLessThan(3002);
    },
    { expects: gone },
  );
});
