// A client that reads answers without keeping them, and never fails: what goes wrong is an answer too.
import { Agent, request } from "node:http";

/** Opens a client for an address; where the server has one tenant, both of ours are that one. */
export async function openClient(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const open = await call(url, agent, { path: "/loki/api/v1/labels" });
  const isShared = open.status !== 401;
  const [tenantA, tenantB] = isShared ? [undefined, undefined] : ["hostile-a", "hostile-b"];
  const get = (tenant, path, params, options = {}) =>
    call(url, agent, { ...options, tenant, path: `${path}?${new URLSearchParams(params)}` });
  return {
    url,
    isShared,
    tenantA,
    tenantB,
    /** A query over the last hours: a range query where it has a step or a limit. */
    query: (tenant, query, params, options) => {
      const { instant, ...rest } = params;
      const path = `/loki/api/v1/${instant ? "query" : "query_range"}`;
      const body = new URLSearchParams({ query, ...rest }).toString();
      return call(url, agent, { ...options, method: "POST", type: form, tenant, path, body });
    },
    get,
    post: (tenant, path, body, options = {}) =>
      call(url, agent, { ...options, method: "POST", tenant, path, body }),
    delete: (tenant, path) => call(url, agent, { method: "DELETE", tenant, path }),
    /** Pushes streams given as in the JSON body. */
    push: (tenant, streams, options = {}) => {
      const body = Buffer.from(JSON.stringify({ streams }));
      return call(url, agent, {
        ...options,
        method: "POST",
        type: "application/json",
        tenant,
        path: "/loki/api/v1/push",
        body,
      });
    },
    close: () => agent.destroy(),
  };
}

const form = "application/x-www-form-urlencoded";
/** Bytes of an answer that are kept. */
const keptBytes = 400;

/** Calls and resolves with `{ status, ms, bytes, text }`; the status of a call that got no answer says why. */
export function call(
  url,
  agent,
  { method = "GET", path, tenant, type, body, headers, signal, keep = keptBytes },
) {
  const startMs = performance.now();
  return new Promise((resolve) => {
    const parts = [];
    let bytes = 0;
    let kept = 0;
    const end = (status) =>
      resolve({
        status,
        ms: performance.now() - startMs,
        bytes,
        text: Buffer.concat(parts).toString(),
      });
    const sent = request(
      url + path,
      {
        method,
        agent,
        signal,
        headers: {
          ...(tenant === undefined ? {} : { "x-scope-orgid": tenant }),
          ...(type === undefined ? {} : { "content-type": type }),
          ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (answer) => {
        answer.on("data", (chunk) => {
          bytes += chunk.length;
          if (kept < keep) parts.push(chunk);
          kept += chunk.length;
        });
        answer.on("end", () => end(answer.statusCode));
        answer.on("error", (error) => end(nameOf(error)));
      },
    );
    sent.on("error", (error) => end(nameOf(error)));
    sent.end(body);
  });
}

function nameOf(error) {
  if (error.name === "TimeoutError" || error.cause?.name === "TimeoutError") return "given up";
  return error.name === "AbortError" ? "left" : (error.code ?? error.message);
}
