import { closeSync, existsSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Ingester } from "@skald/ingester";
import { internal } from "@skald/model";
import { parseBoolean } from "@skald/runtime/config";
import {
  type EndpointDocs,
  type HttpRequest,
  type HttpResponse,
  type Route,
  textResponse,
} from "@skald/transport";

export interface OperatorDeps {
  readonly ingester: Pick<Ingester, "flush" | "state">;
  readonly marker: Pick<ShutdownMarker, "isSet" | "set" | "clear">;
  /** Ends the ingester alone; resolves when its data is where it shall stay. Rejects if the ingester failed. */
  readonly stopIngester: (ending: IngesterEnding) => Promise<void>;
  /** Ends the process in order. */
  readonly endProcess: (reason: string) => void;
}

/** How an ingester ends. */
export interface IngesterEnding {
  /** Whether everything is uploaded first. */
  readonly flush: boolean;
  readonly deleteTokens: boolean;
}

const stopping = "Ingester is stopping or already stopped.";

/** What an operator may ask of an ingester. */
export function operatorRoutes(deps: OperatorDeps): Route[] {
  const { ingester, marker } = deps;
  const flush = async () => {
    await ingester.flush();
    return { status: 204 };
  };
  const changed = (change: () => void) => () => {
    change();
    return { status: 204 };
  };
  const prepare = (method: string, handler: Route["handler"], about: EndpointDocs): Route => {
    return { methods: [method], path: "/ingester/prepare_shutdown", handler, docs: about };
  };
  const action = (path: string, handler: Route["handler"], about: EndpointDocs): Route => {
    return { methods: ["GET", "POST"], path, isAction: true, handler, docs: about };
  };
  const isPrepared = () => textResponse(200, marker.isSet() ? "set" : "unset");
  return [
    action("/flush", flush, docs.flush),
    prepare("GET", isPrepared, docs.is_prepared),
    prepare(
      "POST",
      changed(() => marker.set()),
      docs.prepare,
    ),
    prepare(
      "DELETE",
      changed(() => marker.clear()),
      docs.unprepare,
    ),
    action("/ingester/shutdown", (request) => shutdown(deps, request, true), docs.shutdown),
    action(
      "/ingester/flush_shutdown",
      (request) => shutdown(deps, request, false),
      docs.flush_shutdown,
    ),
  ];
}

/** Answers when the ingester is down; the process ends after the answer. */
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

const markerName = "shutdown-requested.txt";

/** A file that asks the next end of the process, also after a restart, to upload everything and leave the ring. */
export class ShutdownMarker {
  readonly #directory: string;

  /** Without a directory it is never set, and setting or clearing it throws internal (500). */
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

const operation = { group: "Operation", tenant: "none" } as const;

const docs = {
  flush: {
    ...operation,
    says: "Uploads all that is held in memory and on the local disk to the store.",
    answers: { 204: "Nothing: all is there." },
    example: { method: "POST", status: 204 },
    differs: "answers when it is done, not when it begins",
  },
  is_prepared: {
    ...operation,
    says: "Whether the next end of the process leaves nothing on its disk only.",
    answers: { 200: "`set` or `unset`." },
    example: { status: 200, contains: "set" },
  },
  prepare: {
    ...operation,
    says: "Has the next end of the process upload everything and leave the ring, over restarts too.",
    answers: { 204: "Nothing." },
    errors: { 500: "`ingester.shutdown_marker_path` is empty" },
    example: { status: 204 },
  },
  unprepare: {
    ...operation,
    says: "Takes that back.",
    answers: { 204: "Nothing." },
    errors: { 500: "`ingester.shutdown_marker_path` is empty" },
    example: { status: 204 },
  },
  shutdown: {
    ...operation,
    says: "Shuts the ingester down, and the process behind it.",
    params: [
      { name: "flush", type: "boolean", fallback: "true", says: "Upload everything before." },
      {
        name: "delete_ring_tokens",
        type: "boolean",
        fallback: "false",
        says: "Delete the file with the tokens, when there is one.",
      },
      { name: "terminate", type: "boolean", fallback: "true", says: "End the process, too." },
    ],
    answers: { 204: "Nothing: the ingester is down." },
    errors: { 503: "it is stopping or stopped already" },
    example: { method: "POST", params: { terminate: "false" }, status: 204 },
    ends: true,
  },
  flush_shutdown: {
    ...operation,
    says: "Uploads everything and shuts the ingester down; the process stays. Use `/ingester/shutdown`.",
    answers: { 204: "Nothing: the ingester is down." },
    errors: { 503: "it is stopping or stopped already" },
    example: { method: "POST", status: 204 },
    ends: true,
    differs: "the original has it no more",
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;
