import { call } from "../api/client.js";
import { addDelete } from "../api/deletes.js";

/** Sample logs: almost an hour of six applications, with a burst of errors near its end. */

interface App {
  readonly name: string;
  readonly write: (at: Sample) => string;
}

interface Sample {
  readonly level: string;
  readonly random: () => number;
  readonly time: Date;
  readonly failing: boolean;
}

const linesTotal = 10_000;
const batchLines = 1000;
const spanMs = 55 * 60 * 1000;

const pick = <T>(random: () => number, list: readonly T[]): T =>
  list[Math.floor(random() * list.length)]!;
const methods = ["GET", "GET", "GET", "POST", "PUT", "DELETE"];
const paths = ["/api/orders", "/api/carts", "/api/items", "/api/search", "/login"];
const goods = ["request completed", "cache refreshed", "job finished", "token validated"];
const bads = ["upstream returned error", "database error: deadlock detected", "card declined"];

function json({ level, random, time, failing }: Sample): string {
  const bad = level === "error";
  return JSON.stringify({
    ts: time.toISOString(),
    level,
    msg: pick(random, bad ? bads : goods),
    http: {
      method: pick(random, methods),
      path: `${pick(random, paths)}/${Math.floor(random() * 9000)}`,
    },
    status: bad ? pick(random, [500, 502, 503]) : pick(random, [200, 200, 201, 204, 404]),
    duration_ms: Math.round(random() * (failing ? 9000 : 400)) / 10,
    user: `u${Math.floor(random() * 500)}`,
  });
}

function logfmt({ level, random }: Sample): string {
  const bad = level === "error";
  const msg = pick(random, bad ? bads : goods);
  const status = bad ? 500 : pick(random, [200, 204]);
  const path = `${pick(random, paths)}/${Math.floor(random() * 9000)}`;
  return `level=${level} msg="${msg}" status=${status} method=${pick(random, methods)} path=${path} duration=${(random() * 300).toFixed(1)}ms`;
}

function access({ random, time, failing }: Sample): string {
  const address = [1, 2, 3, 4].map(() => Math.floor(random() * 255)).join(".");
  const status = failing && random() < 0.3 ? 502 : pick(random, [200, 200, 200, 301, 404]);
  return `${address} - - [${time.toUTCString()}] "${pick(random, methods)} ${pick(random, paths)} HTTP/1.1" ${status} ${Math.floor(random() * 90_000)} "-" "Mozilla/5.0"`;
}

function java({ level, random, time }: Sample): string {
  const head = `${time.toISOString().replace("T", " ").slice(0, 23)} ${level.toUpperCase()} [worker-${Math.floor(random() * 8)}] shop.Orders`;
  if (level !== "error") return `${head} - ${pick(random, goods)}`;
  return `${head} - order failed\njava.lang.IllegalStateException: no stock\n\tat shop.Orders.place(Orders.java:88)\n\tat shop.Main.run(Main.java:21)`;
}

const apps: readonly App[] = [
  { name: "payments", write: json },
  { name: "checkout", write: json },
  { name: "gateway", write: logfmt },
  { name: "auth", write: logfmt },
  { name: "nginx", write: access },
  { name: "orders", write: java },
];

/** Sends the sample logs, in batches. Throws ApiError when the server refuses them. */
export async function sendSample(
  nowMs: number,
  onProgress: (share: number) => void,
): Promise<void> {
  const random = seeded(22);
  for (let sent = 0; sent < linesTotal; sent += batchLines) {
    const streams = new Map<
      string,
      { stream: Record<string, string>; values: [string, string][] }
    >();
    for (let index = sent; index < sent + batchLines; index++) {
      const share = index / linesTotal;
      const failing = share > 0.7 && share < 0.8;
      const app = pick(random, apps);
      const chance = random();
      const level =
        chance < (failing ? 0.4 : 0.03)
          ? "error"
          : chance < 0.5
            ? "info"
            : pick(random, ["info", "info", "warn", "debug"]);
      const ms = Math.floor(nowMs - spanMs + share * spanMs);
      const text = app.write({ level, random, time: new Date(ms), failing });
      const one = streams.get(app.name) ?? {
        stream: { app: app.name, env: "demo", sample: "true" },
        values: [],
      };
      streams.set(app.name, one);
      one.values.push([`${ms}${String(index % 1000).padStart(3, "0")}000`, text]);
    }
    await call("loki/api/v1/push", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ streams: [...streams.values()] }),
    });
    onProgress((sent + batchLines) / linesTotal);
  }
}

/** Numbers from 0 to 1 that are the same each time. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Asks for the sample logs to be deleted. */
export async function removeSample(nowMs: number): Promise<void> {
  const start = Math.floor((nowMs - 30 * 24 * spanMs) / 1000);
  const query = `{sample="true"}`;
  await addDelete(query, start, Math.floor(nowMs / 1000));
}
