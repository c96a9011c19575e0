import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeFolder, startServer, type TestServer, waitFor } from "./server.js";

const main = fileURLToPath(new URL("../../../skald/dist/main.js", import.meta.url));
const counter = new URL("./count-entries.js", import.meta.url).href;
/** How often a walk is repeated, first to warm up and then to count. */
const times = 5;
const idleMs = 1500;
/** A pause for work that follows an answer, such as metrics and logs. */
const afterMs = 20;

/** A server, not bundled, that reports which of its files a request enters. */
export class CountedServer {
  readonly server: TestServer;
  readonly #folder: string;
  readonly #idle = new Set<string>();
  #asked = 0;

  private constructor(server: TestServer, folder: string) {
    this.server = server;
    this.#folder = folder;
  }

  static async start(flags: readonly string[]): Promise<CountedServer> {
    const folder = makeFolder();
    writeFileSync(join(folder, "ask"), "");
    const server = await startServer(makeFolder(), flags, {
      main,
      nodeFlags: ["--import", counter],
      env: { ENTRIES_FOLDER: folder },
    });
    return new CountedServer(server, folder);
  }

  /** Notes what the idle process enters; call it when the data of the test is there. */
  async noteIdle(): Promise<void> {
    for (let i = 0; i < times; i++)
      for (const one of await this.#entered(() => pause(idleMs))) this.#idle.add(one);
  }

  /**
   * Files with a function that a warm call of `act` enters on any thread, sorted, as "scan/jobs". A function counts that each
   * of several calls enters, and that is not among those of `noteIdle`.
   */
  async filesOf(act: () => Promise<void>): Promise<string[]> {
    for (let i = 0; i < times; i++) await act();
    let own = [...(await this.#entered(act))].filter((one) => !this.#idle.has(one));
    for (let i = 1; i < times; i++) {
      const now = await this.#entered(act);
      own = own.filter((one) => now.has(one));
    }
    return [...new Set(own.map((one) => one.slice(0, one.indexOf("#"))))].sort();
  }

  async #entered(act: () => Promise<void>): Promise<Set<string>> {
    await this.#take();
    await act();
    await pause(afterMs);
    return await this.#take();
  }

  /** What all threads entered since the last call. */
  async #take(): Promise<Set<string>> {
    const name = String(++this.#asked);
    const path = (file: string) => join(this.#folder, file);
    // The rename prevents that a thread reads a part of the text.
    writeFileSync(path("ask.new"), name);
    renameSync(path("ask.new"), path("ask"));
    const found = new Set<string>();
    for (const file of readdirSync(this.#folder).filter((one) => one.startsWith("thread."))) {
      const answer = path(file.replace("thread", name));
      let text = "";
      await waitFor(() => {
        text = readIfThere(answer);
        return text.endsWith("\n.");
      });
      for (const line of text.split("\n").slice(0, -1)) if (line !== "") found.add(line);
    }
    return found;
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
