// `npm run screenshots`: makes the pictures of docs/screenshots from the sample logs of the welcome screen, at a fixed time, in a
// real Chromium. A picture above its limit fails.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bootstrap } from "./bootstrap.mjs";
import { root } from "./runtime.mjs";
import { packPng } from "./ui/png.mjs";
import { withSite } from "./ui/site.mjs";

const pictureBytesMax = 300 * 1024;
const at = new Date("2026-03-02T06:01:00Z");
const folder = join(root, "docs", "screenshots");
const desktop = { width: 1440, height: 900 };
const phone = { width: 390, height: 844 };

bootstrap();
const flags = [
  "-pattern-ingester.enabled=true",
  "-validation.reject-old-samples=false",
  "-ingester.max-chunk-age=1000h",
];
await withSite(flags, async ({ url, browser }) => {
  const look = { browser, url };
  await fill(look);
  await picture(look, "explore-dark", { colorScheme: "dark" }, exploreAll);
  await picture(look, "detail-light", { colorScheme: "light" }, openLine);
  await picture(look, "query-help", { colorScheme: "dark" }, suggest);
  await picture(look, "patterns-light", { colorScheme: "light" }, patterns);
  await picture(look, "chart-dark", { colorScheme: "dark" }, chart);
  await picture(look, "phone", { colorScheme: "dark", viewport: phone }, payments);
});

/** Opens a page whose clock stands still, does something there, and takes a picture of it. */
async function picture({ browser, url }, name, look, run) {
  const context = await browser.newContext({
    ...{ viewport: desktop, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce" },
    ...{ baseURL: `${url}/`, ...look },
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(at);
  await run(page);
  const isComplete = name === "query-help" ? "Goes on" : "Holds";
  await page.locator("#problem").filter({ hasText: isComplete }).waitFor();
  await page.mouse.move(0, 0);
  const path = join(folder, `${name}.png`);
  const png = packPng(await page.screenshot());
  writeFileSync(path, png);
  const size = png.length;
  console.log(`${name}.png  ${Math.ceil(size / 1024)} KB`);
  if (size > pictureBytesMax) {
    console.error(`${name}.png has more than ${pictureBytesMax / 1024} KB`);
    process.exitCode = 1;
  }
  await context.close();
}

/** Sends the sample logs as the welcome screen does. */
async function fill({ browser, url }) {
  const page = await (await browser.newContext({ baseURL: `${url}/` })).newPage();
  await page.clock.setFixedTime(at);
  await page.goto("");
  await page.getByRole("button", { name: "Fill with sample logs" }).click();
  await untilCount(page, "of 10,000");
  await page.context().close();
}

function untilCount(page, text) {
  return page.locator("#count").filter({ hasText: text }).waitFor();
}

function values(page) {
  return page.locator("aside.fields .value");
}

function explore(query, more = {}) {
  return `ui/explore?${new URLSearchParams({ q: query, ...more })}`;
}

async function exploreAll(page) {
  await page.goto(explore('{app=~".+"}', { open: "app,detected_level" }));
  await untilCount(page, "of 10,000");
  await values(page).nth(8).waitFor();
}

async function openLine(page) {
  await page.goto(explore('{app="payments"} | json | status >= 500', { open: "status" }));
  await untilCount(page, / of /);
  await values(page).first().waitFor();
  await page.locator(".list .row:visible").nth(3).click();
  await page.getByRole("tab", { name: "Fields" }).waitFor();
  await page.locator(".detail dl > div").first().waitFor();
}

async function suggest(page) {
  await page.goto(explore('{app="checkout"} | json'));
  await untilCount(page, / of /);
  await page.locator("#query").click();
  await page.keyboard.press("End");
  await page.keyboard.type(" |");
  await page.getByRole("option", { name: "duration_ms" }).waitFor();
}

async function patterns(page) {
  await page.goto(explore('{app=~".+"}', { view: "patterns" }));
  await page.locator("main table tbody tr, main .pattern").first().waitFor();
}

async function chart(page) {
  await page.goto(explore('sum by (app) (count_over_time({app=~".+"} | logfmt [1m]))'));
  await page.locator(".u-over").waitFor();
}

async function payments(page) {
  await page.goto(explore('{app="payments"} |= "error"'));
  await untilCount(page, / of /).catch(() => undefined);
  await page.locator(".list .row:visible").nth(5).waitFor();
}
