import { parentPort, workerData } from "node:worker_threads";
import { type ErrorCode, errorStatus, SkaldError } from "@skald/model";

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

/** What a pool asks of a thread. */
export interface JobRequest {
  readonly id: number;
  readonly name: string;
  readonly payload: unknown;
}

/** What a thread answers; an error crosses as its parts. */
export type JobReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: JobError };

export interface JobError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status: number;
  readonly detail?: unknown;
  /** Of errors that nobody foresaw. */
  readonly stack?: string;
}

/** The other end of `WorkerPool`: answers jobs by name, one at a time, on this worker thread. */
export function serveJobs(handlers: Readonly<Record<string, JobHandler>>): void {
  const port = parentPort;
  if (port === null) throw new Error("serveJobs must run in a worker thread");
  const { cancel } = workerData as { cancel: Int32Array };
  port.on("message", async (request: JobRequest) => {
    const { reply, transfer } = await runJob(handlers, request, cancel);
    try {
      port.postMessage(reply, transfer);
    } catch (error) {
      port.postMessage({ id: request.id, error: withoutDetail(describe(error)) });
    }
  });
  port.postMessage("ready");
}

async function runJob(
  handlers: Readonly<Record<string, JobHandler>>,
  { id, name, payload }: JobRequest,
  cancel: Int32Array,
): Promise<{ reply: JobReply; transfer: ArrayBuffer[] }> {
  const check = () => {
    if (Atomics.load(cancel, 0) !== id) return;
    throw new SkaldError("cancelled", "the request was cancelled by the client");
  };
  try {
    const handler = handlers[name];
    if (handler === undefined) throw new Error(`no handler for job ${name}`);
    const { value, transfer = [] } = await handler(payload as never, { check });
    // A buffer moves once; empty ones are shared constants, cheaper to copy than to lose.
    const moved = new Set(transfer.filter((buffer) => buffer.byteLength > 0));
    return { reply: { id, value }, transfer: [...moved] };
  } catch (error) {
    return { reply: { id, error: describe(error) }, transfer: [] };
  }
}

function describe(error: unknown): JobError {
  if (error instanceof SkaldError) {
    const { code, message, status, detail } = error;
    return { code, message, status, ...(detail === undefined ? {} : { detail }) };
  }
  const message = error instanceof Error ? error.message : String(error);
  const stack = error instanceof Error ? error.stack : undefined;
  const fault = { code: "internal" as const, message, status: errorStatus.internal };
  return stack === undefined ? fault : { ...fault, stack };
}

function withoutDetail({ detail: _, ...error }: JobError): JobError {
  return error;
}
