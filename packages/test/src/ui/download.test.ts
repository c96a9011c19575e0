import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect } from "@jest/globals";
import { parquetReadObjects } from "hyparquet";
import type { Download, Page } from "playwright-core";
import { getJson, type QueryAnswer } from "../testing/client.js";
import { removeFolders, type TestServer } from "../testing/server.js";
import { closeBrowser, hasBrowser, inBrowser } from "../testing/ui/browser.js";
import { open } from "../testing/ui/page.js";
import { emptySite, push } from "../testing/ui/site.js";

/** More than one answer may have, with equal times at their seams. */
const lines = 12_000;
const linesOfOneTime = 7;
const query = '{app="shop"}';
const pods = ["a", "b"];
const hourNs = 3_600_000_000_000n;
let site: TestServer;
/** A server with the defaults. */
let plain: TestServer;

/** A row as the store has it. */
interface Row {
  readonly ns: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly line: string;
}
let stored: Row[];

beforeAll(async () => {
  if (!hasBrowser) return;
  site = await emptySite(["-frontend.support-parquet-encoding=true"]);
  plain = await emptySite();
  await push(plain, [{ stream: { app: "other" }, values: [[`${Date.now()}000000`, "a line"]] }]);
  const startNs = BigInt(Date.now() - 30 * 60_000) * 1_000_000n;
  const rows = Array.from({ length: lines }, (_, n) => {
    const ns = startNs + BigInt(n - (n % linesOfOneTime)) * 1_000_000n;
    return [String(ns), textOf(n)] as const;
  });
  const streams = pods.map((pod, p) => ({
    stream: { app: "shop", pod },
    values: rows.filter((_, n) => n % pods.length === p),
  }));
  await push(site, streams);
  stored = await rowsOf(site.url);
});

afterAll(async () => {
  await closeBrowser();
  await site?.kill("SIGTERM");
  await plain?.kill("SIGTERM");
  await removeFolders();
});

const url = () => site.url;

/** Texts that a format must escape, among plain ones. */
function textOf(n: number): string {
  if (n % 1000 === 1) return `{"n":${n},"quoted":"say \\"hello\\", please"}`;
  if (n % 1000 === 2) return `n=${n} ends\twith "quotes" and ümläuts \\ 語`;
  return `n=${n}`;
}

/** All rows of the store, one minute after the other. */
async function rowsOf(address: string): Promise<Row[]> {
  const endNs = BigInt(Date.now()) * 1_000_000n;
  const found: Row[] = [];
  const stepNs = hourNs / 1000n;
  for (let from = endNs - hourNs; from < endNs; from += stepNs) {
    const range = { start: String(from), end: String(from + stepNs) };
    const { data } = await getJson<QueryAnswer>(address, "/loki/api/v1/query_range", {
      ...{ query, ...range, limit: "5000", direction: "forward" },
    });
    const streams = data.result as {
      stream: Record<string, string>;
      values: [string, string][];
    }[];
    for (const { stream, values } of streams)
      for (const [ns, line] of values) found.push({ ns, labels: stream, line });
  }
  return found;
}

const sorted = (rows: readonly Row[]) => {
  const key = ({ ns, labels, line }: Row) => JSON.stringify([ns, labels.pod, line]);
  return rows.map(key).sort();
};
const labelsOf = (labels: object) => expect.objectContaining(labels);

/** Downloads what the query finds; the files, once the window says that all is there. */
async function download(page: Page, format: RegExp, asked = query): Promise<Buffer[]> {
  await open(page, asked);
  const files: Download[] = [];
  page.on("download", (file) => files.push(file));
  await page.getByRole("button", { name: "Download all that matches" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("radio", { name: format }).check();
  const first = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download" }).click();
  await dialog.getByRole("status").filter({ hasText: "done" }).waitFor();
  await first;
  return Promise.all(files.map(async (file) => readFileSync(await file.path())));
}

// Without a window of the browser that nobody can answer here.
const prepare = "delete window.showSaveFilePicker";

describe("a download of everything that matches", () => {
  inBrowser(
    "is the lines of the store, oldest first, as text",
    url,
    async (page) => {
      const [file] = await download(page, /Text/);
      const texts = String(file).split("\n");
      expect(texts.pop()).toBe("");
      expect(stored).toHaveLength(lines);
      expect(texts.sort()).toEqual(stored.map(({ line }) => line).sort());
    },
    { prepare },
  );

  inBrowser(
    "is an object for each line as JSON",
    url,
    async (page) => {
      const [file] = await download(page, /JSON/);
      const rows = String(file)
        .trimEnd()
        .split("\n")
        .map((text) => JSON.parse(text) as { time: string; labels: object; line: string });
      expect(rows.map(({ line }) => line).sort()).toEqual(stored.map(({ line }) => line).sort());
      const times = rows.map(({ time }) => time);
      expect(times).toEqual([...times].sort());
      const { ns, labels, line } = stored.find((row) => row.line.includes("語"))!;
      const same = rows.find((row) => row.line === line)!;
      expect(same.labels).toEqual(labelsOf(labels));
      expect(BigInt(Date.parse(same.time))).toBe(BigInt(ns) / 1_000_000n);
    },
    { prepare },
  );

  inBrowser(
    "is a row for each line as CSV",
    url,
    async (page) => {
      const [file] = await download(page, /CSV/);
      const [head, ...rows] = parseCsv(String(file));
      expect(head).toEqual(["time", "labels", "line"]);
      const found = rows.map(([ns = "", labels = "", line = ""]) => {
        return { ns, labels: JSON.parse(labels) as Record<string, string>, line };
      });
      expect(sorted(found)).toEqual(sorted(stored));
    },
    { prepare },
  );

  inBrowser(
    "is Parquet that others read",
    url,
    async (page) => {
      const files = await download(page, /Parquet/);
      const found: Row[] = [];
      for (const { buffer, byteOffset, byteLength } of files) {
        const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
        const rows = await parquetReadObjects({ file });
        for (const { timestamp, labels, line } of rows)
          found.push({ ns: `${timestamp.getTime()}000000`, labels, line });
      }
      expect(found).toHaveLength(lines);
      expect(sorted(found)).toEqual(sorted(stored));
    },
    { prepare },
  );

  inBrowser(
    "has no Parquet where the server makes none",
    () => plain.url,
    async (page) => {
      await open(page, '{app="other"}');
      await page.keyboard.press("d");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("radio", { name: /CSV/ }).waitFor();
      expect(await dialog.getByRole("radio", { name: /Parquet/ }).count()).toBe(0);
    },
    { prepare },
  );

  inBrowser(
    "goes into a file that the user chose",
    url,
    async (page) => {
      await open(page, query);
      await page.keyboard.press("d");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Download" }).click();
      await dialog.getByRole("status").filter({ hasText: "done" }).waitFor();
      const text = (await page.evaluate(`(async () => {
        const folder = await navigator.storage.getDirectory();
        return (await (await folder.getFileHandle("skald.txt")).getFile()).text();
      })()`)) as string;
      const texts = text.trimEnd().split("\n");
      expect(texts.sort()).toEqual(stored.map(({ line }) => line).sort());
    },
    {
      // The window's answer: a file that the browser keeps for the page.
      prepare: `window.showSaveFilePicker = async ({ suggestedName }) =>
        (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true })`,
    },
  );
});

/** The rows of a CSV text as RFC 4180 has it. */
function parseCsv(text: string): string[][] {
  return text
    .split("\r\n")
    .filter((row) => row !== "")
    .map((row) =>
      [...row.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
        ([, quoted, plain = ""]) => quoted?.replaceAll('""', '"') ?? plain,
      ),
    );
}
