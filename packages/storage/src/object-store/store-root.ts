import { randomUUID } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { errorCodeOf, refuseNewerVersion, unavailable } from "@skald/model";
import { link, mkdir, readFile, rename, rm, stat } from "../files.js";
import { isAbsent, makeLastingDirectory, withFile } from "../syncs.js";

/** Neither file has a version so far: a later program that changes what they mean adds the key `version`. */
const knownVersion = 1;

/** Name of the marker in the root. */
export const storeMarkerName = ".skald-store";

/** What the marker says, and what is remembered of it elsewhere. */
interface Identity {
  readonly id: string;
}

interface Remembered extends Identity {
  readonly root: string;
}

/**
 * The directory of a store. A marker with an id distinguishes it from anything else in its place (nothing, the empty
 * directory below a mount that is gone, another store). It is made at the first start only: from then on its id is remembered in a
 * file outside, and a root without it is unavailable, never an empty store.
 */
export class StoreRoot {
  readonly #root: string;
  readonly #rememberIn: string | undefined;
  #id: string | undefined;
  #opening: Promise<void> | undefined;
  /** The marker as it was when it was found right. */
  #seen = "";

  /** Without `rememberIn` each process starts for the first time. */
  constructor(root: string, rememberIn?: string) {
    this.#root = resolve(root);
    this.#rememberIn = rememberIn;
  }

  /** Learns which store it is, and makes the root at the first start. Fails with what the file system says. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Throws unavailable when the root is not there, or is not the one that was opened. */
  async check(): Promise<void> {
    await this.open();
    const seen = await this.#look();
    if (seen === undefined) {
      const fix = `mount it, or delete ${this.#rememberIn ?? "its data"} to begin an empty one`;
      throw unavailable(`the object store in ${this.#root} is not there; ${fix}`);
    }
    if (seen === this.#seen) return;
    const { id } = await this.#readMarker();
    if (id !== this.#id) {
      throw unavailable(`${this.#root} holds another object store: ${id}, not ${this.#id}`);
    }
    this.#seen = seen;
  }

  async #open(): Promise<void> {
    const known = await this.#recall();
    if (known !== undefined) {
      this.#id = known;
      return;
    }
    await makeLastingDirectory(this.#root);
    if ((await this.#look()) === undefined) await this.#make();
    this.#id = (await this.#readMarker()).id;
    await this.#remember(this.#id);
  }

  /** Of several processes that start at once, one makes the marker. */
  async #make(): Promise<void> {
    const path = join(this.#root, storeMarkerName);
    const temporary = `${path}.${randomUUID()}`;
    try {
      await writeSynced(temporary, { id: randomUUID() } satisfies Identity);
      await link(temporary, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      await rm(temporary, { force: true });
    }
  }

  /** Written again where it is damaged and the id is remembered: something that is no store has no marker at all. */
  async #readMarker(): Promise<Identity> {
    const path = join(this.#root, storeMarkerName);
    const found = parse(path, await readFile(path, "utf8"));
    if (found !== undefined) return found;
    if (this.#id === undefined) {
      const fix = 'write {"id":"<that of store.json of a process that used it>"} into it';
      throw unavailable(
        `${path} is damaged: ${fix}, or delete it if no other process uses the store`,
      );
    }
    const temporary = `${path}.${randomUUID()}`;
    await writeSynced(temporary, { id: this.#id } satisfies Identity);
    await rename(temporary, path);
    return { id: this.#id };
  }

  /** Changes when the marker is another file; undefined when there is none. */
  async #look(): Promise<string | undefined> {
    try {
      const { dev, ino, mtimeMs } = await stat(join(this.#root, storeMarkerName));
      return `${dev} ${ino} ${mtimeMs}`;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  }

  async #recall(): Promise<string | undefined> {
    if (this.#rememberIn === undefined) return undefined;
    let text: string;
    try {
      text = await readFile(this.#rememberIn, "utf8");
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
    const known = parse(this.#rememberIn, text) as Remembered | undefined;
    if (known !== undefined) return known.root === this.#root ? known.id : undefined;
    // Whatever store it was: one without a marker may be a mount that is gone.
    if ((await this.#look()) !== undefined) return undefined;
    const fix = `mount it, or delete ${this.#rememberIn}, which is damaged, to begin an empty one`;
    throw unavailable(`the object store in ${this.#root} is not there; ${fix}`);
  }

  async #remember(id: string): Promise<void> {
    if (this.#rememberIn === undefined) return;
    const temporary = `${this.#rememberIn}.tmp`;
    await mkdir(dirname(temporary), { recursive: true });
    await writeSynced(temporary, { root: this.#root, id } satisfies Remembered);
    await rename(temporary, this.#rememberIn);
  }
}

/** Undefined for what is damaged. Throws `newer_version` for what a later program wrote. */
function parse(path: string, text: string): Identity | undefined {
  try {
    const found = JSON.parse(text) as (Partial<Identity> & { version?: unknown }) | null;
    refuseNewerVersion(path, { found: found?.version, known: knownVersion });
    return typeof found?.id === "string" ? { ...found, id: found.id } : undefined;
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    return undefined;
  }
}

async function writeSynced(path: string, value: Identity | Remembered): Promise<void> {
  await withFile(path, "w", async (file) => {
    await file.writeFile(`${JSON.stringify(value)}\n`);
    await file.sync();
  });
}
