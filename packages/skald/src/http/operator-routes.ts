import { closeSync, existsSync, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Ingester } from "@skald/ingester";
import { internal } from "@skald/model";
import { type Route, textResponse } from "@skald/transport";

/** What an operator may ask of an ingester. */
export function operatorRoutes(
  ingester: Pick<Ingester, "flush">,
  marker: Pick<ShutdownMarker, "isSet" | "set" | "clear">,
): Route[] {
  const path = "/ingester/prepare_shutdown";
  return [
    {
      methods: ["GET", "POST"],
      path: "/flush",
      handler: async () => {
        await ingester.flush();
        return { status: 204 };
      },
    },
    {
      methods: ["GET"],
      path,
      handler: () => textResponse(200, marker.isSet() ? "set" : "unset"),
    },
    { methods: ["POST"], path, handler: () => answered(() => marker.set()) },
    { methods: ["DELETE"], path, handler: () => answered(() => marker.clear()) },
  ];
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
