import type { Client } from "../client/client.js";
import type { LabelSet } from "../output/entries.js";
import { Failure } from "../shell/command.js";

/** Rows of one stream, as a push has them. */
export interface PushedStream {
  readonly stream: LabelSet;
  readonly values: readonly (readonly [ns: string, line: string, metadata?: LabelSet])[];
}

/** A push that is refused for its rate is repeated so often as it is: it may be above the burst, and then never passes. */
const busyRetries = 1;

export interface PushOptions {
  readonly retries: number;
  /** Takes a note for the user. */
  readonly tell: (note: string) => void;
}

/**
 * Stores rows; resolves with what the server said of those that it does not take. Rows that are too large for one request, or for the
 * burst of the tenant, are sent in halves. A single row that is refused for its rate waits. A message says so at once, because a
 * row above the burst waits in vain. Throws a `Failure` when rows could not be stored.
 */
export async function pushStreams(
  client: Client,
  streams: readonly PushedStream[],
  options: PushOptions,
): Promise<readonly string[]> {
  const rows = streams.reduce((sum, { values }) => sum + values.length, 0);
  try {
    await client.call("/loki/api/v1/push", {
      ...{ method: "POST", body: JSON.stringify({ streams }), retries: options.retries },
      ...(rows > 1 ? { busyRetries } : { onBusy: options.tell }),
      headers: { "content-type": "application/json" },
    });
    return [];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    // Of a request with bad rows the others are stored.
    if (/answered 400: /.test(error.message)) return [error.message];
    if (rows === 1 || !/answered (413|429): /.test(error.message)) throw error;
    const [first, second] = halvesOf(streams, rows);
    const refusals = await pushStreams(client, first, options);
    return [...refusals, ...(await pushStreams(client, second, options))];
  }
}

function halvesOf(
  streams: readonly PushedStream[],
  rows: number,
): [PushedStream[], PushedStream[]] {
  const first: PushedStream[] = [];
  const second: PushedStream[] = [];
  let left = rows >> 1;
  for (const { stream, values } of streams) {
    const [before, behind] = [values.slice(0, left), values.slice(left)];
    left -= before.length;
    if (before.length > 0) first.push({ stream, values: before });
    if (behind.length > 0) second.push({ stream, values: behind });
  }
  return [first, second];
}
