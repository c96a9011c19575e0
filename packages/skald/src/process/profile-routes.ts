import { Session } from "node:inspector/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { invalidArgument, unavailable } from "@skald/model";
import { type EndpointDocs, jsonResponse, type Route } from "@skald/transport";

const maxSeconds = 300;
const heapSampleBytes = 32 * 1024;

/** Profiles of the main thread for the developer tools of a browser. */
export function profileRoutes(): Route[] {
  const profiler = new Profiler();
  const route = (name: "profile" | "heap", fallback: number, take: TakeProfile): Route => ({
    methods: ["GET"],
    path: `/debug/pprof/${name}`,
    handler: async ({ params, signal }) => {
      const seconds = parseSeconds(params.get("seconds") ?? "", fallback);
      const wait = () => sleep(seconds * 1000, undefined, { signal });
      return jsonResponse(200, await take(wait));
    },
    docs: docsOf(name, fallback),
  });
  return [
    route("profile", 30, (wait) => profiler.cpu(wait)),
    route("heap", 1, (wait) => profiler.heap(wait)),
  ];
}

type TakeProfile = (wait: () => Promise<void>) => Promise<unknown>;

function docsOf(name: "profile" | "heap", fallback: number): EndpointDocs {
  const facts = {
    profile: {
      says: "Where the main thread spends its time; only with `server.profiles_enabled`.",
      answer: "A `.cpuprofile` in JSON, for the developer tools of a browser.",
      contains: '"nodes":',
    },
    heap: {
      says: "What the main thread allocates and still holds; only with `server.profiles_enabled`.",
      answer: "A `.heapprofile` in JSON, for the developer tools of a browser.",
      contains: '"head":',
    },
  };
  const { says, answer, contains } = facts[name];
  const waits = { name: "seconds", type: "span", says: "How long it is watched." } as const;
  return {
    ...{ group: "Operation", says, tenant: "none" },
    params: [{ ...waits, fallback: String(fallback) }],
    answers: { 200: answer },
    errors: { 400: "not a number of seconds up to 300", 503: "another profile is being taken" },
    example: { params: { seconds: "0.1" }, status: 200, contains },
    differs: "the profile is one of V8, not of Go",
  };
}

function parseSeconds(text: string, fallback: number): number {
  const seconds = text === "" ? fallback : Number(text);
  if (seconds > 0 && seconds <= maxSeconds) return seconds;
  throw invalidArgument(`seconds must be a number up to ${maxSeconds}`);
}

/** Takes one profile at a time; throws unavailable while another is taken. */
class Profiler {
  #isBusy = false;

  cpu(wait: () => Promise<void>): Promise<unknown> {
    return this.#run(async (session) => {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await wait();
      return (await session.post("Profiler.stop")).profile;
    });
  }

  heap(wait: () => Promise<void>): Promise<unknown> {
    return this.#run(async (session) => {
      await session.post("HeapProfiler.startSampling", { samplingInterval: heapSampleBytes });
      await wait();
      return (await session.post("HeapProfiler.stopSampling")).profile;
    });
  }

  /** The session always ends, and with it the profile. */
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
