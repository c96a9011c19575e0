// The lines that the cases read, the same in each run but for their times, which end when they are pushed.
const rowCount = 200_000;
const sampleCount = 2_000_000;
const bigCount = 5000;
const bigBytes = 39_000;
const spanMs = 55 * 60_000;
const keysCount = 500;
const keysOfLine = 14_000;
const bodyBytes = 1_000_000;
const pushesAtOnce = 4;

/** Each maker gives its lines in order of time; `part` goes from 0 to 1. */
const makers = {
  /** JSON lines, no two with the same labels. */
  rows: { tenant: "a", count: rowCount, line: rowLine },
  samples: { tenant: "a", count: sampleCount, line: (i) => `n=${i} v=${(i * 7919) % 1000}` },
  big: {
    tenant: "a",
    count: bigCount,
    line: (i) => `${i} ${"0123456789abcdef".repeat(bigBytes / 16)}`,
  },
  keys: { tenant: "a", count: keysCount, line: keysLine },
  tiny: { tenant: "b", count: 100, line: (i) => `tiny line ${i}` },
};

/** Pushes the lines of the named applications, `{app="<name>"}`; with `keep` only those of which there are none. */
export async function pushData(client, names, { keep }) {
  for (const name of new Set(["tiny", ...names])) {
    const maker = makers[name];
    const tenant = maker.tenant === "a" ? client.tenantA : client.tenantB;
    if (keep && (await isThere(client, tenant, name))) continue;
    const startMs = performance.now();
    await pushLines(client, tenant, name, maker);
    console.log(
      `pushed ${maker.count} lines of ${name} in ${Math.round(performance.now() - startMs)} ms`,
    );
  }
}

async function isThere(client, tenant, name) {
  const found = await client.query(tenant, `sum(count_over_time({app="${name}"}[3h]))`, {
    instant: true,
  });
  return found.status === 200 && found.text.includes('"value":[');
}

async function pushLines(client, tenant, name, { count, line }) {
  const startNs = BigInt(Date.now() - spanMs) * 1_000_000n;
  const stepNs = BigInt(Math.floor((spanMs * 1e6) / count));
  let next = 0;
  const takeBody = () => {
    const values = [];
    for (let bytes = 0; bytes < bodyBytes && next < count; next++) {
      const text = line(next);
      values.push([String(startNs + BigInt(next) * stepNs), text]);
      bytes += text.length + 30;
    }
    return [{ stream: { app: name }, values }];
  };
  const pushSome = async () => {
    while (next < count) {
      const body = takeBody();
      for (;;) {
        const { status, text } = await client.push(tenant, body);
        if (status === 204) break;
        if (status !== 429 && status !== 503) throw new Error(`push of ${name}: ${status} ${text}`);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  };
  await Promise.all(Array.from({ length: pushesAtOnce }, pushSome));
}

function keysLine(i) {
  return `{${Array.from({ length: keysOfLine }, (_, key) => `"k${key}":"${i}"`)}}`;
}

function rowLine(i) {
  const method = ["GET", "POST", "PUT", "DELETE"][i % 4];
  return JSON.stringify({
    n: i,
    latency_ms: (i * 7919) % 5000,
    method,
    path: `/api/v1/items/${i % 400}`,
    msg: `request ${i} was answered by the third machine of its row`,
    trace: ((i * 2654435761) >>> 0).toString(16).padStart(32, "0"),
  });
}
