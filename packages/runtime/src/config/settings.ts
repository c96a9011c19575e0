import { isDeepStrictEqual } from "node:util";
import type { IgnoredSetting } from "./ignored.js";
import { buildSection, type LeafNode, leavesOf, type SectionNode } from "./schema.js";

/** A value that somebody gave, and where. */
export interface Setting {
  readonly value: unknown;
  /** `loki.yaml:12:3` or `-server.http-listen-port`. */
  readonly origin: string;
}

/**
 * The values of one configuration by path (`server.http_listen_port`), in three layers: what the user set, what follows
 * from that, and the defaults.
 */
export class Settings {
  readonly root: SectionNode;
  readonly leaves: ReadonlyMap<string, LeafNode>;
  /** What the user set and has no effect. */
  readonly ignored: IgnoredSetting[] = [];
  readonly #given = new Map<string, Setting>();
  readonly #derived = new Map<string, unknown>();

  constructor(root: SectionNode) {
    this.root = root;
    this.leaves = new Map([...leavesOf(root)].map((leaf) => [leaf.path, leaf]));
  }

  give(path: string, setting: Setting): void {
    this.#leaf(path);
    this.#given.set(path, setting);
  }

  /** Whether the user set the key itself. */
  isGiven(path: string): boolean {
    return this.#given.has(path);
  }

  /** Whether the user set any key at or below the path. */
  isAnyGiven(path: string): boolean {
    for (const given of this.#given.keys())
      if (given === path || given.startsWith(`${path}.`)) return true;
    return false;
  }

  /** Whether the user set any key at or below the path to something else than its default. */
  isAnyChanged(path: string): boolean {
    for (const [given, { value }] of this.#given) {
      if (given !== path && !given.startsWith(`${path}.`)) continue;
      if (!isDeepStrictEqual(value, this.#leaf(given).note.defaultValue)) return true;
    }
    return false;
  }

  /** The settings of the user, in the order in which they were given. */
  given(): ReadonlyMap<string, Setting> {
    return this.#given;
  }

  originOf(path: string): string | undefined {
    return this.#given.get(path)?.origin;
  }

  get(path: string): unknown {
    const leaf = this.#leaf(path);
    const given = this.#given.get(path);
    if (given !== undefined) return given.value;
    return this.#derived.has(path) ? this.#derived.get(path) : leaf.note.defaultValue;
  }

  /** Replaces the default of a key; what the user set stays. */
  derive(path: string, value: unknown): void {
    this.#leaf(path);
    this.#derived.set(path, value);
  }

  /** Derives each key below `to` from the key of the same name below `from`, where that was given. */
  deriveBlock(from: string, to: string): void {
    for (const path of [...this.#given.keys()]) {
      if (!path.startsWith(`${from}.`)) continue;
      const target = to + path.slice(from.length);
      if (this.leaves.has(target)) this.derive(target, this.get(path));
    }
  }

  /** The whole as one object. */
  build(): Record<string, unknown> {
    return buildSection(this.root, (leaf) => this.get(leaf.path));
  }

  #leaf(path: string): LeafNode {
    const leaf = this.leaves.get(path);
    if (leaf === undefined) throw new Error(`no config key ${path}`);
    return leaf;
  }
}
