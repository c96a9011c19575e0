import { mock } from "node:test";
import { expect, it } from "@jest/globals";
import { WorkerPool } from "@skald/runtime";
import { startProcess } from "../../testing/start-process.js";

it("sends a thread the bytes of a piece, without the memory that a long record left", async () => {
  const process = await startProcess([]);
  const sent: [name: string, bytes: number, held: number][] = [];
  const { run } = WorkerPool.prototype;
  type Args = Parameters<WorkerPool["run"]>;
  const watched = mock.method(
    WorkerPool.prototype,
    "run",
    function (this: WorkerPool, ...args: Args) {
      const [name, payload] = args;
      if (name === "decode_records") {
        const { body } = (payload as { input: { body: Uint8Array } }).input;
        sent.push([name, body.length, body.buffer.byteLength]);
      }
      return run.apply(this, args);
    },
  );
  try {
    const long = `{"_msg":"${"x".repeat(8_000_000)}"}\n`;
    const body = long + '{"_msg":"y"}\n'.repeat(400_000);
    const answer = await fetch(`${process.url}/insert/jsonline`, { method: "POST", body });
    expect(answer.status).toBe(400);
    expect(sent.length).toBeGreaterThan(4);
    expect(sent.filter(([, bytes, held]) => held > bytes)).toEqual([]);
  } finally {
    watched.mock.restore();
    await process.stop();
  }
}, 30_000);
