import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Ledger } from "@skald/runtime";
import { defaultLimits } from "@skald/runtime/config";
import type { PushLimits } from "../config.js";
import { createDoorHandler, type DoorName } from "../doors/doors.js";
import { PushDoor } from "../http.js";
import { type Harness, makeHarness } from "./harness.js";

const servers: Server[] = [];

/** Closes all servers of doors. */
export function closeDoors(): void {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
}

export interface ServedDoor extends Harness {
  readonly url: string;
  /** Resolves when a connection is known to be gone whose request was not answered. */
  readonly left: Promise<void>;
  /** Posts a body; returns the status, and the answer as JSON where it is that. */
  post(
    body: string | Uint8Array | ReadableStream<Uint8Array>,
    query?: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: unknown; headers: Headers }>;
}

/** Serves one door over HTTP, for the tenant t1. */
export async function serveDoor(
  name: DoorName,
  limits: Partial<PushLimits> = {},
  { maxReceivedBytes = 64 * 1024 * 1024, ledger = new Ledger(0) } = {},
): Promise<ServedDoor> {
  const harness = makeHarness(limits);
  const { ingester } = harness;
  const keep = ingester.push;
  // The memory of a push is used again by the next one.
  ingester.push = (request, options) => keep(structuredClone(request), options);
  const door = new PushDoor({
    distributor: harness.distributor,
    maxReceivedBytes,
    ledger,
  });
  const handle = createDoorHandler(name, {
    door,
    limitsOf: () => ({ ...defaultLimits, ...limits }),
  });
  let onLeft = (): void => undefined;
  const left = new Promise<void>((resolve) => {
    onLeft = resolve;
  });
  const server = createServer((request, response) => {
    response.once("close", () => response.headersSent || onLeft());
    handle(request, response, "t1").catch(() => response.destroy());
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const post: ServedDoor["post"] = async (body, query = "", headers = {}) => {
    const to = `${url}${query.startsWith("/") ? query : `/x?${query}`}`;
    const response = await fetch(to, { method: "POST", body, headers, duplex: "half" });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    return {
      status: response.status,
      body: isJson ? JSON.parse(text) : text,
      headers: response.headers,
    };
  };
  return Object.assign(harness, { post, url, left });
}
