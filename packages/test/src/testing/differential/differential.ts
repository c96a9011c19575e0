import { type Answered, compareAnswers, type Difference, type DifferenceClass } from "./compare.js";
import type { PushStream } from "./data.js";
import type { Asked } from "./queries.js";

/** The number of calls at a time. */
const width = 4;
const tries = 3;

export interface ServerAddress {
  readonly url: string;
  readonly tenant?: string;
  /** Sent with each query. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends the pushes in order; throws with the text of a refusal. */
export async function pushAll(
  server: ServerAddress,
  pushes: readonly (readonly PushStream[])[],
): Promise<void> {
  for (const streams of pushes) {
    const headers = { "content-type": "application/json", ...tenantHeader(server) };
    const body = JSON.stringify({ streams });
    const answer = await fetch(`${server.url}/loki/api/v1/push`, { method: "POST", headers, body });
    const text = await answer.text();
    if (answer.status !== 204) throw new Error(`push to ${server.url}: ${answer.status} ${text}`);
  }
}

/** Makes all calls, several at a time; resolves with the answers in the order of the calls. */
export async function askAll(server: ServerAddress, calls: readonly Asked[]): Promise<Answered[]> {
  const answers: Answered[] = [];
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < calls.length; i = next++)
      answers[i] = await ask(server, calls[i] as Asked);
  };
  await Promise.all(Array.from({ length: width }, lane));
  return answers;
}

/** The differences by class, each with its call. */
export function compareAll(
  calls: readonly Asked[],
  a: readonly Answered[],
  b: readonly Answered[],
): Map<DifferenceClass, (Difference & { readonly call: Asked })[]> {
  const found = new Map<DifferenceClass, (Difference & { readonly call: Asked })[]>();
  for (const [i, call] of calls.entries()) {
    const difference = compareAnswers(a[i] as Answered, b[i] as Answered);
    if (difference === undefined) continue;
    const same = found.get(difference.kind) ?? [];
    same.push({ ...difference, call });
    found.set(difference.kind, same);
  }
  return found;
}

async function ask(server: ServerAddress, { path, params }: Asked): Promise<Answered> {
  for (let left = tries; ; left--) {
    const url = `${server.url}${path}?${new URLSearchParams(params)}`;
    const answer = await fetch(url, { headers: { ...server.headers, ...tenantHeader(server) } });
    const text = await answer.text();
    // An answer that timed out on a busy machine says nothing.
    if (left > 1 && (answer.status === 429 || answer.status === 503)) continue;
    return { status: answer.status, text };
  }
}

function tenantHeader({ tenant }: ServerAddress): Record<string, string> {
  return tenant === undefined ? {} : { "x-scope-orgid": tenant };
}
