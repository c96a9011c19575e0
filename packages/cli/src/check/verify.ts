import { decodeRequestFile } from "@skald/compactor/requests";
import { errorCodeOf } from "@skald/model";
import { decodePatterns } from "@skald/patterns/file";
import {
  DayIndex,
  decodeDayIndex,
  type FoundSegment,
  inspectWal,
  type LabelTable,
  parseDayIndexKey,
  parseSegmentKey,
  verifySegment,
} from "@skald/storage";
import type { Output } from "../shell/command.js";
import { Progress } from "../shell/progress.js";
import { type FileKind, kindOfName } from "./inspect.js";
import { type FoundFile, isGone, type Source } from "./source.js";

/** A part of a file that differs from what was written. */
export interface FoundDamage {
  readonly file: string;
  readonly part: string;
  readonly offset?: number;
  readonly message: string;
}

export interface Verdict {
  /** Files that were checked, by kind. */
  readonly checked: Readonly<Partial<Record<FileKind, number>>>;
  /** Files of other kinds, which were not checked. */
  readonly others: number;
  readonly bytes: number;
  readonly damage: readonly FoundDamage[];
  /** Files of a newer version of the program, which this one cannot check. */
  readonly newer: readonly FoundDamage[];
  /** Facts that are not damage. */
  readonly notes: readonly string[];
}

/** Checks every file of a source; holds one block, one log or one index at a time. */
export async function verify(source: Source, out: Output): Promise<Verdict> {
  const listed = await source.list();
  const files = listed.filter(({ name }) => !isLeftOut(name));
  const known = files.filter(({ name }) => kindOfName(name) !== undefined);
  const bytes = known.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const progress = new Progress(out, { bytes, parts: known.length });
  const run = new Verification(source, progress);
  for (const group of groupByFolder(known)) await run.folder(group);
  progress.finish();
  const aside = listed.filter(({ name }) => isSetAside(name)).length;
  if (aside > 0) run.notes.push(`${aside} files were set aside as damaged before`);
  const { checked, damage, newer, notes } = run;
  return { checked, others: files.length - known.length, bytes, damage, newer, notes };
}

/** After this many bytes signals and output get a turn of the event loop. */
const sliceBytes = 4 * 1024 * 1024;

class Verification {
  readonly checked: Partial<Record<FileKind, number>> = {};
  readonly damage: FoundDamage[] = [];
  readonly newer: FoundDamage[] = [];
  readonly notes: string[] = [];
  readonly #source: Source;
  readonly #progress: Progress;
  #sinceTurn = 0;

  constructor(source: Source, progress: Progress) {
    this.#source = source;
    this.#progress = progress;
  }

  /** Checks the files of one folder, the indexes of a day first. */
  async folder(files: readonly FoundFile[]): Promise<void> {
    const indexes = files.filter(({ name }) => kindOfName(name) === "day index");
    const newest = indexes.at(-1);
    let day: DayCheck | undefined;
    for (const file of indexes)
      await this.#file(file, "day index", async () => {
        const bytes = await this.#source.read(file);
        const key = keyOf(file.name);
        if (file === newest) day = new DayCheck(key, bytes);
        else new DayIndex(decodeDayIndex(key, bytes));
      });
    const lastLog = files.filter(({ name }) => kindOfName(name) === "log").at(-1);
    for (const file of files) {
      const kind = kindOfName(file.name);
      if (kind === "segment") await this.#file(file, kind, () => this.#segment(file, day));
      else if (kind === "log")
        await this.#file(file, kind, () => this.#log(file, file === lastLog));
      else if (kind !== "day index" && kind !== undefined)
        await this.#file(file, kind, async () => {
          const bytes = await this.#source.read(file);
          if (kind === "patterns") decodePatterns(file.name, bytes);
          else decodeRequestFile(file.name, bytes);
        });
    }
    if (day !== undefined && newest !== undefined) await this.#missing(newest, day);
  }

  /** Checks a file: an error about its contents is damage. */
  async #file(file: FoundFile, kind: FileKind, check: () => Promise<unknown>): Promise<void> {
    this.checked[kind] = (this.checked[kind] ?? 0) + 1;
    let counted = 0;
    try {
      const done = await check();
      if (typeof done === "number") counted = done;
    } catch (error) {
      const code = errorCodeOf(error);
      if (code === "unavailable") throw error;
      if (code === "newer_version")
        this.newer.push({ file: file.name, part: kind, message: (error as Error).message });
      else if (isGone(error)) this.notes.push(`${file.name} was deleted meanwhile`);
      else this.#tell(file, { part: kind, message: (error as Error).message });
    }
    this.#progress.addPart(Math.max(file.sizeBytes - counted, 0));
    await this.#turn(file.sizeBytes - counted);
  }

  /** Returns the bytes that it has added to the progress. */
  async #segment(file: FoundFile, day: DayCheck | undefined): Promise<number> {
    const named = parseSegmentKey(keyOf(file.name));
    if (named !== undefined) day?.see(named.id);
    const reader = await this.#source.open(file);
    let done = 0;
    try {
      const steps = verifySegment(reader);
      let step = steps.next();
      for (; !step.done; step = steps.next()) {
        done += step.value;
        this.#progress.add(step.value);
        await this.#turn(step.value);
      }
      const { damage, found } = step.value;
      for (const one of damage) this.#tell(file, one);
      if (found === undefined) return done;
      const isNamed =
        named === undefined ||
        (named.tenant === found.tenant &&
          named.id === found.id &&
          named.minNs === found.minNs &&
          named.maxNs === found.maxNs);
      if (!isNamed) this.#tell(file, { part: "name", message: "it is another segment's" });
      const problem = day?.compare(found);
      if (problem !== undefined) this.#tell(file, { part: "day index", message: problem });
      return done;
    } finally {
      reader.close();
    }
  }

  async #log(file: FoundFile, isLast: boolean): Promise<void> {
    const steps = inspectWal(file.name, await this.#source.read(file), {
      onFault: ({ kind, offset, bytes, message }) => {
        const text = `${bytes} bytes are ${kind}${message === undefined ? "" : `: ${message}`}`;
        // Only the last log may end in a record that was being written.
        if (kind === "torn" && isLast) this.notes.push(`${file.name} at ${offset}: ${text}`);
        else this.#tell(file, { part: "record", offset, message: text });
      },
    });
    let before = 0;
    for (const end of steps) {
      await this.#turn(end - before);
      before = end;
    }
  }

  async #missing(newest: FoundFile, day: DayCheck): Promise<void> {
    const missing = day.missing();
    if (missing.length === 0) return;
    const folder = newest.name.slice(0, newest.name.lastIndexOf("/") + 1);
    const now = (await this.#source.list(folder)).filter(
      ({ name }) => kindOfName(name) === "day index",
    );
    if (now.at(-1)?.name !== newest.name) {
      this.notes.push(`${folder} was compacted meanwhile`);
      return;
    }
    for (const id of missing)
      this.#tell(newest, { part: "segments", message: `segment ${id} is not there` });
  }

  #tell({ name }: FoundFile, damage: Omit<FoundDamage, "file">): void {
    this.damage.push({ file: name, ...damage });
  }

  async #turn(bytes: number): Promise<void> {
    this.#sinceTurn += bytes;
    if (this.#sinceTurn < sliceBytes) return;
    this.#sinceTurn = 0;
    await new Promise(setImmediate);
  }
}

/** The part of a path that is a key of the object store. */
export function keyOf(name: string): string {
  const at = name.indexOf("tenant=");
  return at < 0 ? name : name.slice(at);
}

function* groupByFolder(files: readonly FoundFile[]): Generator<FoundFile[]> {
  const groups = new Map<string, FoundFile[]>();
  for (const file of files) {
    const folder = file.name.slice(0, file.name.lastIndexOf("/") + 1);
    const group = groups.get(folder);
    if (group === undefined) groups.set(folder, [file]);
    else group.push(file);
  }
  yield* groups.values();
}

/** Files of the segment cache, unfinished files, and files that were set aside as damaged. */
function isLeftOut(name: string): boolean {
  return /(^|\/)(segment-cache|\.tmp)\//.test(name) || name.endsWith(".tmp") || isSetAside(name);
}

function isSetAside(name: string): boolean {
  return /(^|\/)quarantine\//.test(name) || name.endsWith(".corrupt");
}

/** The newest index of a day, to compare its segments with. */
class DayCheck {
  readonly #day: DayIndex;
  /** Whether the index lies under its key, with its segments beside it. */
  readonly #isNamed: boolean;
  readonly #places: ReadonlyMap<string, number>;
  readonly #seen = new Set<string>();
  /** Streams by the hash of their labels. */
  readonly #streams: ReadonlyMap<number, number>;

  /** Throws `internal` if the index is damaged, and an error if it is not the index of its key. */
  constructor(key: string, bytes: Uint8Array) {
    this.#day = new DayIndex(decodeDayIndex(key, bytes));
    const named = parseDayIndexKey(key);
    const { tenant, baseNs, generation } = this.#day;
    this.#isNamed = named !== undefined;
    const isSame =
      named === undefined ||
      (named.tenant === tenant && named.baseNs === baseNs && named.generation === generation);
    if (!isSame) throw new Error(`it is generation ${generation} of another day or tenant`);
    const { streams, segments } = this.#day;
    this.#places = new Map(segments.map(({ id }, place) => [id, place]));
    this.#streams = new Map(
      Array.from({ length: streams.count }, (_, stream) => [hashOf(streams, stream), stream]),
    );
  }

  /** Says how the index and a segment of the day disagree; undefined if they agree. */
  compare(segment: FoundSegment): string | undefined {
    const { id, minNs, maxNs, rows, lineBytes, sizeBytes, streams } = segment;
    this.#seen.add(id);
    const place = this.#places.get(id);
    // A segment that the index does not name is newer, or waits for its deletion.
    if (place === undefined) return undefined;
    const indexed = this.#day.segments[place]!;
    const isSame =
      indexed.minNs === minNs &&
      indexed.maxNs === maxNs &&
      indexed.rows === rows &&
      indexed.lineBytes === lineBytes &&
      indexed.sizeBytes === sizeBytes;
    if (!isSame) return "the day index has other rows, times or sizes of it";
    for (let stream = 0; stream < streams.count; stream++) {
      const known = this.#streams.get(hashOf(streams, stream));
      if (known === undefined || !this.#day.segmentsOf(known).includes(place))
        return `the day index does not say that it holds ${streams.text(stream)}`;
    }
    return undefined;
  }

  /** Notes a segment that is there, even if it cannot be read. */
  see(id: string): void {
    this.#seen.add(id);
  }

  /** Ids of segments that the index names and nobody has seen. */
  missing(): string[] {
    if (!this.#isNamed) return [];
    return this.#day.segments.map(({ id }) => id).filter((id) => !this.#seen.has(id));
  }
}

/** Both words of a hash in one number, as far as a float64 is exact. */
function hashOf({ hashes }: LabelTable, stream: number): number {
  return hashes[2 * stream]! * 2 ** 20 + (hashes[2 * stream + 1]! >>> 12);
}
