import type { Random } from "@skald/testkit";
import type { StartedProcess } from "../server.js";
import type { Deed, Place } from "./place.js";

/** A kind of deed at which a process is killed. */
interface Moment {
  readonly name: string;
  /** The kill comes at one of the first `most` deeds of this kind; a process does about as many in a second. */
  readonly most: number;
  readonly is: (deed: Deed) => boolean;
}

/** Moments of a running process. */
export const moments: readonly Moment[] = [
  { name: "answer", most: 100, is: ({ to }) => to === "client" },
  { name: "object", most: 60, is: ({ to }) => to === "object" },
  { name: "file", most: 250, is: ({ to }) => to === "file" },
  { name: "unfinished file", most: 100, is: ({ name }) => name.endsWith(".tmp") },
  {
    name: "merged segment",
    most: 2,
    is: ({ to, name }) => to === "object" && name.includes("merged-"),
  },
  { name: "day index", most: 6, is: ({ name }) => name.endsWith(".day") },
  { name: "deleted object", most: 30, is: ({ to, isGone }) => to === "object" && isGone },
  {
    name: "dropped copy",
    most: 20,
    is: ({ name, isGone }) => /^ingester\/segments\/.*\.parquet$/.test(name) && isGone,
  },
];

/** Moments of a process that starts. */
export const startMoments: readonly Moment[] = [
  { name: "line", most: 8, is: ({ to }) => to === "log" },
  { name: "anything", most: 60, is: () => true },
];

/** After this number of answers to a client the process is killed although the deed did not come. */
const mostAnswers = 200;

/** The process to kill, and the moments to choose from. */
export interface KillerOptions {
  readonly place: Place;
  readonly process: StartedProcess;
  readonly moments: readonly Moment[];
  readonly random: Random;
}

/** Kills a process at the nth deed of a kind, both chosen at random, in the same turn in which it learns of the deed. */
export class Killer {
  readonly moment: Moment;
  /** Resolves when the process is gone, with true if the deed came; rejects with the log when the process ended by itself. */
  readonly killed: Promise<boolean>;
  readonly #process: StartedProcess;
  readonly #stopWatching: () => void;
  #resolve: (killed: Promise<boolean>) => void = () => undefined;
  #left: number;
  #answersLeft = mostAnswers;

  constructor({ place, process, moments, random }: KillerOptions) {
    this.killed = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    // Nobody may be waiting yet, and a rejection that nobody handles would end the tests.
    this.killed.catch(() => undefined);
    this.#process = process;
    this.moment = moments[random(moments.length)] as Moment;
    this.#left = 1 + random(this.moment.most);
    const isLastDone = random(2) === 0;
    this.#stopWatching = place.watch((deed) => this.hear(deed) || isLastDone);
  }

  get isOver(): boolean {
    return this.#left === 0;
  }

  /** Returns whether the process lives on. */
  hear(deed: Deed): boolean {
    if (this.isOver) return false;
    if (this.moment.is(deed) && --this.#left === 0) this.#kill(true);
    else if (deed.to === "client" && --this.#answersLeft === 0) this.end();
    return !this.isOver;
  }

  /** Kills the process now if it is alive. */
  end(): void {
    if (this.isOver) return;
    this.#left = 0;
    this.#kill(false);
  }

  #kill(hasCome: boolean): void {
    const ended = this.#process.kill("SIGKILL").then((how) => {
      if (how === "SIGKILL") return hasCome;
      throw new Error(`the process had ended with ${how}:\n${this.#process.log()}`);
    });
    this.#resolve(ended);
    this.#stopWatching();
  }
}
