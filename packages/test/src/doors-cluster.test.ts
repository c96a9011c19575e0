import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { queryNumber, readMetric } from "./testing/client.js";
import { Cluster } from "./testing/cluster.js";
import { waitFor } from "./testing/server.js";

const tenant = { "x-scope-orgid": "net" };
const usual = { ingester: 3, distributor: 1, querier: 1 };
const startMs = Date.now() - 600_000;
let cluster: Cluster;

beforeAll(async () => {
  const counts = { ...usual, ruler: 0, compactor: 0, "pattern-ingester": 0 };
  cluster = await Cluster.start({ counts, syslog: "net" });
}, 240_000);

afterAll(async () => {
  await cluster?.stop();
}, 60_000);

async function open(): Promise<Socket> {
  const socket = connect(cluster.syslogPorts[0]!, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

/** Sends messages by their numbers; each has its own time. */
function send(socket: Socket, from: number, to: number): void {
  const messages = Array.from({ length: to - from }, (_, i) => {
    const time = new Date(startMs + from + i).toISOString();
    return `<134>1 ${time} h shop - - - request ${from + i}\n`;
  });
  socket.write(messages.join(""));
}

async function received(): Promise<number> {
  const name = "loki_syslog_messages_received_total";
  const counts = await Promise.all(
    cluster.services.map((url) => readMetric(url, name).catch(() => 0)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

async function untilStored(count: number): Promise<void> {
  const query = 'sum(count_over_time({app="shop"}[1h]))';
  const stored = () => queryNumber(cluster.gateway, query, tenant).catch(() => 0);
  await waitFor(async () => (await stored()) >= count);
  expect(await stored()).toBe(count);
}

it("ingesters of a distributor that listens for syslog may be lost, and each line counts once", async () => {
  const socket = await open();
  send(socket, 0, 2500);
  await untilStored(2500);

  await cluster.end("ingester-1", "SIGKILL");
  send(socket, 2500, 5000);
  await untilStored(5000);

  // With two of three gone nothing can be stored, so the listener waits.
  await cluster.end("ingester-2", "SIGKILL");
  send(socket, 5000, 7500);
  await waitFor(async () => (await received()) === 7500);
  await Promise.all(["ingester-1", "ingester-2"].map((name) => cluster.start(name)));
  await untilStored(7500);

  const closed = once(socket, "close");
  send(socket, 7500, 10_000);
  await cluster.end("distributor", "SIGTERM");
  await closed;
  await cluster.start("distributor");
  await untilStored(10_000);
  expect(await cluster.faults()).toEqual([]);
}, 240_000);

it.each([
  ["/insert/jsonline?labels=door", '{"door":"lines"}\n'.repeat(3), "lines"],
  ["/elasticsearch/_bulk?labels=door", '{"index":{}}\n{"door":"bulk"}\n'.repeat(3), "bulk"],
  ["/services/collector?labels=door", '{"event":1,"fields":{"door":"hec"}}'.repeat(3), "hec"],
  ["/api/v2/logs?labels=door", `[${Array(3).fill('{"message":"m","door":"dd"}')}]`, "dd"],
  ["/insert/journald/upload?labels=door", "MESSAGE=m\ndoor=unit\n\n".repeat(3), "unit"],
])("the gateway leads to the distributor's door %s", async (path, body, door) => {
  const answer = await fetch(cluster.gateway + path, { method: "POST", headers: tenant, body });
  expect([answer.ok, await answer.text()]).toEqual([true, expect.not.stringContaining('error":')]);
  const query = `sum(count_over_time({door="${door}"}[1h]))`;
  expect(await queryNumber(cluster.gateway, query, tenant)).toBe(3);
});
