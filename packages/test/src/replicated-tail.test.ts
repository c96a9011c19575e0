import { afterEach, describe, expect, it } from "@jest/globals";
import type { Tailer, TailRows } from "@skald/contracts";
import { type LogResult, lineAt, linesOf } from "@skald/logql";
import { emptyLabels, labelsFromObject } from "@skald/model";
import { ReplicatedTailer } from "@skald/querier";
import { GrpcConnection, GrpcServer, remoteTailer, serveTailer } from "@skald/rpc";

const MiB = 1024 * 1024;
const stops: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function oneRow(line: string, ms: number): LogResult {
  const labels = labelsFromObject({ app: "a" });
  const bytes = Buffer.from(line);
  return {
    kind: "streams",
    rowCount: 1,
    timestamps: BigInt64Array.of(BigInt(ms) * 1_000_000n),
    labelSet: Uint32Array.of(0),
    lines: linesOf({ bytes, offsets: Uint32Array.of(0, bytes.length) }),
    labels: [
      {
        labels,
        categories: { stream: labels, structuredMetadata: emptyLabels, parsed: emptyLabels },
      },
    ],
    warnings: [],
  };
}

/** An ingester on its own port, whose tails get the lines that a test pushes. */
async function startIngester() {
  const open = new Set<(row: LogResult | undefined) => void>();
  const tailer: Tailer = {
    async *tail(_, { signal }) {
      const rows: (LogResult | undefined)[] = [];
      let wake: () => void = () => undefined;
      const take = (row: LogResult | undefined) => {
        rows.push(row);
        wake();
      };
      open.add(take);
      signal.addEventListener("abort", () => take(undefined));
      yield { dropped: [] };
      for (;;) {
        if (rows.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const row = rows.shift();
        if (row === undefined) break;
        yield { rows: row, dropped: [] };
      }
      open.delete(take);
    },
  };
  const server = new GrpcServer({
    ...{ address: "127.0.0.1", port: 0, maxConnections: 0 },
    ...{ maxReceiveBytes: 4 * MiB, maxSendBytes: 4 * MiB, maxConcurrentStreams: 100 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000, gracefulShutdownMs: 0 },
  });
  serveTailer(server, tailer);
  const connection = new GrpcConnection({
    address: `127.0.0.1:${await server.start()}`,
    ...{ maxReceiveBytes: 4 * MiB, maxSendBytes: 4 * MiB, connectTimeoutMs: 60_000 },
    ...{ minReconnectMs: 10, maxReconnectMs: 100 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 },
  });
  stops.push(
    () => connection.close(),
    () => server.kill(),
  );
  const push = (line: string, ms: number) => {
    for (const take of open) take(oneRow(line, ms));
  };
  return { server, tailer: remoteTailer(connection), push, open };
}

function textOf(item: IteratorResult<TailRows, unknown>): string {
  if (item.done === true) return "end";
  const { rows, dropped } = item.value;
  return rows === undefined
    ? `${dropped.length} dropped`
    : Buffer.from(lineAt(rows.lines, 0)).toString();
}

describe("a tail of two ingesters over gRPC", () => {
  it("shows each row once, and goes on when one of them is killed", async () => {
    const [a, b] = [await startIngester(), await startIngester()];
    const instances = [
      { id: "a", zone: "", tailer: a.tailer },
      { id: "b", zone: "", tailer: b.tailer },
    ];
    const lost: string[] = [];
    const tailer = new ReplicatedTailer({
      replicasOf: () => ({ instances, maxMissing: 1, byZone: false }),
      connect: (instance: (typeof instances)[number]) => instance.tailer,
      onLost: (id) => lost.push(id),
      sleep: (_, signal) =>
        new Promise((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
        ),
    });
    const stop = new AbortController();
    const request = { tenant: "a", matchers: [], stages: [] };
    const tail = tailer.tail(request, { signal: stop.signal })[Symbol.asyncIterator]();
    expect(textOf(await tail.next())).toBe("0 dropped");
    while (a.open.size + b.open.size < 2) await new Promise(setImmediate);
    for (const one of [a, b]) one.push("first", 1);
    expect(textOf(await tail.next())).toBe("first");
    for (const one of [a, b]) one.push("second", 2);
    expect(textOf(await tail.next())).toBe("second");
    const third = tail.next();
    await a.server.kill();
    while (lost.length === 0) await new Promise(setImmediate);
    b.push("third", 3);
    expect(textOf(await third)).toBe("third");
    const last = tail.next();
    stop.abort();
    expect(textOf(await last)).toBe("end");
    while (b.open.size > 0) await new Promise(setImmediate);
    expect(lost).toEqual(["a"]);
  });
});
