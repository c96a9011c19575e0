import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { labelsFromObject } from "@skald/model";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { until } from "@skald/testkit";
import { compileRelabels } from "./relabel.js";
import { RemoteWriter, readClients, remoteWriteMetrics } from "./remote-writer.js";
import { SampleLog } from "./sample-log.js";
import { compressSnappy, encodeWriteRequest, type TimedSample } from "./write-request.js";

/** A decoder of raw snappy that knows only what the format says. */
function decode(block: Uint8Array): Buffer {
  let at = 0;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = block[at++]!;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  const out: number[] = [];
  while (at < block.length) {
    const tag = block[at++]!;
    let size = (tag >>> 2) + 1;
    if ((tag & 3) === 0) {
      const extra = Math.max(0, size - 60);
      if (extra > 0) size = 1;
      for (let i = 0; i < extra; i++) size += block[at++]! << (8 * i);
      for (let i = 0; i < size; i++) out.push(block[at++]!);
    } else {
      const offset = block[at]! + (block[at + 1]! << 8);
      at += 2;
      for (let i = 0; i < size; i++) out.push(out[out.length - offset]!);
    }
  }
  expect(out.length).toBe(length);
  return Buffer.from(out);
}

it.each([
  ["nothing", ""],
  ["a letter", "a"],
  ["repetition", "ab".repeat(100_000)],
  ["numbers", Array.from({ length: 30_000 }, (_, i) => i * 7919).join(" ")],
])("snappy of %s decodes to it", (_, text) => {
  const block = compressSnappy(Buffer.from(text));
  expect(decode(block).toString() === text).toBe(true);
});

it("writes requests as the protocol has them", () => {
  const labels = labelsFromObject({ __name__: "n" });
  const bytes = Buffer.from(encodeWriteRequest([{ labels, value: undefined, timeMs: 300 }]));
  expect(bytes.toString("hex")).toBe(
    `0a1d${"0a0d"}${"0a085f5f6e616d655f5f"}${"12016e"}${"120c"}${"09020000000000f07f"}${"10ac02"}`,
  );
});

describe("a log of samples", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "ruler-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const make = (timeMs: number, value: number | undefined = 1): TimedSample => ({
    labels: labelsFromObject({ __name__: "n", a: `v"${timeMs}` }),
    value,
    timeMs,
  });
  const open = async (maxBytes = 1e9) => {
    const log = new SampleLog(folder, { maxBytes, nowMs: () => 1e12 });
    await log.open();
    return log;
  };

  it("gives everything back in order over restarts, but what a crash cut off or damaged", async () => {
    const first = await open();
    await first.append([make(1), make(2, Number.NaN), make(3, Number.POSITIVE_INFINITY)]);
    await first.append([{ ...make(4), value: undefined }]);
    await first.close();
    const [name] = readdirSync(folder).filter((one) => one.endsWith(".log"));
    appendFileSync(join(folder, name!), "00000000 [[1,2]]\n1234 [[5,1");
    const second = await open();
    await second.append([make(6)]);
    let position = await second.loadPosition("c");
    const times: (number | undefined)[][] = [];
    for (;;) {
      const { samples, next } = await second.read(position);
      times.push(...samples.map(({ timeMs, value }) => [timeMs, value]));
      position = next;
      if (samples.length === 0) break;
    }
    expect(times).toEqual([
      [1, 1],
      [2, Number.NaN],
      [3, Number.POSITIVE_INFINITY],
      [4, undefined],
      [6, 1],
    ]);
    await second.savePosition("c", position);
    expect(await second.loadPosition("c")).toEqual(position);
    writeFileSync(join(folder, "c.position"), "{");
    expect(await second.loadPosition("c")).toEqual({ file: 0, offset: 0 });
    await second.close();
  });

  it("says how many samples are not sent yet", async () => {
    const log = await open();
    await log.append([make(1), make(2), make(3)]);
    const requests: (() => void)[] = [];
    const server = createServer((request, response) => {
      request.resume();
      requests.push(() => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const queue_config = { max_samples_per_send: 2, batch_send_deadline: "1ms" };
    const [client] = readClients({ c: { url: `http://127.0.0.1:${port}`, queue_config } }, {});
    const metrics = new Metrics();
    const writer = new RemoteWriter({
      ...{ tenant: "t", client: client!, log, headers: {}, logger: silentLogger() },
      metrics: remoteWriteMetrics(metrics),
    });
    const pending = async () =>
      /remote_storage_samples_pending\{[^}]*\} (\d+)/.exec((await metrics.read()).text)?.[1];
    const seen: (string | undefined)[] = [];
    for (let sent = 0; sent < 2; sent++) {
      await until(() => requests.length > sent);
      seen.push(await pending());
      requests[sent]?.();
    }
    await until(async () => (await pending()) === "0");
    expect(seen).toEqual(["3", "1"]);
    await writer.stop();
    await log.close();
    server.close();
  });

  it("drops its oldest files for room, and what was read", async () => {
    const log = await open(20 * 1024 * 1024);
    const many = Array.from({ length: 1000 }, (_, i) => ({
      ...make(i),
      labels: labelsFromObject({ a: "x".repeat(1000) }),
    }));
    let dropped = 0;
    for (let i = 0; i < 30; i++) dropped += await log.append(many);
    expect(dropped).toBeGreaterThan(0);
    expect(log.sizeBytes).toBeLessThan(21 * 1024 * 1024);
    const ages = { minAgeMs: 0, maxAgeMs: 1e9 };
    expect(await log.truncate([{ file: 99, offset: 0 }], ages)).toBe(0);
    expect(readdirSync(folder).length).toBe(1);
    await log.close();
  });
});

it.each([
  [
    [
      {
        action: "replace",
        source_labels: ["a", "b"],
        regex: "(.*);(.*)",
        target_label: "c",
        replacement: "$2-$1",
      },
    ],
    { a: "1", b: "2", c: "2-1" },
  ],
  [[{ action: "drop", source_labels: ["a"], regex: "1" }], undefined],
  [[{ action: "keep", source_labels: ["a"], regex: "1" }], { a: "1", b: "2" }],
  [[{ action: "labeldrop", regex: "b" }], { a: "1" }],
  [[{ action: "labelkeep", regex: "b" }], { b: "2" }],
  [[{ action: "labelmap", regex: "(a)", replacement: "x_${1}" }], { a: "1", b: "2", x_a: "1" }],
  [[{ target_label: "b", replacement: "" }], { a: "1" }],
])("relabels by %j", (configs, want) => {
  const labels = compileRelabels(configs)(labelsFromObject({ a: "1", b: "2" }));
  expect(labels).toEqual(
    want === undefined ? undefined : labelsFromObject(want as unknown as Record<string, string>),
  );
});
