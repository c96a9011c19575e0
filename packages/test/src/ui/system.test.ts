import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import { queryLines } from "../testing/client.js";
import {
  makeFolder,
  removeFolders,
  type StartedProcess,
  spawnServer,
  type TestServer,
  urlOf,
} from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { open, untilCount } from "../testing/ui/page.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;
/** A process that only answers queries. */
let reader: StartedProcess;
let readerUrl: string;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite([
    ...["-compactor.retention-enabled=true", "-compactor.delete-request-store=filesystem"],
    "-querier.max-query-series=321",
  ]);
  await fill(site, 1000);
  reader = spawnServer(makeFolder(), ["-target=querier", "-server.grpc-listen-port=0"]);
  readerUrl = await urlOf(reader);
});

afterAll(async () => {
  await closeBrowser();
  for (const server of [site, reader]) await server?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;

describe("system", () => {
  inBrowser("shows services, rings, rates, limits and what is configured", url, async (page) => {
    await page.goto("ui/system");
    await page.getByText(/^ingester: running$/).waitFor();
    await page.getByRole("img", { name: "Ring of the ingester: 1 members" }).waitFor();
    await page
      .getByText(/100 %, seen \d+ s ago/)
      .first()
      .waitFor();
    const rates = page.getByRole("row", { name: /^lines / });
    await rates.getByText(/\d\/s$/).waitFor();
    await page.getByText("Limits", { exact: true }).click();
    await page.locator(".code").filter({ hasText: "max_query_series: 321" }).first().waitFor();
    await page.getByText("Configuration", { exact: true }).click();
    await page.locator(".code").filter({ hasText: "retention_enabled: true" }).first().waitFor();
  });

  inBrowser(
    "says which process has what this one has not",
    () => readerUrl,
    async (page) => {
      await page.goto("ui/system");
      await page.getByText(/Targets: querier/).waitFor();
      await page.getByText("ruler ask a process of the target ruler or backend").waitFor();
      await page.goto("ui/alerts");
      await page.getByText("Ask one of the target ruler, backend or all").waitFor();
    },
    { expects: /404/ },
  );
});

describe("a delete", () => {
  inBrowser("shows what would go, and asks for the number of lines", url, async (page) => {
    const query = '{app="web"} |= "timeout"';
    const doomed = await queryLines(site.url, query);
    await page.goto("ui/system");
    await page.getByRole("button", { name: "Delete lines…" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete lines" });
    await dialog.getByRole("textbox", { name: "Query" }).fill('sum(rate({app="web"}[1m]))');
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByRole("alert").filter({ hasText: "must be one of lines" }).waitFor();
    await dialog.getByRole("textbox", { name: "Query" }).fill(query);
    await dialog.getByRole("textbox", { name: "From" }).fill("now-1h");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.getByText(`${doomed.length} lines would go`).waitFor();
    const preview = (await dialog.locator(".code").textContent()) ?? "";
    expect(preview.split("\n")).toHaveLength(20);
    expect(doomed).toEqual(expect.arrayContaining(preview.split("\n")));
    const remove = dialog.getByRole("button", { name: "Delete", exact: true });
    const number = dialog.getByRole("textbox", { name: "Number of lines" });
    await number.fill(String(doomed.length + 1));
    expect(await remove.isDisabled()).toBe(true);
    await number.fill(String(doomed.length));
    await remove.click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("cell", { name: query }).waitFor();
    await until(async () => (await queryLines(site.url, query)).length === 0);
    await open(page, '{app="web"}');
    await untilCount(page, `of ${250 - doomed.length}`);
  });

  inBrowser("is taken back while nothing is gone for good", url, async (page) => {
    const query = '{app="api"} |= "timeout"';
    const before = (await queryLines(site.url, query)).length;
    await page.goto("ui/system");
    await page.getByRole("button", { name: "Delete lines…" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete lines" });
    await dialog.getByRole("textbox", { name: "Query" }).fill(query);
    await dialog.getByRole("textbox", { name: "From" }).fill("now-1h");
    await page.keyboard.press("Enter");
    await dialog.getByRole("textbox", { name: "Number of lines" }).fill(String(before));
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    const row = page.getByRole("row").filter({ hasText: query });
    await row.getByRole("button", { name: "Cancel" }).click();
    await row.waitFor({ state: "detached" });
    await until(async () => (await queryLines(site.url, query)).length === before);
  });
});
