import type { InstantAnswer, InstantQuerier } from "@skald/contracts";
import {
  type ErrorCode,
  errorStatus,
  labelsFromObject,
  SkaldError,
  unavailable,
} from "@skald/model";
import { type Connection, post } from "./send/post.js";

interface HttpQuerierOptions {
  /** The address of a query frontend: `http://host:port`. */
  readonly url: string;
  readonly tls: NonNullable<Connection["tls"]>;
  readonly limitsOf: (tenant: string) => {
    readonly ruler_remote_evaluation_timeout: number;
    readonly ruler_remote_evaluation_max_response_size: number;
  };
}

const usualTimeoutMs = 60_000;
const usualAnswerBytes = 100 * 1024 * 1024;

/** Asks another process over the query API. */
export function httpQuerier({ url, tls, limitsOf }: HttpQuerierOptions): InstantQuerier {
  return {
    instant: async ({ tenant, query, timeNs }, { signal }) => {
      const limits = limitsOf(tenant);
      const maxBytes = limits.ruler_remote_evaluation_max_response_size || usualAnswerBytes;
      const body = new URLSearchParams({ query, time: String(timeNs) }).toString();
      const headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-scope-orgid": tenant,
        "x-loki-actor-path": rulerActor,
      };
      const timeoutMs = limits.ruler_remote_evaluation_timeout || usualTimeoutMs;
      const connection = { timeoutMs, headers, credentials: {}, tls, maxAnswerBytes: maxBytes + 1 };
      const target = `${url.replace(/\/+$/, "")}/loki/api/v1/query`;
      const { status, text } = await post(target, Buffer.from(body), connection, signal);
      if (text.length > maxBytes) throw unavailable(`the answer is larger than ${maxBytes} bytes`);
      return readInstantAnswer(status, text);
    },
  };
}

/** The actor of rules within a tenant, for the queues of queriers. */
export const rulerActor = "ruler";

/** Reads an answer of the query API. Throws the error that the query was refused with. */
function readInstantAnswer(status: number, text: string): InstantAnswer {
  if (status !== 200) {
    const codes = Object.entries(errorStatus) as [ErrorCode, number][];
    const code = codes.find(([, other]) => other === status)?.[0] ?? "unavailable";
    throw new SkaldError(code, text.trim(), { status });
  }
  const { data } = JSON.parse(text) as { data: { resultType: string; result: unknown } };
  if (data.resultType === "scalar") {
    const [, value] = data.result as [number, string];
    return { kind: "scalar", value: numberOf(value) };
  }
  if (data.resultType !== "vector") return { kind: "other" };
  const found = data.result as { metric: Record<string, string>; value: [number, string] }[];
  const samples = found.map(({ metric, value }) => ({
    labels: labelsFromObject(metric),
    value: numberOf(value[1]),
  }));
  return { kind: "vector", samples };
}

function numberOf(text: string): number {
  if (text === "+Inf") return Number.POSITIVE_INFINITY;
  return text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text);
}
