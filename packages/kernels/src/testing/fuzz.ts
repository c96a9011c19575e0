import { mutate, type Random, seededRandom } from "@skald/testkit";
import snappy from "snappy";
import { loadKernels } from "../load.js";
import type { RawPush } from "../shared/raw-push.js";
import { jsonOracle, someLabels } from "./json-oracle.js";
import { outcomeOf } from "./outcome.js";
import { pushRequestType, wideLimits } from "./push-oracle.js";

/** How often each outcome came. */
export interface FuzzCounts {
  accepted: number;
  refused: number;
}

/**
 * Decodes mutated push bodies with both forms, `count` of them, and throws when they differ, when a column points
 * outside of the bytes, or when JSON.parse sees a JSON body otherwise. The message names the seed of the body.
 */
export function fuzzPushes(count: number, seed: number): FuzzCounts {
  const counts = { accepted: 0, refused: 0 };
  for (let i = 0; i < count; i++) {
    const bodySeed = (seed + i) >>> 0;
    try {
      const outcome = fuzzOne(seededRandom(bodySeed));
      if (outcome.startsWith("[")) counts.accepted++;
      else counts.refused++;
    } catch (error) {
      throw new Error(`fuzz seed ${bodySeed}`, { cause: error });
    }
  }
  return counts;
}

const twin = loadKernels("twin");
const wasm = loadKernels("wasm");
const limits = {
  ...wideLimits,
  maxDecodedBytes: 1 << 20,
  maxStreams: 4,
  maxRows: 12,
  maxPairs: 16,
};

function fuzzOne(random: Random): string {
  const form = random(3);
  if (form === 0) {
    const body = mutate(snappy.compressSync(protobufBody(random)), random);
    return both(
      () => twin.decodeSnappyProtobufPush(body, limits),
      () => wasm.decodeSnappyProtobufPush(body, limits),
    );
  }
  if (form === 1) {
    const body = snappy.compressSync(Buffer.from(mutate(protobufBody(random), random)));
    return both(
      () => twin.decodeSnappyProtobufPush(body, limits),
      () => wasm.decodeSnappyProtobufPush(body, limits),
    );
  }
  const body = mutate(jsonBody(random), random);
  const outcome = both(
    () => twin.scanJsonPush(body, limits),
    () => wasm.scanJsonPush(body, limits),
  );
  askOracle(body, outcome);
  return outcome;
}

function both(first: () => RawPush, second: () => RawPush): string {
  const want = outcomeOf(first);
  const got = outcomeOf(second);
  if (want !== got) throw new Error(`forms differ\ntwin: ${want}\nwasm: ${got}`);
  return want;
}

function askOracle(body: Uint8Array, outcome: string): void {
  const want = jsonOracle(body);
  // Limits are not the business of JSON.parse, and neither is the depth at which kernels stop.
  if (want === undefined || outcome.startsWith("too_large")) return;
  const got = outcome.startsWith("[") ? comparable(outcome) : "reject";
  const wanted = want === "reject" ? want : comparable(JSON.stringify(want));
  if (got !== wanted) throw new Error(`json.parse differs\nwant: ${wanted}\ngot: ${outcome}`);
}

/** Of labels only their presence, and pairs in one order: JavaScript's objects put names such as `31` first. */
function comparable(push: string): string {
  return JSON.stringify(
    JSON.parse(push, (key, value) => {
      if (key === "labels" && value !== "") return someLabels;
      return key === "pairs" ? value.sort() : value;
    }),
  );
}

const lines = [
  "",
  "plain text",
  'level=info msg="a \\"b\\" c" path=/x?y=1',
  '{"level":"error","nested":{"k":[1,2,{"z":null}]}}',
  "tab\there, newline\nthere, control \u0001",
  "umlaut äöü, emoji 😀, lone \ud83d",
  "repeat ".repeat(20),
];

function entriesOf(random: Random): { time: string; line: string; pairs: [string, string][] }[] {
  return Array.from({ length: random(4) }, () => ({
    time: String(BigInt(random(4_000_000_000)) * BigInt(random(4_000_000_000)) - BigInt(random(9))),
    line: lines[random(lines.length)]!,
    pairs: Array.from({ length: random(3) }, (_, i) => [`k${i}`, lines[random(4)]!]),
  }));
}

function jsonBody(random: Random): Uint8Array {
  const streams = Array.from({ length: random(3) }, () => ({
    stream: { app: lines[random(4)], n: random(2) === 0 ? "x" : 5 },
    values: entriesOf(random).map(({ time, line, pairs }) =>
      pairs.length === 0 ? [time, line] : [time, line, Object.fromEntries(pairs)],
    ),
    ...(random(4) === 0 ? { extra: [true, false, null, -1.5e3, { a: {} }] } : {}),
  }));
  return Buffer.from(JSON.stringify({ streams }, null, random(4) === 0 ? " " : ""));
}

function protobufBody(random: Random): Buffer {
  const streams = Array.from({ length: random(3) }, () => ({
    labels: '{app="a"}',
    hash: random(1000),
    entries: entriesOf(random).map(({ line, pairs }) => ({
      timestamp: { seconds: random(2_000_000_000) - 5, nanos: random(999_999_999) },
      line: Buffer.from(line),
      structuredMetadata: pairs.map(([name, value]) => ({ name, value })),
    })),
  }));
  return Buffer.from(pushRequestType.encode({ streams, format: "f" }).finish());
}
