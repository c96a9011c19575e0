// Whether others read what Skald stored: pushes the kit's lines to a server over a folder and to one over a bucket, waits until the day is
// merged, and asks DuckDB and LogQL the same questions. Ends with status 1 when an answer differs.
//
//   node bench/duckdb.mjs DIR [--mb 1000] [--install FOLDER]
//
//   DIR         bodies.pb and manifest.json of the benchmark kit, of a day that is over: today's segments are merged only when there are many
//   --mb        lines that are pushed, MB
//   --install   where DuckDB for WebAssembly is, or is installed to (npm, 106 MB); by default a folder that goes afterwards
//
// The folder is read by DuckDB's package for Node. Its extension for S3 is not on the npm registry, so the bucket is read by an older DuckDB for
// WebAssembly, which speaks S3 itself. Last figures: docs/formats/segment.md.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { getJson } from "../packages/test/dist/testing/client.js";
import { filesBelow, makeFolder, startServer } from "../packages/test/dist/testing/server.js";
import { openBucket } from "./store/bucket.mjs";
import { runComparison } from "./store/comparison.mjs";
import { installDuckDb, openDuckDb } from "./store/duckdb-wasm.mjs";
import { fillFlags, pushBodies, settle } from "./store/fill.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    mb: { type: "string", default: "1000" },
    install: { type: "string", default: "" },
  },
});
const kit = positionals[0];
if (kit === undefined) throw new Error("name the folder of the kit's data: bench/duckdb.mjs DIR");
const manifest = JSON.parse(readFileSync(join(kit, "manifest.json"), "utf8"));
const all = '{cluster=~".+"}';
const hourSeconds = 3600;
// Hours since the epoch.
const fromHour = Math.floor(manifest.startSec / hourSeconds);
const toHour = Math.floor(manifest.endSec / hourSeconds) + 1;
const range = `${(toHour - fromHour) * hourSeconds}s`;
const labels = ["app", "namespace", "level", "pod", "stream"];

await runComparison(async (found) => {
  await measureFolder(found);
  await measureBucket(found);
});

async function measureFolder(found) {
  const server = await startServer(makeFolder(), fillFlags);
  const chunks = join(server.folder, "chunks");
  const lines = await fill(server.url, "folder", () => filesBelow(chunks, ""));
  const db = await (await DuckDBInstance.create(":memory:")).connect();
  const query = async (sql) =>
    (await db.runAndReadAll(sql)).getRows().map((row) => row.map(String));
  const [[version]] = await query("SELECT version()");
  console.log(`folder: DuckDB ${version}, @duckdb/node-api`);
  await compare(
    found,
    server.url,
    `read_parquet('${chunks}/tenant=*/date=*/*.parquet', union_by_name=true)`,
    {
      ...{ query, lines, column: "folder" },
    },
  );
  await server.kill("SIGTERM");
}

async function measureBucket(found) {
  const bucket = await openBucket();
  const server = await startServer(makeFolder(), [...fillFlags, ...bucket.flags]);
  const lines = await fill(server.url, "bucket", bucket.keys);
  const install = options.install === "" ? makeFolder() : options.install;
  mkdirSync(install, { recursive: true });
  const db = await openDuckDb(installDuckDb(install), bucket);
  console.log(`bucket: DuckDB ${db.version} for WebAssembly, its own client of S3`);
  const segments = (await bucket.keys()).filter((key) => key.endsWith(".parquet"));
  const urls = segments.map((key) => `'s3://${bucket.bucket}/${key}'`);
  const own = { requests: 0, bytes: 0 };
  const query = async (sql) => {
    const before = await bucket.reads();
    const rows = db.query(sql);
    const after = await bucket.reads();
    own.requests += after.count - before.count;
    own.bytes += after.bytes - before.bytes;
    return rows;
  };
  await compare(found, server.url, `read_parquet([${urls.join(", ")}], union_by_name=true)`, {
    ...{ query, lines, column: "S3" },
  });
  console.log(`bucket: DuckDB read ${(own.bytes / 1e6).toFixed(0)} MB in ${own.requests} requests`);
  await db.close();
  await server.kill("SIGTERM");
  bucket.close();
}

async function fill(url, name, keys) {
  const { rawBytes, lines } = await pushBodies(url, join(kit, "bodies.pb"), Number(options.mb));
  const segments = await settle(url, keys);
  const mb = (rawBytes / 1e6).toFixed(0);
  console.log(`${name}: ${mb} MB of lines, merged into ${segments.length} segments`);
  return lines;
}

async function compare(found, url, from, { query, lines, column }) {
  const texts = await pickTexts(url);
  for (const { name, sql, ask } of [
    ...questions(from, texts),
    ...(await ofFields(from, url, query)),
  ]) {
    let began = performance.now();
    const want = await ask(url);
    const logqlMs = performance.now() - began;
    began = performance.now();
    const rows = await query(sql);
    const duckdbMs = performance.now() - began;
    const got = new Map(rows);
    const same = want.size === got.size && [...want].every(([key, n]) => got.get(key) === n);
    if (!same) {
      found.differences++;
      console.log(`${name} of the ${column}: LogQL`, want, "DuckDB", got);
    }
    found.table[name] = {
      ...found.table[name],
      values: want.size,
      [`LogQL, ${column}, ms`]: Math.round(logqlMs),
      [`DuckDB, ${column}, ms`]: Math.round(duckdbMs),
      [column]: same ? "same" : "DIFFERENT",
    };
  }
  const [[total]] = await query(`SELECT count(*) FROM ${from}`);
  if (Number(total) !== lines) found.differences++;
  console.log(`${column}: ${total} rows of ${lines} that were pushed`);
}

/** What is asked of both; a question's answer is a count by name, both of them texts. */
function questions(from, texts) {
  const byLabel = labels.map((label) => ({
    name: `lines by ${label}`,
    sql: `SELECT coalesce(labels.${label}, ''), count(*) FROM ${from} GROUP BY 1`,
    ask: (url) => instant(url, `sum by (${label}) (count_over_time(${all}[${range}]))`, label),
  }));
  const byLevel = {
    name: "lines by detected_level",
    sql: `SELECT coalesce(metadata.detected_level, ''), count(*) FROM ${from} GROUP BY 1`,
    ask: (url) => {
      const query = `sum by (detected_level) (count_over_time(${all}[${range}]))`;
      return instant(url, query, "detected_level");
    },
  };
  const byHour = {
    name: "lines by hour",
    sql: `SELECT CAST(ceil(epoch_us(timestamp) / 3600e6) AS BIGINT), count(*) FROM ${from} GROUP BY 1`,
    ask: linesByHour,
  };
  const counts = texts.map((text) => `count(*) FILTER (contains(line, '${quoted(text)}'))`);
  const byText = {
    name: "lines with each of ten texts",
    sql: `SELECT unnest(range(${texts.length})), unnest([${counts.join(", ")}]) FROM ${from}`,
    ask: (url) => linesByText(url, texts),
  };
  return [...byLabel, byLevel, byHour, byText];
}

/** Counts by each column of fields, for each application whose lines have one. */
async function ofFields(from, url, query) {
  const [[type]] = await query(`SELECT typeof(fields) FROM ${from} LIMIT 1`);
  const names = [...type.matchAll(/"?(\w+)"? VARCHAR/g)].map(([, name]) => name);
  const some = names.map((name) => `count(fields."${name}")`).join(", ");
  const rows = await query(`SELECT labels.app, ${some} FROM ${from} GROUP BY 1 ORDER BY 1`);
  const found = [];
  for (const [app, ...counts] of rows) {
    const parser = /^\{/.test(await newestLine(url, app)) ? "json" : "logfmt";
    for (const [i, name] of names.entries()) {
      if (counts[i] === "0") continue;
      // A field with the name of a label of the stream has another name.
      const [stage, label] = labels.includes(name)
        ? [`${parser} f="${name}"`, "f"]
        : [parser, name];
      const asked = `sum by (${label}) (count_over_time({app="${app}"} | ${stage} [${range}]))`;
      found.push({
        name: `${app} by field ${name}`,
        sql: `SELECT coalesce(fields."${name}", ''), count(*) FROM ${from} WHERE labels.app = '${app}' GROUP BY 1`,
        ask: (server) => instant(server, asked, label),
      });
    }
  }
  return found;
}

/** Ten texts: those that were planted, and pieces of the newest lines of applications. */
async function pickTexts(url) {
  const planted = [...manifest.needles.map(({ token }) => token), manifest.rareText];
  const apps = Object.keys(manifest.byApp).slice(0, 10 - planted.length);
  const pieces = await Promise.all(
    apps.map(async (app) => {
      const line = await newestLine(url, app);
      return line.slice(line.length >> 2, (line.length >> 2) + 24);
    }),
  );
  return [...planted, ...pieces];
}

async function newestLine(url, app) {
  const start = String(fromHour * hourSeconds);
  const end = String(toHour * hourSeconds);
  const params = { query: `{app="${app}"}`, limit: "1", start, end };
  const { data } = await getJson(url, "/loki/api/v1/query_range", params);
  return data.result[0]?.values[0][1];
}

async function instant(url, query, label) {
  const params = { query, time: String(toHour * hourSeconds) };
  const { data } = await getJson(url, "/loki/api/v1/query", params);
  return new Map(data.result.map(({ metric, value }) => [metric[label] ?? "", value[1]]));
}

async function linesByHour(url) {
  const { data } = await getJson(url, "/loki/api/v1/query_range", {
    query: `sum(count_over_time(${all}[1h]))`,
    start: String((fromHour + 1) * hourSeconds),
    end: String(toHour * hourSeconds),
    step: String(hourSeconds),
  });
  return new Map(data.result[0].values.map(([time, n]) => [String(time / hourSeconds), n]));
}

async function linesByText(url, texts) {
  const found = new Map();
  for (const [i, text] of texts.entries()) {
    const query = `sum(count_over_time(${all} |= ${JSON.stringify(text)} [${range}]))`;
    found.set(String(i), (await instant(url, query, "none")).get("") ?? "0");
  }
  return found;
}

function quoted(text) {
  return text.replaceAll("'", "''");
}
