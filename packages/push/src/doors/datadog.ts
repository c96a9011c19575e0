import { type DoorPush, DoorRows, type DoorRowsOptions } from "./door-rows.js";
import { ObjectReader, type TextRange } from "./object-reader.js";

const comma = 0x2c;
const colon = 0x3a;

/**
 * Decodes what agents of Datadog send: an array of objects, or one object. Each tag of `ddtags` (`env:prod,team:a`) is a
 * field of its own. Throws invalid_argument for a body that is no such JSON, because its objects cannot be told apart then.
 */
export function decodeDatadog(options: DoorRowsOptions): DoorPush {
  return new DatadogDecoder(options).decode();
}

class DatadogDecoder {
  readonly #rows: DoorRows;
  readonly #reader: ObjectReader;
  readonly #levelName: TextRange;

  constructor(options: DoorRowsOptions) {
    this.#rows = new DoorRows(options);
    this.#reader = new ObjectReader(this.#rows);
    this.#levelName = this.#rows.write("level");
  }

  decode(): DoorPush {
    const { scanner } = this.#reader;
    if (scanner.accept(0x5b)) {
      if (!scanner.accept(0x5d)) {
        do this.#record();
        while (scanner.accept(comma));
        scanner.expect(0x5d);
      }
    } else if (scanner.peek() !== -1) this.#record();
    scanner.end();
    return this.#rows.finish();
  }

  #record(): void {
    const { scanner } = this.#reader;
    scanner.peek();
    const start = scanner.at;
    if (this.#rows.record(this.#readObject)) return;
    scanner.at = start;
    scanner.skip(0);
  }

  readonly #readObject = (): void => {
    const { scanner } = this.#reader;
    const start = scanner.at;
    this.#rows.beginWhole();
    scanner.expect(0x7b);
    if (!scanner.accept(0x7d)) {
      do this.#member();
      while (scanner.accept(comma));
      scanner.expect(0x7d);
    }
    this.#rows.end({ start, length: scanner.at - start });
  };

  #member(): void {
    const { scanner } = this.#reader;
    scanner.peek();
    const name = this.#reader.text();
    scanner.expect(colon);
    const isText = scanner.peek() === 0x22;
    if (isText && this.#rows.isText(name, "ddtags")) this.#tags(name, this.#reader.text());
    else if (isText && this.#rows.isText(name, "status")) {
      const at = scanner.at;
      const { start, length } = this.#reader.text();
      // Readers look for the level of a line there.
      this.#rows.field(this.#levelName.start, this.#levelName.length, start, length);
      scanner.at = at;
      this.#reader.member(name);
    } else this.#reader.member(name);
  }

  /** Adds each tag as a field. Where one has no value, or a name that came before, the text stays too. */
  #tags(name: TextRange, { start, length }: TextRange): void {
    const { bytes } = this.#rows.arena;
    const end = start + length;
    const names = new Set<string>();
    let isWhole = true;
    for (let from = start; from < end; ) {
      const found = bytes.indexOf(comma, from);
      const to = found < 0 || found > end ? end : found;
      const split = bytes.indexOf(colon, from);
      const hasValue = split > from && split < to - 1;
      const key = hasValue ? Buffer.from(bytes.subarray(from, split)).toString() : "";
      if (hasValue) this.#rows.field(from, split - from, split + 1, to - split - 1);
      if (!hasValue || names.has(key)) isWhole = false;
      names.add(key);
      from = to + 1;
    }
    if (!isWhole) this.#rows.field(name.start, name.length, start, length);
  }
}
