import { type Random, seededRandom } from "@skald/testkit";

/** A stream of the JSON body of a push. */
export interface PushStream {
  readonly stream: Readonly<Record<string, string>>;
  readonly values: readonly (
    | readonly [string, string]
    | readonly [string, string, Record<string, string>]
  )[];
}

/** The largest step between the times of two rows; many rows have the time of the row before. */
const maxStepMs = 90_000;

export interface DataOptions {
  readonly seed: number;
  /** Time of the last row, ms since the epoch. */
  readonly endMs: number;
  readonly rowCount: number;
  /** One row in six has the time of the row before it. When the two are of different streams, a limit may keep either. */
  readonly hasTies: boolean;
}

/**
 * Pushes with rows in order of time, equal for equal options. The random queries ask for the same labels, names and texts.
 */
export function randomPushes({ seed, endMs, rowCount, hasTies }: DataOptions): PushStream[][] {
  const random = seededRandom(seed);
  const streams = randomStreams(random);
  let ns = 0n;
  const rows = Array.from({ length: rowCount }, () => {
    if (random(6) > 0 || !hasTies)
      ns += BigInt(random(maxStepMs)) * 1_000_000n + BigInt(1 + random(3));
    const stream = pick(random, streams);
    return { ns, stream, line: randomLine(random), metadata: randomMetadata(random) };
  });
  const shift = BigInt(endMs) * 1_000_000n - ns;
  const pushes: PushStream[][] = [];
  for (let at = 0; at < rows.length; at += 50) {
    const byStream = new Map<Readonly<Record<string, string>>, PushStream["values"][number][]>();
    for (const row of rows.slice(at, at + 50)) {
      const values = byStream.get(row.stream) ?? [];
      const time = String(row.ns + shift);
      values.push(row.metadata === undefined ? [time, row.line] : [time, row.line, row.metadata]);
      byStream.set(row.stream, values);
    }
    pushes.push([...byStream].map(([stream, values]) => ({ stream, values })));
  }
  return pushes;
}

/** A random element of the list. */
export function pick<T>(random: Random, list: readonly T[]): T {
  return list[random(list.length)] as T;
}

const apps = ["api", "web", "error", "a b"];
const levels = ["info", "warn", "error", "debug"];
const methods = ["GET", "POST", "PUT"];
const paths = ["/items", "/users/7", "/login", "/ü"];

function randomStreams(random: Random): Record<string, string>[] {
  return Array.from({ length: 12 }, (_, i) => {
    const labels: Record<string, string> = { app: apps[i % apps.length] as string };
    if (random(2) === 0) labels.env = pick(random, ["prod", "dev"]);
    if (random(3) === 0) labels.level = pick(random, levels);
    if (random(4) === 0) labels._x = pick(random, ["error", "a b", "x1"]);
    labels.pod = `${labels.app}-${i}`;
    return labels;
  });
}

function randomMetadata(random: Random): Record<string, string> | undefined {
  if (random(3) > 0) return undefined;
  const pairs: Record<string, string> = { trace: `t${random(40)}` };
  if (random(3) === 0) pairs.level = pick(random, levels);
  if (random(4) === 0) pairs.status = String(200 + 100 * random(4));
  return pairs;
}

function randomLine(random: Random): string {
  const fields = {
    level: pick(random, levels),
    method: pick(random, methods),
    path: pick(random, paths),
    status: 200 + 100 * random(4),
    dur: pick(random, ["12ms", "1.5s", "3m", "700us", "none"]),
    bytes: pick(random, ["10", "5KB", "1MiB", "x"]),
    count: random(1000) / 8,
    ip: `10.0.${random(3)}.${random(20)}`,
    a: { b: [random(5), "x"] },
    _x: random(3) === 0 ? "" : `x${random(9)}`,
  };
  switch (random(7)) {
    case 0:
    case 1:
      return JSON.stringify(fields);
    case 2:
    case 3:
      return Object.entries({ ...fields, a: random(5) })
        .map(
          ([name, value]) =>
            `${name}=${/[ "]/.test(String(value)) ? JSON.stringify(value) : value}`,
        )
        .join(" ");
    case 4:
      return `${fields.ip} - "${fields.method} ${fields.path}" ${fields.status} ${random(5000)}`;
    case 5:
      return pick(random, [
        "error: disk full",
        "",
        "a b",
        `x${random(50)}`,
        "{{.x}}",
        '{"a":nul}',
        "ü🎉 \t\u0000end",
      ]);
    default:
      return JSON.stringify({ _entry: randomText(random), app: pick(random, apps), n: random(50) });
  }
}

function randomText(random: Random): string {
  return pick(random, ["level=error msg=full", "tick", "\u001b[31mred\u001b[0m", "error error"]);
}
