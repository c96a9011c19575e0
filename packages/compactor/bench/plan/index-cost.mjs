// What day indexes cost, by making them with the code that makes them.
import { DayEdit, DayIndex, decodeDayIndex } from "@skald/storage";

const baseNs = 1_795_132_800_000_000_000n;
const dayMs = 86_400_000;
const apps = ["checkout", "payments", "gateway", "search", "users", "cart", "auth", "billing"];

/** Sizes and times of an index of so many streams, each of them in `held` of so many segments. Times are of the processor, ms. */
export function measureIndex({ streams, segments, held }) {
  const texts = streamTexts(streams);
  const added = Array.from({ length: segments }, (_, place) =>
    segmentOf(place, { texts, segments, held }),
  );
  const built = timed(() => {
    const edit = new DayEdit({ tenant: "a", baseNs });
    for (const one of added) edit.add(...one);
    return edit.encode({ generation: 1, writtenMs: 0 });
  });
  const bytes = built.result;
  const opened = timed(() => new DayIndex(decodeDayIndex("bench", bytes)));
  const index = opened.result;
  const one = segmentOf(segments, { texts, segments: segments + 1, held: 1 });
  const next = timed(() => {
    const edit = new DayEdit(index);
    edit.add(...one);
    return edit.encode({ generation: 2, writtenMs: 0 });
  });
  return {
    buildMs: built.ms,
    nextMs: next.ms,
    sizeBytes: bytes.byteLength,
    openMs: opened.ms,
    memoryBytes: index.image.byteLength,
    ...lookUps(index, texts),
  };
}

function timed(work) {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return { result, ms: (user + system) / 1000 };
}

function lookUps(index, texts) {
  const range = { fromNs: baseNs, toNs: baseNs + BigInt(dayMs) * 1_000_000n };
  const select = (name, op, value) => {
    const { result, ms } = timed(() => index.select(range, [{ name, op, value }]));
    if (result.length === 0) throw new Error(`nothing has ${name}${op}${value}`);
    return ms;
  };
  const podOf = (text) => /pod="([^"]+)"/.exec(text)[1];
  select("pod", "=", podOf(texts[0]));
  const pods = Array.from({ length: 9 }, (_, i) =>
    podOf(texts[Math.floor((texts.length * i) / 9)]),
  );
  const times = pods.map((pod) => select("pod", "=", pod)).sort((a, b) => a - b);
  return {
    podMs: times[times.length >> 1],
    appMs: select("app", "=", apps[3]),
    regexMs: select("pod", "=~", "cart-.*-0000[a-f].*"),
  };
}

function streamTexts(count) {
  return Array.from({ length: count }, (_, i) => {
    const app = apps[i % apps.length];
    const pod = `${app}-${(Math.imul(i, 0x9e3779b1) >>> 0).toString(16)}-${i.toString(16).padStart(5, "0")}`;
    return `{app="${app}", cluster="eu-1", container="main", namespace="team-${i % 40}", node="node-${i % 500}", pod="${pod}", stream="stdout"}`;
  }).sort();
}

/** Pods live for a while: neighbours in time have the same ones. */
function segmentOf(place, { texts, segments, held }) {
  const some = texts.filter((_, i) => (place - (i % segments) + segments) % segments < held);
  const span = dayMs / segments;
  const numbers = (of) => Float64Array.from(some, (_, i) => of(i));
  const from = Math.round(place * span) * 1e6;
  const segment = {
    id: `merged-${place.toString(16).padStart(32, "0")}`,
    minNs: baseNs + BigInt(from),
    maxNs: baseNs + BigInt(from + Math.round(span) * 1e6 - 1),
    ...{ sizeBytes: 2e8 + place, rows: 4e6 + place, lineBytes: 1e9 + place, level: 2 },
  };
  const upTo = (i, what, most) => mixed((place * 4 + what) * 1_000_003 + i) % most;
  const counts = {
    metadataNames: [],
    rows: numbers((i) => 100 + upTo(i, 0, 900)),
    lineBytes: numbers((i) => 20_000 + upTo(i, 1, 180_000)),
    minTimes: numbers((i) => from + upTo(i, 2, 60_000) * 1e6),
    maxTimes: numbers((i) => from + (60_000 + upTo(i, 3, 60_000)) * 1e6),
  };
  return [segment, some, counts];
}

/** A number that looks like any other: what logs count compresses badly. */
function mixed(number) {
  const low = Math.imul(number ^ (number >>> 16), 0x45d9f3b);
  return Math.imul(low ^ (low >>> 16), 0x45d9f3b) >>> 0;
}
