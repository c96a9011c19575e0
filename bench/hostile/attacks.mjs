// The attacks of one client, by the names under which docs/limits.md lists them. Each goes on for a fixed time, so that what
// others feel does not depend on how fast the server refuses. Bodies are made before the time begins.
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { rapidResets } from "../../packages/testkit/dist/index.js";
import { doorAttacks } from "./door-attacks.mjs";

const MiB = 1024 * 1024;
const json = "application/json";
const form = "application/x-www-form-urlencoded";
/** As in bench/hostile.yaml. */
const syslogPort = 15_514;
const pushPath = "/loki/api/v1/push";
/** Requests of one attack whose answers are kept. */
const maxAnswers = 100_000;

export function attacksOf(client) {
  const { tenantA, url } = client;
  const pushRaw = (body, headers, signal) =>
    client.post(tenantA, pushPath, body, { type: json, headers, signal });
  const gzip = { "content-encoding": "gzip" };
  const askForm = (body, signal) =>
    client.post(tenantA, "/loki/api/v1/query_range", body, { type: form, signal });
  return [
    attack("G1", "HTTP/2: 20,000 GET and RST_STREAM a connection", 3, () => {
      const bytes = rapidResets(20_000, { ":path": "/loki/api/v1/query_range" });
      return (signal) => sendRaw(url, bytes, signal);
    }),
    attack("G1b", "HTTP/2: 100 GETs at once a connection", 100, () => {
      const bytes = manyGets(100);
      return (signal) => sendRaw(url, bytes, signal, 200);
    }),
    {
      ...attack("G3", "rules: YAML of 20,000 keys", 4, () => {
        const bodies = [keysYaml(5700), keysYaml(20_000), rulesYaml(2000)];
        let n = 0;
        return (signal) =>
          client.post(tenantA, "/loki/api/v1/rules/hostile", bodies[n++ % bodies.length], {
            type: "application/yaml",
            signal,
          });
      }),
      end: () => client.delete(tenantA, "/loki/api/v1/rules/hostile"),
    },
    attack("G4", "query texts of 60 KB: classes, alternations, ip()", 30, () => {
      const bodies = [
        `{a="b"} |~ "(?i)${"\\\\pL".repeat(14_000)}"`,
        `{a="b"} |~ "(${Array.from({ length: 8000 }, (_, i) => `word${i}`).join("|")})"`,
        `{a="b"} ${'| a=ip("10.0.0.0/8") '.repeat(2800)}`,
      ].map((query) => `query=${encodeURIComponent(query)}`);
      let n = 0;
      return (signal) => askForm(bodies[n++ % bodies.length], signal);
    }),
    attack("G4b", "format_query of 60 KB, no tenant", 30, () => {
      const query = `{a="b"} ${'| a=ip("10.0.0.0/8") '.repeat(2800)}`;
      const body = `query=${encodeURIComponent(query)}`;
      const path = "/loki/api/v1/format_query";
      return (signal) => client.post(undefined, path, body, { type: form, signal });
    }),
    attack("G5a", "pushes of 3 MB gzip that inflate to 90 MB", 20, () => {
      const line = `["${Date.now()}000000","${"x".repeat(200_000)}"]`;
      const body = gzipSync(streamOf({ app: "bomb" }, Array(450).fill(line)), { level: 1 });
      const padded = Buffer.concat([body, gzipSync(" ".repeat(MiB))]);
      return (signal) => pushRaw(padded, gzip, signal);
    }),
    {
      ...attack("G5b", "ten joins of 100k series", 10, () => {
        const counts = 'sum by (n) (count_over_time({app="rows"} | json n="n" | n < 100000 [2h]))';
        const params = { instant: true };
        return (signal) =>
          client.query(tenantA, `count(${counts} * on (n) ${counts})`, params, { signal });
      }),
      needs: ["rows"],
    },
    attack("G6a", "pushes of 1.9 MB with 40,000 streams", 40, () => {
      const body = manyStreams(40_000);
      return (signal) => pushRaw(body, {}, signal);
    }),
    attack("G6b", "pushes of 16 KB gzip of blanks", 100, () => {
      const text = streamOf({ app: "blank" }, [`["${Date.now()}000000","x"]`]);
      const body = gzipSync(text + " ".repeat(16 * MiB));
      return (signal) => pushRaw(body, gzip, signal);
    }),
    attack("G7", "three bodies of 89 MB held open", 3, () => {
      const body = Buffer.alloc(88 * MiB, " ");
      return (signal) => holdOpen(url, { tenant: tenantA, body, length: 89 * MiB }, signal);
    }),
    attack("G8a", "40 slow bodies of 99 MB", 40, () => {
      const length = 99 * 1000 * 1000;
      const body = Buffer.alloc(MiB, " ");
      return (signal) => holdOpen(url, { tenant: tenantA, body, length, everyMs: 300 }, signal);
    }),
    attack("G8b", "pushes with 60,000 metadata names", 4, () => {
      let n = 0;
      return (signal) => pushRaw(manyNames(60_000, n++), {}, signal);
    }),
    {
      ...attack(
        "G8c",
        "json on lines of 14,000 keys",
        10,
        () => (signal) =>
          client.query(tenantA, '{app="keys"} | json', { since: "2h", limit: "5000" }, { signal }),
      ),
      needs: ["keys"],
    },
    attack("G8d", "gzip bombs of 1 GB", 20, () => {
      const block = gzipSync(Buffer.alloc(64 * MiB));
      const body = Buffer.concat(Array(16).fill(block));
      return (signal) => pushRaw(body, gzip, signal);
    }),
    attack("G9", "delete requests", 20, () => {
      let n = 0;
      return (signal) => {
        const params = new URLSearchParams({
          query: `{app="d${n++}"}`,
          start: String(Math.floor(Date.now() / 1000) - 3600),
        });
        const path = `/loki/api/v1/delete${n % 20 === 0 ? "" : `?${params}`}`;
        return n % 20 === 0
          ? client.get(tenantA, path, {}, { signal })
          : client.post(tenantA, path, "", { signal });
      };
    }),
    rulesAttack(client),
    attack("G13a", "forms: 16,000 fields, %41s, too large", 20, () => {
      const bodies = [
        "a=b&".repeat(131_000),
        `query=${"%41".repeat(170_000)}&a=${"%41".repeat(170_000)}`,
        "+".repeat(9_700_000),
        "a=b&".repeat(16_000),
      ];
      let n = 0;
      return (signal) => askForm(bodies[n++ % bodies.length], signal);
    }),
    attack("G14", "syslog: a flood of datagrams, and messages that never end", 20, () => {
      const datagram = Buffer.from(`<134>1 - h flood - - - ${"x".repeat(400)}`);
      const endless = Buffer.alloc(MiB, "x");
      let n = 0;
      return (signal) =>
        n++ % 4 === 0 ? sendEndless(syslogPort, endless, signal) : sendDatagrams(datagram, signal);
    }),
    ...doorAttacks(client, attack),
    attack("G13b", "bodies byte by byte", 200, () => {
      return (signal) =>
        sendChunks(url, { tenant: tenantA, chunk: Buffer.from("1\r\nx\r\n") }, signal);
    }),
  ];
}

/** An attack in `times` places at once; `make` makes one try anew in each of them until the time is over. */
function attack(name, what, times, make) {
  return {
    name,
    what,
    times,
    needs: [],
    isTimed: true,
    run: (count, signal) => {
      const once = make();
      const answers = [];
      const one = async () => {
        while (!signal.aborted) {
          const startMs = performance.now();
          const answer = await once(signal);
          if (answers.length < maxAnswers) answers.push(answer);
          // What is refused at once must not make this program the one that takes the machine.
          if (performance.now() - startMs < 1) await new Promise(setImmediate);
        }
      };
      return Promise.all(Array.from({ length: count }, one)).then(() => answers);
    },
  };
}

/** Rules that are evaluated each second; they are taken away at the end. */
function rulesAttack(client) {
  const { tenantA } = client;
  const path = "/loki/api/v1/rules/heavy";
  return {
    name: "G10",
    what: "10 groups of 1000 rules, each second",
    times: 10,
    needs: ["tiny"],
    isTimed: true,
    run: async (count, signal) => {
      const options = { type: "application/yaml" };
      const groups = Array.from({ length: count }, (_, i) => rulesYaml(1000, `g${i}`));
      const answers = [];
      for (const body of groups) answers.push(await client.post(tenantA, path, body, options));
      if (!signal.aborted)
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      answers.push(await client.delete(tenantA, path));
      return answers;
    },
  };
}

function rulesYaml(count, name = "many") {
  const rule = (i) =>
    `  - record: r${i}\n    expr: sum(count_over_time({app="rows"} |= "n${i}" [1m]))\n`;
  return `name: ${name}\ninterval: 1s\nrules:\n${Array.from({ length: count }, (_, i) => rule(i)).join("")}`;
}

function keysYaml(count) {
  return `name: keys\nlabels:\n${Array.from({ length: count }, (_, i) => `  k${i}: v\n`).join("")}rules: []\n`;
}

function streamOf(labels, values) {
  return `{"streams":[{"stream":${JSON.stringify(labels)},"values":[${values}]}]}`;
}

function manyStreams(count) {
  const ns = `${Date.now()}000000`;
  const streams = Array.from(
    { length: count },
    (_, i) => `{"stream":{"f":"${i}"},"values":[["${ns}","x"]]}`,
  );
  return Buffer.from(`{"streams":[${streams}]}`);
}

function manyNames(count, push) {
  const ns = BigInt(Date.now()) * 1_000_000n;
  const values = Array.from({ length: count / 100 }, (_, row) => {
    const pairs = Array.from({ length: 100 }, (_, i) => `"n_${push}_${row * 100 + i}":"v"`);
    return `["${ns + BigInt(row)}","row ${row}",{${pairs}}]`;
  });
  return Buffer.from(streamOf({ app: "names" }, values));
}

/** Sends datagrams as fast as this program can, in turns with what else it does. */
async function sendDatagrams(datagram, signal) {
  const socket = createSocket("udp4");
  const send = () =>
    new Promise((resolve) => socket.send(datagram, syslogPort, "127.0.0.1", resolve));
  let sent = 0;
  while (!signal.aborted) {
    await Promise.all(Array.from({ length: 64 }, send));
    sent += 64;
    await new Promise(setImmediate);
  }
  socket.close();
  return { status: `${sent} sent`, ms: 0, bytes: 0, text: "" };
}

/** Sends a message without an end. */
async function sendEndless(port, chunk, signal) {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  let isOpen = true;
  socket.once("close", () => (isOpen = false));
  socket.write("<134>1 - h endless - - - ");
  while (!signal.aborted && isOpen) await new Promise((resolve) => socket.write(chunk, resolve));
  socket.destroy();
  return { status: "endless", ms: 0, bytes: 0, text: "" };
}

/** All that a client of HTTP/2 sends that asks for so much at once. */
function manyGets(count) {
  const bytes = rapidResets(count, {
    ":path": "/loki/api/v1/labels",
    "x-scope-orgid": "hostile-a",
  });
  // The frames after the preface and the settings are pairs of HEADERS and RST_STREAM; the latter have 13 bytes.
  const parts = [bytes.subarray(0, 24 + 9)];
  for (let at = 24 + 9; at < bytes.length; ) {
    const length = 9 + bytes.readUIntBE(at, 3);
    const frame = bytes.subarray(at, at + length);
    if (frame[3] === 1) {
      const ended = Buffer.from(frame);
      ended[4] |= 1;
      parts.push(ended);
    }
    at += length;
  }
  return Buffer.concat(parts);
}

/** Sends bytes on a connection of their own; resolves when it is closed, or `maxMs` after all was sent. */
function sendRaw(url, bytes, signal, maxMs = 30_000) {
  return onSocket(url, signal, (socket) => {
    socket.write(bytes, () => setTimeout(() => socket.destroy(), maxMs).unref());
  });
}

/** Sends most of a body, at once or piece by piece, and keeps the rest until the time is over or the server cuts it. */
function holdOpen(url, { tenant, body, length, everyMs }, signal) {
  return onSocket(url, signal, (socket) => {
    socket.write(head(tenant, `Content-Length: ${length}`));
    if (everyMs === undefined) {
      socket.write(body);
      return;
    }
    let sent = 0;
    const timer = setInterval(() => {
      if (socket.destroyed || sent + body.length > length) clearInterval(timer);
      else if (!socket.writableNeedDrain) socket.write(body);
      sent += body.length;
    }, everyMs);
    socket.once("close", () => clearInterval(timer));
  });
}

/** Sends a body in chunks of one byte. */
function sendChunks(url, { tenant, chunk }, signal) {
  return onSocket(url, signal, (socket) => {
    socket.setNoDelay(true);
    socket.write(head(tenant, "Transfer-Encoding: chunked"));
    const timer = setInterval(() => {
      if (socket.destroyed) clearInterval(timer);
      else for (let i = 0; i < 20 && !socket.writableNeedDrain; i++) socket.write(chunk);
    }, 5);
    socket.once("close", () => clearInterval(timer));
  });
}

function head(tenant, length) {
  const scope = tenant === undefined ? "" : `X-Scope-OrgID: ${tenant}\r\n`;
  return `POST ${pushPath} HTTP/1.1\r\nHost: a\r\n${scope}Content-Type: ${json}\r\n${length}\r\n\r\n`;
}

/** Resolves with the status line of what came when the connection is closed. */
function onSocket(url, signal, use) {
  const { hostname, port } = new URL(url);
  const startMs = performance.now();
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let text = "";
    const onAbort = () => socket.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    socket.on("data", (part) => {
      if (text.length < 200) text += part.toString("latin1", 0, 200);
      if (/^HTTP\/1\.1 [45]/.test(text)) setTimeout(() => socket.destroy(), 50).unref();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      signal.removeEventListener("abort", onAbort);
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]) || "closed";
      resolve({ status, ms: performance.now() - startMs, text });
    });
    socket.once("connect", () => use(socket));
  });
}
