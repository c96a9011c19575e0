import { JsonScanner } from "../columns/json-scanner.js";
import type { DoorRows } from "./door-rows.js";

/** Deeper members of objects do not become fields of their own, and deeper texts are refused. */
const maxDepth = 256;
/** A member's name with those of the objects around it. */
const maxNameBytes = 4096;

/** Reads JSON objects of a body and gives their members to the record that is read. */
export class ObjectReader {
  readonly scanner: JsonScanner;
  readonly #rows: DoorRows;
  /** Ranges of the object that are left out of its line. */
  #cuts: number[] = [];

  constructor(rows: DoorRows) {
    this.#rows = rows;
    this.scanner = new JsonScanner(rows.body);
  }

  /**
   * Reads the object at the scanner and ends the record with it. Members of nested objects have the names of both with a dot
   * between. Throws invalid_argument for a text that is no object, and unless `isPart` for one with more behind it.
   */
  endWith(isPart = false): void {
    const { scanner } = this;
    const { roles } = this.#rows;
    if (scanner.peek() !== 0x7b) throw scanner.error("expected an object");
    const start = scanner.at;
    this.#rows.beginWhole();
    this.#cuts = [];
    this.#members(undefined, { depth: 0, keepsOthers: roles.hasMessage });
    const whole = this.#whole(start, scanner.at);
    if (!isPart) scanner.end();
    this.#rows.end(whole);
  }

  /** Reads the members of the object at the scanner as fields of the record. */
  fields(): void {
    if (this.scanner.peek() !== 0x7b) throw this.scanner.error("expected an object");
    this.#members(undefined, { depth: 0, keepsOthers: true });
  }

  /** Finds the text of the value at the scanner: a string without its escapes, others as written, nothing for `null`. */
  value(): TextRange {
    const { scanner } = this;
    const byte = scanner.peek();
    if (byte === 0x22) return this.text();
    const start = scanner.at;
    scanner.skip(0);
    return { start, length: byte === 0x6e ? 0 : scanner.at - start };
  }

  /** The same for a string, which must come next. */
  text(): TextRange {
    const { scanner } = this;
    scanner.expect(0x22);
    const start = scanner.at;
    scanner.skipText();
    if (!scanner.hasEscapes) return { start, length: scanner.at - 1 - start };
    const { arena } = this.#rows;
    const written = arena.end;
    scanner.at = start - 1;
    scanner.text(arena);
    return { start: written, length: arena.end - written };
  }

  #members(prefix: TextRange | undefined, how: MemberRules): void {
    const { scanner } = this;
    const { arena } = this.#rows;
    if (how.depth > maxDepth) throw scanner.tooDeep();
    scanner.expect(0x7b);
    if (scanner.accept(0x7d)) return;
    let hasKept = false;
    do {
      const comma = scanner.at - 1;
      scanner.peek();
      const memberStart = scanner.at;
      const arenaEnd = arena.end;
      const key = this.text();
      const name = prefix === undefined ? key : this.#joined(prefix, key);
      scanner.expect(0x3a);
      if (this.#member(name, how)) {
        hasKept = true;
        continue;
      }
      arena.end = arenaEnd;
      this.#cut(hasKept ? comma : memberStart, hasKept);
    } while (scanner.accept(0x2c));
    scanner.expect(0x7d);
  }

  /** Reads the value of a member; false when the member is to be left out. */
  #member(name: TextRange, { depth, keepsOthers }: MemberRules): boolean {
    const { scanner } = this;
    const { arena, roles } = this.#rows;
    const role = roles.of(arena.bytes, name.start, name.length);
    const isPlain = role.kind === "other" || role.kind === "nameless";
    if (isPlain && scanner.peek() === 0x7b && roles.needsMembers) {
      this.#members(name, { depth: depth + 1, keepsOthers });
    } else if (role.kind === "ignored" || (isPlain && !keepsOthers)) {
      scanner.skip(depth + 1);
    } else this.#rows.put(role, name, this.value());
    return role.kind !== "ignored";
  }

  /** Reads the value at the scanner as that of a member of the whole record. */
  member(name: TextRange): void {
    this.#member(name, { depth: 0, keepsOthers: this.#rows.roles.hasMessage });
  }

  /** Leaves a member out of the line, with the comma on one side of it. */
  #cut(start: number, hasKept: boolean): void {
    const { scanner } = this;
    const end = scanner.at;
    this.#cuts.push(start, !hasKept && scanner.peek() === 0x2c ? scanner.at + 1 : end);
  }

  #whole(start: number, end: number): TextRange {
    if (this.#cuts.length === 0) return { start, length: end - start };
    const { arena, body } = this.#rows;
    const written = arena.end;
    let from = start;
    for (let i = 0; i < this.#cuts.length; i += 2) {
      arena.copy(body, from, this.#cuts[i]! - from);
      from = this.#cuts[i + 1]!;
    }
    arena.copy(body, from, end - from);
    return { start: written, length: arena.end - written };
  }

  #joined(prefix: TextRange, key: TextRange): TextRange {
    const { arena } = this.#rows;
    const length = prefix.length + 1 + key.length;
    if (length > maxNameBytes) {
      throw this.scanner.error(`the name of a nested field has more than ${maxNameBytes} bytes`);
    }
    const start = arena.end;
    arena.copy(arena.bytes, prefix.start, prefix.length);
    arena.byte(dot);
    arena.copy(arena.bytes, key.start, key.length);
    return { start, length };
  }
}

/** A range of the arena. */
export interface TextRange {
  readonly start: number;
  readonly length: number;
}

interface MemberRules {
  readonly depth: number;
  /** Whether members without a role become metadata. */
  readonly keepsOthers: boolean;
}

const dot = 0x2e;
