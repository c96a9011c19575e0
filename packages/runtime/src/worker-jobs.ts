import { parentPort, workerData } from "node:worker_threads";
import { errorStatus, SkaldError } from "@skald/model";
import type { JobError, JobReply } from "./worker-pool.js";

export interface JobContext {
  /** Throws `cancelled` when the caller has gone; call it between blocks. */
  check(): void;
}

/** A result with the buffers that move to the caller instead of being copied. */
export interface JobResult {
  readonly value: unknown;
  readonly transfer?: readonly ArrayBuffer[];
}

export type JobHandler = (payload: never, context: JobContext) => JobResult | Promise<JobResult>;

/** The other end of `WorkerPool`: answers jobs by name, one at a time, on this worker thread. */
export function serveJobs(handlers: Readonly<Record<string, JobHandler>>): void {
  const port = parentPort;
  if (port === null) throw new Error("serveJobs must run in a worker thread");
  const cancel = (workerData as { cancel: Int32Array }).cancel;
  port.on(
    "message",
    async ({ id, name, payload }: { id: number; name: string; payload: never }) => {
      const check = () => {
        if (Atomics.load(cancel, 0) !== id) return;
        throw new SkaldError("cancelled", "the request was cancelled by the client");
      };
      let reply: JobReply;
      let transfer: readonly ArrayBuffer[] = [];
      try {
        const handler = handlers[name];
        if (handler === undefined) throw new Error(`no handler for job ${name}`);
        const result = await handler(payload, { check });
        reply = { id, value: result.value };
        transfer = result.transfer ?? [];
      } catch (error) {
        reply = { id, error: describe(error) };
      }
      try {
        // A buffer moves once; empty ones are shared constants, cheaper to copy than to lose.
        const moved = new Set(transfer.filter((buffer) => buffer.byteLength > 0));
        port.postMessage(reply, [...moved]);
      } catch (error) {
        port.postMessage({ id, error: describe(error) });
      }
    },
  );
}

function describe(error: unknown): JobError {
  if (error instanceof SkaldError)
    return { code: error.code, message: error.message, status: error.status };
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "internal", message: text, status: errorStatus.internal };
}
