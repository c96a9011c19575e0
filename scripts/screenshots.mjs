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

/** Those who look have one of several tenants. */
const tenant = "shop";

bootstrap();
const flags = [
  "-auth.enabled=true",
  "-pattern-ingester.enabled=true",
  "-validation.reject-old-samples=false",
  "-ingester.max-chunk-age=1000h",
];
await withSite(flags, async ({ url, browser }) => {
  const take = (look, run) => screenshot({ browser, url }, look, run);
  const [dark, light] = [{ colorScheme: "dark" }, { colorScheme: "light" }];
  const part = (height) => ({ viewport: { ...desktop, height } });
  await fill({ browser, url });
  await addRules(url);
  write("explore-dark", await take(dark, exploreAll));
  write("detail-light", await take(light, openLine));
  const help = [
    await take({ ...dark, ...part(440) }, suggest),
    await take({ ...light, ...part(320) }, mistake),
  ];
  write("query-help", await joined(browser, help, "column"));
  write("patterns-light", await take(light, patterns));
  const first = [
    await take({ ...dark, ...part(760) }, chart),
    await take({ ...light, ...part(490) }, welcome),
  ];
  write("chart-and-welcome", await joined(browser, first, "column"));
  const onPhone = [
    await take({ ...dark, viewport: phone }, payments),
    await take({ ...light, viewport: phone }, paymentsLine),
  ];
  write("phone", await joined(browser, onPhone, "row"));
});

/** Opens a page whose clock stands still, does something there, and takes a picture of it. */
async function screenshot({ browser, url }, look, run) {
  const context = await browser.newContext({
    ...{ viewport: desktop, timezoneId: "UTC", locale: "en-GB", reducedMotion: "reduce" },
    ...{ baseURL: `${url}/`, ...look },
  });
  const page = await context.newPage();
  await page.clock.setFixedTime(at);
  await run(page);
  const png = await page.screenshot();
  await context.close();
  return png;
}

/** Two pictures as one. */
async function joined(browser, pngs, direction) {
  const page = await browser.newPage({ viewport: { width: 10, height: 10 } });
  const images = pngs.map((png) => `<img src="data:image/png;base64,${png.toString("base64")}">`);
  const style = `display: inline-flex; flex-direction: ${direction}; gap: 6px; background: #5c6470`;
  await page.setContent(`<div style="${style}">${images.join("")}</div>`);
  const box = page.locator("div");
  await box.evaluate((element) =>
    Promise.all([...element.children].map((image) => image.decode())),
  );
  const png = await box.screenshot();
  await page.close();
  return png;
}

function write(name, png) {
  const packed = packPng(png);
  writeFileSync(join(folder, `${name}.png`), packed);
  console.log(`${name}.png  ${Math.ceil(packed.length / 1024)} KB`);
  if (packed.length > pictureBytesMax) {
    console.error(`${name}.png has more than ${pictureBytesMax / 1024} KB`);
    process.exitCode = 1;
  }
}

/** Two alerts that fire whatever the logs have. */
async function addRules(url) {
  const rule = (name) => `  - alert: ${name}\n    expr: vector(1) > 0\n`;
  const headers = { "content-type": "application/yaml", "x-scope-orgid": tenant };
  const body = `name: shop\ninterval: 1s\nrules:\n${rule("ManyErrors")}${rule("SlowPayments")}`;
  const answer = await fetch(`${url}/loki/api/v1/rules/shop`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
}

/** Sends the sample logs as the welcome screen does. */
async function fill({ browser, url }) {
  const page = await (await browser.newContext({ baseURL: `${url}/` })).newPage();
  await page.clock.setFixedTime(at);
  await page.goto(`ui/explore?tenant=${tenant}`);
  await page.getByRole("button", { name: "Fill with sample logs" }).click();
  await untilCount(page, "of 10,000");
  await page.context().close();
}

function untilCount(page, text) {
  return page.locator("#count").filter({ hasText: text }).waitFor();
}

/** The number of alerts and the cost of the query come last. */
async function untilSettled(page, says = "Holds") {
  await page.locator(".badge").filter({ hasText: "2" }).waitFor();
  await page.locator("#problem").filter({ hasText: says }).waitFor();
  await page.mouse.move(0, 0);
}

function values(page) {
  return page.locator("aside.fields .value");
}

function explore(query, more = {}) {
  const params = { q: query, from: "now-30m", to: "now", tenant, ...more };
  return `ui/explore?${new URLSearchParams(params)}`;
}

async function exploreAll(page) {
  await page.goto(explore('{app=~".+"}', { open: "app,detected_level" }));
  await untilCount(page, " of ");
  await values(page).nth(8).waitFor();
  await untilSettled(page);
}

async function openLine(page) {
  await page.goto(
    explore('{app=~"payments|checkout"} |= "error" | json | status >= 500', { open: "app,status" }),
  );
  await untilCount(page, / of /);
  await values(page).nth(3).waitFor();
  await openRow(page);
  await untilSettled(page);
  await page.locator(".detail dl > div").filter({ hasText: "http_path" }).hover();
}

async function openRow(page) {
  await page.locator(".list .row:visible").nth(3).click();
  await page.getByRole("tab", { name: "Fields" }).waitFor();
  await page.locator(".detail dl > div").first().waitFor();
}

async function suggest(page) {
  await page.goto(explore('{app="checkout"} | json', { open: "app" }));
  await untilCount(page, / of /);
  await untilSettled(page);
  await page.locator("#query").click();
  await page.keyboard.press("End");
  await page.keyboard.type(" |");
  await page.getByRole("option", { name: "duration_ms" }).waitFor();
  await page.mouse.move(0, 0);
}

async function mistake(page) {
  await page.goto(explore('{app=~".+"}', { open: "app" }));
  await untilCount(page, / of /);
  await values(page).nth(3).waitFor();
  await page
    .locator("#query")
    .fill('sum by (level) (rat({app=~".+"} | json | status >= 500 [5m]))');
  await page.locator("#query").press("Home");
  await untilSettled(page, "no such function");
}

async function patterns(page) {
  await page.goto(explore('{app=~".+"}', { view: "patterns" }));
  await page.locator("main table tbody tr, main .pattern").first().waitFor();
  await untilSettled(page);
}

async function chart(page) {
  await page.goto(explore('sum by (app) (rate({app=~".+"} | logfmt [1m]))'));
  await page.locator(".u-over").waitFor();
  await untilSettled(page);
}

async function welcome(page) {
  await page.goto("ui/explore?tenant=new");
  await page.getByRole("button", { name: "Fill with sample logs" }).waitFor();
  await page.locator("#tenant").waitFor();
  await page.getByText("is ready").waitFor();
}

async function payments(page) {
  await page.goto(explore('{app="payments"} |= "error"'));
  await untilCount(page, / of /);
  await page.locator(".list .row:visible").nth(5).waitFor();
  await untilSettled(page);
}

async function paymentsLine(page) {
  await payments(page);
  await openRow(page);
  await page.mouse.move(0, 0);
}
