// CPU of decoding OTLP and of putting the batch together, in MB of the body a second, one thread.
//
//     node packages/push/bench/otlp.mjs
//
//                                                       protobuf  JSON   (Node 24, two shared cores)
// an agent: one file a resource, no attributes                 93    116
// a collector: 20 records a resource, 5 attributes            126    116
// an application: 500 records a resource, 12 attributes       150    107
import { assembleBatch, decodeBody, resolveMetadataNames } from "@skald/push";
import { encodeRequest } from "../dist/testing/otlp.js";

const records = 2000;
const seconds = 3;
const text = (value) => ({ stringValue: value });
const attribute = (key, value) => ({ key, value });

const mapping = {
  resource: [{ action: "index_label", attributes: ["service.name", "k8s.pod.name"], regex: "" }],
  scope: [],
  log: [],
  severityTextAsLabel: false,
};
const otlp = { mapping, receivedMs: Date.now() };
const takes = [];

const shapes = {
  "an agent: one file a resource, no attributes": { perResource: 500, attributes: 0 },
  "a collector: 20 records a resource, 5 attributes": { perResource: 20, attributes: 5 },
  "an application: 500 records a resource, 12 attributes": { perResource: 500, attributes: 12 },
};

for (const [name, shape] of Object.entries(shapes)) {
  const rates = [rate("otlp_protobuf", encodeRequest(requestOf(shape)))];
  if (process.argv[2] !== "protobuf") {
    rates.push(rate("otlp_json", Buffer.from(JSON.stringify(requestOf(shape)))));
  }
  console.log(name.padEnd(56), ...rates.map((value) => String(Math.round(value)).padStart(6)));
}

function rate(format, body) {
  const input = { format, encoding: "identity", body, otlp };
  for (let i = 0; i < 3; i++) run(input);
  const start = process.cpuUsage();
  const end = performance.now() + seconds * 1000;
  let bytes = 0;
  while (performance.now() < end) {
    run(input);
    bytes += body.length;
  }
  const { user, system } = process.cpuUsage(start);
  return bytes / (user + system);
}

function run(input) {
  takes.at = 0;
  const push = decodeBody(input, undefined, take);
  const streams = Array.from({ length: push.streamCount }, (_, ordinal) => {
    return { ordinal, labels: { names: [], values: [] }, text: "{}" };
  });
  const levels = new Uint8Array(push.rowCount);
  const names = resolveMetadataNames(push);
  for (let step = names.next(); ; step = names.next()) {
    if (step.done) {
      return assembleBatch(push, {
        streams,
        dropped: new Uint32Array(0),
        levels,
        names: step.value,
      });
    }
  }
}

/** Memory that is used again, as a server has it. */
function take(length) {
  const at = takes.at++;
  if ((takes[at]?.length ?? 0) < length + 64) takes[at] = new Uint8Array(length * 1.25 + 64);
  return takes[at].subarray(0, length);
}

function requestOf({ perResource, attributes }) {
  const now = BigInt(otlp.receivedMs) * 1_000_000n;
  const resourceLogs = [];
  for (let first = 0; first < records; first += perResource) {
    const logRecords = Array.from({ length: perResource }, (_, i) => ({
      timeUnixNano: String(now + BigInt(first + i)),
      observedTimeUnixNano: String(now + BigInt(first + i) + 1000n),
      severityNumber: 9,
      severityText: "INFO",
      body: text(
        `level=info method=GET path=/api/v1/items/${first + i} status=200 duration=12ms bytes=5120`,
      ),
      attributes: Array.from({ length: attributes }, (_, k) =>
        attribute(
          `http.attribute.${k}`,
          k % 3 === 0 ? { intValue: String(i * k) } : text(`value-${i}`),
        ),
      ),
      traceId: "5b8efff798038103d269b633813fc60c",
      spanId: "eee19b7ec3c1b174",
    }));
    const resource = {
      attributes: [
        attribute("service.name", text("shop")),
        attribute("k8s.pod.name", text(`pod-${first}`)),
        ...["host.name", "os.type", "cloud.provider", "telemetry.sdk.name"].map((key) =>
          attribute(key, text(`of ${key}`)),
        ),
      ],
    };
    resourceLogs.push({ resource, scopeLogs: [{ scope: { name: "lib" }, logRecords }] });
  }
  return { resourceLogs };
}
