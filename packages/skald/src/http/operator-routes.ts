import { closeSync, existsSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Ingester } from "@skald/ingester";
import { internal } from "@skald/model";
import { parseBoolean } from "@skald/runtime/config";
import { type HttpRequest, type HttpResponse, type Route, textResponse } from "@skald/transport";
import { operatorDocs as docs } from "./operator-docs.js";

export interface OperatorDeps {
  readonly ingester: Pick<Ingester, "flush" | "state">;
  readonly marker: Pick<ShutdownMarker, "isSet" | "set" | "clear">;
  /** Ends the ingester alone; resolves when all is where it is to stay. Rejects when it failed meanwhile. */
  readonly stopIngester: (ending: IngesterEnding) => Promise<void>;
  /** Ends the process in order. */
  readonly endProcess: (reason: string) => void;
}

/** How an ingester ends. */
export interface IngesterEnding {
  /** Whether all is uploaded, too. */
  readonly flush: boolean;
  readonly deleteTokens: boolean;
}

const stopping = "Ingester is stopping or already stopped.";

/** What an operator may ask of an ingester. */
export function operatorRoutes(deps: OperatorDeps): Route[] {
  const { ingester, marker } = deps;
  const path = "/ingester/prepare_shutdown";
  const flush = async () => {
    await ingester.flush();
    return { status: 204 };
  };
  const set = () => answered(() => marker.set());
  const clear = () => answered(() => marker.clear());
  const tell = () => textResponse(200, marker.isSet() ? "set" : "unset");
  const read = ["GET", "POST"];
  return [
    { methods: read, path: "/flush", isAction: true, handler: flush, docs: docs.flush },
    { methods: ["GET"], path, handler: tell, docs: docs.is_prepared },
    { methods: ["POST"], path, handler: set, docs: docs.prepare },
    { methods: ["DELETE"], path, handler: clear, docs: docs.unprepare },
    {
      methods: read,
      path: "/ingester/shutdown",
      isAction: true,
      handler: (request) => shutdown(deps, request, true),
      docs: docs.shutdown,
    },
    {
      methods: read,
      path: "/ingester/flush_shutdown",
      isAction: true,
      handler: (request) => shutdown(deps, request, false),
      docs: docs.flush_shutdown,
    },
  ];
}

/** Answers when the ingester is down; the process ends behind the answer. */
async function shutdown(
  { ingester, stopIngester, endProcess }: OperatorDeps,
  { params }: HttpRequest,
  mayEndProcess: boolean,
): Promise<HttpResponse> {
  if (ingester.state !== "running") return textResponse(503, `${stopping}\n`);
  const flag = (name: string, fallback: boolean) => {
    const parsed = parseBoolean(params.get(name) ?? "");
    return mayEndProcess && "value" in parsed ? parsed.value : fallback;
  };
  await stopIngester({
    flush: flag("flush", true),
    deleteTokens: flag("delete_ring_tokens", false),
  });
  if (mayEndProcess && flag("terminate", true))
    setImmediate(endProcess, "the ingester was shut down");
  return { status: 204 };
}

function answered(act: () => void): { status: number } {
  act();
  return { status: 204 };
}

const markerName = "shutdown-requested.txt";

/** A file that says, over restarts too, that the next end of the process is to leave nothing on its disk only. */
export class ShutdownMarker {
  readonly #directory: string;

  /** No directory: it can be read, as not set, and throws internal (500) when it is to be set or cleared. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  isSet(): boolean {
    return this.#directory !== "" && existsSync(this.#path());
  }

  set(): void {
    const path = this.#path();
    mkdirSync(this.#directory, { recursive: true });
    closeSync(openSync(path, "a"));
  }

  clear(): void {
    rmSync(this.#path(), { force: true });
  }

  #path(): string {
    if (this.#directory !== "") return join(this.#directory, markerName);
    throw internal("no place for the marker of a shutdown: set ingester.shutdown_marker_path");
  }
}
