import { invalidArgument, SkaldError } from "@skald/model";
import { type DoorPush, DoorRows, type DoorRowsOptions } from "./door-rows.js";
import { ObjectReader } from "./object-reader.js";

/**
 * Decodes events of Splunk's HTTP event collector: objects `{time, host, source, sourcetype, index, event, fields}` one behind
 * the other. The line is a text of `event` as it is, or an object of it as any other record; the rest are fields. An object
 * that is no JSON ends the reading: where the next one begins is unknown.
 */
export function decodeHecEvents(options: DoorRowsOptions): DoorPush {
  return new HecDecoder(options).decode();
}

/** What is behind `event` in an object is read before it, so that the event can end the record. */
class HecDecoder {
  readonly #rows: DoorRows;
  readonly #reader: ObjectReader;

  constructor(options: DoorRowsOptions) {
    this.#rows = new DoorRows(options);
    this.#reader = new ObjectReader(this.#rows);
  }

  decode(): DoorPush {
    const { scanner } = this.#reader;
    while (scanner.peek() !== -1) {
      const start = scanner.at;
      this.#rows.begin();
      try {
        scanner.skip(0);
      } catch (error) {
        this.#rows.refuse(stopped(error));
        break;
      }
      const end = scanner.at;
      scanner.at = start;
      try {
        this.#event(this.#envelope());
      } catch (error) {
        this.#rows.refuse(error);
      }
      scanner.at = end;
    }
    return this.#rows.finish();
  }

  /** Reads an object except for its event; returns where that begins, or -1. */
  #envelope(): number {
    const { scanner } = this.#reader;
    let event = -1;
    scanner.expect(0x7b);
    if (scanner.accept(0x7d)) return event;
    do {
      scanner.peek();
      const name = this.#reader.text();
      scanner.expect(0x3a);
      const byte = scanner.peek();
      if (this.#rows.isText(name, "event")) {
        event = scanner.at;
        scanner.skip(0);
      } else if (this.#rows.isText(name, "fields") && byte === 0x7b) this.#reader.fields();
      else if (this.#rows.isText(name, "time")) this.#time();
      else {
        const value = this.#reader.value();
        this.#rows.field(name.start, name.length, value.start, value.length);
      }
    } while (scanner.accept(0x2c));
    scanner.expect(0x7d);
    return event;
  }

  #time(): void {
    const { start, length } = this.#reader.value();
    if (length > 0) this.#rows.timeText(start, length);
  }

  #event(at: number): void {
    const { scanner } = this.#reader;
    if (at < 0) throw invalidArgument("the object has no event");
    scanner.at = at;
    if (scanner.peek() === 0x7b) {
      this.#reader.endWith(true);
      return;
    }
    const line = this.#reader.value();
    if (line.length === 0) throw invalidArgument("the event is blank");
    this.#rows.beginWhole();
    this.#rows.end(line);
  }
}

function stopped(error: unknown): unknown {
  if (!(error instanceof SkaldError) || error.code !== "invalid_argument") return error;
  return invalidArgument(`${error.message}; what follows was not read`);
}
