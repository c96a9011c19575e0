// Bytes between a querier and three ingesters that hold the same rows, as messages are encoded. An hour of 100 streams, 35 MB of
// lines; the last rows have not reached every ingester yet. Digests 85 kB, hashes of the last minute 174 kB, scans 107 kB: 1.04 % of
// the lines for both queries. Digests and scans are the same for more rows of as many streams.

import { selection, selectRequest } from "../../contracts/dist/codec/ingester-messages.js";
import { minuteDigests, placedHashes } from "../../contracts/dist/codec/scan/digests.js";
import { digestsCall, rowHashesCall, scanCall } from "../../contracts/dist/codec/scan/tasks.js";
import { makeHead, row } from "../../scan/dist/testing/sources.js";
import { encodeMessage } from "../../transport/dist/protobuf.js";
import { LocalScanner } from "../dist/testing/local-scanner.js";
import { plain } from "../dist/testing/plain.js";
import { replicatedQuerierOf } from "../dist/testing/querier.js";
import { never, planOf } from "../dist/testing/requests.js";

const rowCount = 150_000;
const streams = 100;
const hourNs = 3600e9;
const rows = Array.from({ length: rowCount }, (_, i) =>
  row(`app-${i % streams}`, Math.floor((i / rowCount) * hourNs), lineOf(i)),
);
const rawBytes = rows.reduce((sum, { line }) => sum + line.length, 0);

function lineOf(i) {
  const id = (i * 2654435761) % 2 ** 32;
  return `level=info ts=${i} msg="request done" path=/api/v1/items/${id} status=200 duration=${i % 977}ms trace=${id.toString(16).padStart(32, "0")} agent="client/1.0 (linux; x64)" ${"x".repeat(70)}`;
}

// Heads that were frozen at other moments, and what is still on its way.
const replicas = [0, 1, 2].map((at) => {
  const cut = Math.floor(rowCount * (0.4 + at * 0.1));
  const held = rows.slice(0, rowCount - at * 150);
  const heads = [held.slice(0, cut), held.slice(cut)];
  return {
    sources: heads.map((some, i) => makeHead(some, { id: `h${at}${i}`, rowsPerBlock: 4000 })),
  };
});

let bytes = {};
const messages = {
  select: [selectRequest, selection],
  scan: [scanCall, undefined],
  digests: [digestsCall, minuteDigests],
  rowHashes: [rowHashesCall, placedHashes],
};

/** Counts what a call takes when it is sent. */
function count(name, message, options, answer) {
  const [request, reply] = messages[name] ?? [];
  if (request === undefined) return;
  const sent = name === "select" ? message : { task: message, share: options.share };
  const size =
    encodeMessage(request, sent).length +
    (answer instanceof Uint8Array ? answer.length : encodeMessage(reply, answer).length);
  bytes[name] = (bytes[name] ?? 0) + size;
}

const limits = { maxBytesRead: 0, maxMemoryBytes: 1e9 };
for (const query of [
  "sum by (app) (rate({app=~`.+`}[1m]))",
  "sum by (app) (count_over_time({app=~`.+`} |= `status=200` [5m]))",
]) {
  bytes = {};
  const scanner = new LocalScanner(2);
  const querier = replicatedQuerierOf(scanner, { replicas, store: [], onCall: count });
  const plan = planOf(query, { from: 0, to: hourNs, stepNs: 60_000_000_000n });
  const started = performance.now();
  const answer = await querier.run("query", { tenants: ["t"], plan, limits }, never);
  const total = Object.values(bytes).reduce((sum, one) => sum + one, 0);
  console.log(
    `${query}: ${total} bytes, ${((total / rawBytes) * 100).toFixed(2)} % of ${rawBytes}, ` +
      `${(performance.now() - started).toFixed(0)} ms, ${plain(answer).length} series`,
    bytes,
  );
}
