// What a hostile agent sends to each door, in turns: the attacks of `attacks.mjs` that speak other protocols than Loki's.
import { gzipSync } from "node:zlib";

const MiB = 1024 * 1024;
const gzip = { "content-encoding": "gzip" };

/** The rows G15 of docs/limits.md; `attack` makes one of a name and a function that sends once. */
export function doorAttacks(client, attack) {
  const inTurns = (name, what, times, requestsOf) =>
    attack(name, what, times, () => {
      const requests = requestsOf();
      let n = 0;
      return (signal) => {
        const { path, body, headers } = requests[n++ % requests.length];
        return client.post(client.tenantA, path, body, { type: "text/plain", headers, signal });
      };
    });
  return [
    inTurns("G15a", "JSON lines: 10 MB, 10,000 fields, no JSON, a bomb", 10, () => {
      const path = "/insert/jsonline?message_field=m&labels=a";
      const fields = Array.from({ length: 10_000 }, (_, i) => `"f${i}":${i}`).join(",");
      return [
        { path, body: Buffer.from(`{"m":"${"x".repeat(10_000_000)}"}`) },
        { path, body: Buffer.from(`{"m":"x",${fields}}\n`.repeat(20)) },
        { path, body: Buffer.from("x\n".repeat(MiB)) },
        { path, body: gzipSync(Buffer.alloc(256 * MiB, "{}\n")), headers: gzip },
      ];
    }),
    inTurns("G15b", "a bulk of a million actions, half bulks, new streams", 10, () => {
      const path = "/elasticsearch/_bulk?labels=a";
      const many = Array.from({ length: 40_000 }, (_, i) => `{"index":{}}\n{"a":"${i}"}\n`);
      return [
        { path, body: Buffer.from('{"index":{}}\n{}\n'.repeat(1_000_000)) },
        { path, body: Buffer.from('{"index":{}}\n{"a":\n'.repeat(9_000)) },
        { path, body: Buffer.from(many.join("")) },
      ];
    }),
    inTurns("G15c", "Splunk: nested 1000 deep, events of one byte", 10, () => {
      const path = "/services/collector";
      const deep = `{"event":${'{"a":'.repeat(1000)}1${"}".repeat(1000)}}`;
      return [
        { path, body: Buffer.from(deep.repeat(500)) },
        { path, body: Buffer.from('{"event":1}'.repeat(100_000)) },
      ];
    }),
    inTurns("G15d", "Datadog: tags of 1 MB, half an array", 10, () => {
      const path = "/api/v2/logs";
      const tags = Array.from({ length: 100_000 }, (_, i) => `t${i}:v`).join(",");
      return [
        { path, body: Buffer.from(`[{"message":"x","ddtags":"${tags}"}]`) },
        { path, body: Buffer.from(`[${'{"message":"x"},'.repeat(100_000)}`) },
      ];
    }),
    inTurns("G15e", "a journal: fields of 64 MB, no end of an entry", 5, () => {
      const path = "/insert/journald/upload";
      const length = Buffer.alloc(8);
      length.writeBigUInt64LE(BigInt(64 * MiB));
      return [
        {
          path,
          body: Buffer.concat([
            Buffer.from("B\n"),
            length,
            Buffer.alloc(64 * MiB),
            Buffer.from("\n\n"),
          ]),
        },
        { path, body: Buffer.from("A=1\n".repeat(4 * MiB)) },
      ];
    }),
  ];
}
