import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { until } from "@skald/testkit";
import type { Page } from "playwright-core";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { editor } from "../testing/ui/page.js";
import { emptySite, fill } from "../testing/ui/site.js";

let site: TestServer;

const group = (name: string, rules: string) => `name: ${name}\ninterval: 1s\nrules:\n${rules}`;
const firing = `  - alert: ManyLines
    expr: sum by (app) (count_over_time({app="web"}[2h])) > 7
    labels: { severity: warning }
`;
const quiet = `  - alert: NeverSeen
    expr: sum(count_over_time({app="web"} |= "never written" [5m])) > 0
`;
/** Two series with the labels that the rule makes equal: each evaluation fails. */
const broken = `  - record: app:broken
    expr: label_replace(sum by (app) (count_over_time({env="prod"}[2h])), "app", "one", "app", ".*")
`;

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite();
  await fill(site, 1000);
  await put("shop", group("quiet", quiet));
  await put("shop", group("loud", firing));
  await put("shop", group("broken", broken));
  await until(async () => {
    const found = await fetch(`${site.url}/prometheus/api/v1/rules`);
    const text = await found.text();
    return text.includes('"firing"') && text.includes('"err"') && text.includes('"inactive"');
  });
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;
const groupOf = (page: Page, name: string) => page.getByRole("region", { name: `Group ${name}` });

async function put(namespace: string, yaml: string): Promise<void> {
  const answer = await fetch(`${site.url}/loki/api/v1/rules/${namespace}`, {
    method: "POST",
    headers: { "content-type": "application/yaml" },
    body: yaml,
  });
  if (!answer.ok) throw new Error(await answer.text());
}

async function storedGroup(namespace: string, name: string): Promise<string | undefined> {
  const found = await fetch(`${site.url}/loki/api/v1/rules/${namespace}/${name}`);
  return found.ok ? found.text() : undefined;
}

describe("alerts", () => {
  inBrowser("show state, value and error of rules, firing ones first", url, async (page) => {
    await page.goto("ui/alerts");
    await groupOf(page, "loud").waitFor();
    const names = await page
      .getByRole("region")
      .evaluateAll((all) => all.map((one) => one.ariaLabel));
    expect(names[0]).toBe("Group loud");
    const loud = groupOf(page, "loud");
    expect(await loud.textContent()).toMatch(
      /firing.*ManyLines.*evaluated .* in .*firing 250 .*app=web/,
    );
    expect(await groupOf(page, "quiet").textContent()).toMatch(/inactive.*NeverSeen/);
    const failed = groupOf(page, "broken");
    expect(await failed.locator(".state.bad").textContent()).toBe("failed");
    expect(await failed.locator("p.bad").textContent()).toMatch(/\w+/);
    // The bar above all screens counts them.
    await page.getByRole("link", { name: "Alerts 1" }).waitFor();
  });

  inBrowser("are found by state and text", url, async (page) => {
    await page.goto("ui/alerts");
    await groupOf(page, "loud").waitFor();
    const only = async (name: string) => {
      await until(async () => (await page.locator(".rule-row").count()) === 1);
      await groupOf(page, name).waitFor();
    };
    await page.getByRole("button", { name: "failed" }).click();
    await only("broken");
    await page.getByRole("button", { name: "inactive" }).click();
    await only("quiet");
    await page.getByRole("button", { name: "all", exact: true }).click();
    await page.getByRole("searchbox", { name: "Find a rule" }).fill("manyl");
    await only("loud");
  });

  inBrowser("are tried over the past, and opened in Explore", url, async (page) => {
    await page.goto("ui/alerts");
    const loud = groupOf(page, "loud");
    await loud.getByRole("button", { name: "Try over the past" }).click();
    await loud
      .getByRole("status")
      .filter({ hasText: /value for 1 series at \d+ points/ })
      .waitFor();
    await loud.locator(".u-over").waitFor();
    const silent = groupOf(page, "quiet");
    await silent.getByRole("button", { name: "Try over the past" }).click();
    await silent.getByText("It would not have fired.").waitFor();
    await silent.getByRole("button", { name: "Open in Explore" }).click();
    await until(async () => (await editor(page).inputValue()).includes("never written"));
    expect(new URL(page.url()).pathname).toBe("/ui/explore");
  });
});

describe("a group of rules", () => {
  inBrowser(
    "is written, with its queries checked as they are typed",
    url,
    async (page) => {
      await page.goto("ui/alerts");
      await page.getByRole("button", { name: "New group" }).click();
      const dialog = page.getByRole("dialog", { name: "New group of rules" });
      await dialog.getByRole("textbox", { name: "Namespace" }).fill("mine");
      const yaml = dialog.getByRole("textbox", { name: "Group as YAML" });
      const save = dialog.getByRole("button", { name: "Save" });
      await yaml.fill(group("made", firing.replace("count_over_time", "count_over_tim")));
      await dialog.getByText(/^line 5: no such function/).waitFor();
      expect(await save.isDisabled()).toBe(true);
      // What only the server sees is said, and the text stays.
      await yaml.fill(group("made", firing.replace("labels:", "for: soon\n    labels:")));
      await save.click();
      await dialog
        .locator(".bad")
        .filter({ hasText: "line 6, column 10: expected a duration" })
        .waitFor();
      await yaml.fill(group("made", firing));
      await save.click();
      await dialog.waitFor({ state: "detached" });
      await groupOf(page, "made").waitFor();
      expect(await storedGroup("mine", "made")).toContain("ManyLines");
    },
    { expects: /status of 4/ },
  );

  inBrowser("is edited", url, async (page) => {
    await put("shop", group("edited", quiet));
    await page.goto("ui/alerts");
    await groupOf(page, "edited").getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog", { name: "Group edited" });
    const yaml = dialog.getByRole("textbox", { name: "Group as YAML" });
    await until(async () => (await yaml.inputValue()).includes("NeverSeen"));
    await yaml.fill((await yaml.inputValue()).replace("NeverSeen", "SeldomSeen"));
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await groupOf(page, "edited").getByText("SeldomSeen").waitFor();
    expect(await storedGroup("shop", "edited")).toContain("SeldomSeen");
  });

  inBrowser("is deleted once its name is typed", url, async (page) => {
    await put("shop", group("doomed", quiet));
    await page.goto("ui/alerts");
    await groupOf(page, "doomed").getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete the group doomed" });
    const remove = dialog.getByRole("button", { name: "Delete" });
    const name = dialog.getByRole("textbox", { name: "Name of the group" });
    await name.fill("doome");
    expect(await remove.isDisabled()).toBe(true);
    await name.fill("doomed");
    await remove.click();
    await groupOf(page, "doomed").waitFor({ state: "detached" });
    expect(await storedGroup("shop", "doomed")).toBeUndefined();
  });
});
