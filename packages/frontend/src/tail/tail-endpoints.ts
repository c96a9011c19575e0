import { decodeLogRows, type Tailer } from "@skald/contracts";
import type { LogResult } from "@skald/logql";
import { type Clock, internal, invalidArgument, SkaldError } from "@skald/model";
import type { SocketRequest, SocketRoute, SocketSession } from "@skald/transport";
import {
  type EndpointDocs,
  type HttpRequest,
  type HttpResponse,
  type Route,
  textResponse,
} from "@skald/transport/routes";
import { parseTenant, type TenantOptions } from "@skald/transport/tenants";
import { wantsCategories } from "../encode/json.js";
import type { PlannedTail } from "../http/endpoints.js";
import type { TailParams } from "../params/params.js";
import { runTail } from "./session.js";

export interface TailEndpointDeps extends TenantOptions {
  readonly ingester: Tailer;
  /** Answers the endpoint `tail`. */
  readonly plan: (request: HttpRequest) => Promise<PlannedTail>;
  /** Answers the endpoint `tail_history`. */
  readonly history: (request: HttpRequest) => Promise<HttpResponse>;
  /** Tails of a tenant at a time; 0: no limit. */
  readonly maxTailsOf: (tenant: string) => number;
  /** After which a tail is closed. */
  readonly maxDurationMs: number;
  readonly clock: Clock;
}

const paths = ["/service/api/v1/tail", "/loki/api/v1/tail", "/api/legacy/tail", "/api/prom/tail"];

const tailDocs: EndpointDocs = {
  group: "Query",
  says:
    "Lines as they come in, over WebSocket: first those of the last hour, then new ones. A page in a browser, which cannot " +
    "send the header, names its tenant by the subprotocol `skald.tenant.<base64url without padding>`.",
  tenant: "one",
  params: [
    { name: "query", type: "logql", required: true, says: "The query, of lines." },
    { name: "regexp", type: "text", says: "As `|~` behind the query: only lines that match." },
    {
      name: "delay_for",
      type: "integer",
      fallback: "0",
      says: "Seconds, 5 at most, to wait for lines that come late.",
    },
    { name: "limit", type: "integer", fallback: "100", says: "Most lines of the history." },
    { name: "start", type: "time", fallback: "an hour ago", says: "Start of the history." },
    { name: "since", type: "duration", says: "How long before now that is instead." },
  ],
  answers: {
    101:
      "WebSocket; messages `{streams, dropped_entries, dropped_total}`. The last two come where rows were left out, of which " +
      "`dropped_entries` names some.",
  },
  errors: { 400: "a request that is not to become a WebSocket, or a parameter that is bad" },
  example: { params: { query: '{app="shop"}' }, status: 400, contains: "Bad Request" },
};

/** The endpoints of tails: they speak WebSocket, and refuse who does not. */
export class TailEndpoints {
  readonly #deps: TailEndpointDeps;
  readonly #open = new Map<string, number>();

  constructor(deps: TailEndpointDeps) {
    this.#deps = deps;
  }

  /** Tails that are open. */
  get active(): number {
    let all = 0;
    for (const count of this.#open.values()) all += count;
    return all;
  }

  get socketRoutes(): SocketRoute[] {
    return paths.map((path) => ({
      path,
      open: (request) => this.#session(request, path.startsWith("/api/")),
    }));
  }

  get routes(): Route[] {
    return paths.map((path) => ({
      methods: ["GET"],
      path,
      handler: async (request) => {
        await this.#session(request, false);
        return textResponse(400, "Bad Request\n");
      },
      docs: tailDocs,
    }));
  }

  /** What is to be done once the WebSocket is open. Throws what a request is refused for before. */
  async #session({ headers, params }: SocketRequest, legacy: boolean): Promise<SocketSession> {
    const { clock, maxDurationMs } = this.#deps;
    const tenant = parseTenant(headers["x-scope-orgid"], this.#deps);
    const { signal: never } = new AbortController();
    const { tail, refusal } = await this.#deps.plan(requestOf({ headers, params }, never));
    const form = { categorize: wantsCategories({ headers }), legacy };
    return async (socket) => {
      const { expr } = tail;
      if (refusal !== undefined || expr.kind !== "log") throw invalidArgument(refusal ?? "");
      const leave = this.#enter(tenant);
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(tooLong()), maxDurationMs);
      const signal = AbortSignal.any([socket.signal, late.signal]);
      const { ingester } = this.#deps;
      const history = (asked: TailParams, endNs: bigint) =>
        this.#history({ headers, params }, asked, endNs, signal);
      try {
        const request = { tenant, matchers: expr.matchers, stages: expr.stages };
        const deps = { ingester, clock, history };
        await runTail(socket, { request, params: tail, form }, deps, signal);
      } catch (error) {
        throw late.signal.aborted ? late.signal.reason : error;
      } finally {
        clearTimeout(timer);
        late.abort();
        leave();
      }
    };
  }

  /** Counts a tail of the tenant; gives what counts it out again. */
  #enter(tenant: string): () => void {
    const count = (this.#open.get(tenant) ?? 0) + 1;
    const limit = this.#deps.maxTailsOf(tenant);
    if (limit > 0 && count > limit) {
      throw invalidArgument(
        `max concurrent tail requests limit exceeded, count > limit (${count} > ${limit})`,
      );
    }
    this.#open.set(tenant, count);
    return () => {
      const left = (this.#open.get(tenant) as number) - 1;
      if (left === 0) this.#open.delete(tenant);
      else this.#open.set(tenant, left);
    };
  }

  async #history(
    { headers }: SocketRequest,
    { query, startNs, limit }: TailParams,
    endNs: bigint,
    signal: AbortSignal,
  ): Promise<LogResult> {
    const start = startNs < endNs ? startNs : endNs;
    const params = new URLSearchParams({ query, limit: String(limit), direction: "backward" });
    params.set("start", nsText(start));
    params.set("end", nsText(endNs));
    // One step for all of it: it means nothing here, but is checked.
    params.set("step", String((endNs - start) / 1_000_000_000n + 1n));
    const { body } = await this.#deps.history(requestOf({ headers, params }, signal));
    if (!(body instanceof Uint8Array)) throw internal("a history is not in one piece");
    return decodeLogRows(body);
  }
}

function requestOf(asked: SocketRequest, signal: AbortSignal): HttpRequest {
  const body = new Uint8Array(0);
  return { ...asked, method: "GET", path: paths[0] as string, variables: {}, body, signal };
}

/** A time as no form of the API takes for seconds. */
function nsText(ns: bigint): string {
  return ns < 0n ? "0.0" : String(ns).padStart(11, "0");
}

function tooLong(): SkaldError {
  return new SkaldError("deadline_exceeded", "reached tail max duration limit");
}
