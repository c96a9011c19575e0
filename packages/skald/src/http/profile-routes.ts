import { Session } from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { invalidArgument, unavailable } from "@skald/model";
import { type HttpHandler, jsonResponse, type Route } from "@skald/transport";
import { operatorDocs as docs } from "./operator-docs.js";

const maxSeconds = 300;
const heapSampleBytes = 32 * 1024;

/** Profiles of the main thread, as the developer tools of a browser read them; one is taken at a time. */
export function profileRoutes(): Route[] {
  const profiler = new Profiler();
  const timed =
    (fallback: number, take: (waits: () => Promise<void>) => Promise<unknown>): HttpHandler =>
    async ({ params, signal }) => {
      const seconds = parseSeconds(params.get("seconds") ?? "", fallback);
      const waits = () => sleep(seconds * 1000, undefined, { signal });
      return jsonResponse(200, await take(waits));
    };
  return [
    {
      methods: ["GET"],
      path: "/debug/pprof/profile",
      handler: timed(30, (waits) => profiler.cpu(waits)),
      docs: docs.cpu_profile,
    },
    {
      methods: ["GET"],
      path: "/debug/pprof/heap",
      handler: timed(1, (waits) => profiler.heap(waits)),
      docs: docs.heap_profile,
    },
  ];
}

function parseSeconds(text: string, fallback: number): number {
  const seconds = text === "" ? fallback : Number(text);
  if (seconds > 0 && seconds <= maxSeconds) return seconds;
  throw invalidArgument(`seconds must be a number up to ${maxSeconds}`);
}

/** Takes one profile at a time; throws unavailable while another is taken. */
class Profiler {
  #isBusy = false;

  cpu(waits: () => Promise<void>): Promise<unknown> {
    return this.#run(async (session) => {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await waits();
      return (await session.post("Profiler.stop")).profile;
    });
  }

  heap(waits: () => Promise<void>): Promise<unknown> {
    return this.#run(async (session) => {
      await session.post("HeapProfiler.startSampling", { samplingInterval: heapSampleBytes });
      await waits();
      return (await session.post("HeapProfiler.stopSampling")).profile;
    });
  }

  /** Whatever happens, the session ends, and all that was begun with it. */
  async #run(take: (session: Session) => Promise<unknown>): Promise<unknown> {
    if (this.#isBusy) throw unavailable("another profile is being taken; try again");
    this.#isBusy = true;
    const session = new Session();
    try {
      session.connect();
      return await take(session);
    } finally {
      session.disconnect();
      this.#isBusy = false;
    }
  }
}
