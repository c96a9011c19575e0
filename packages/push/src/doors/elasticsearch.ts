import { invalidArgument, tooLarge } from "@skald/model";
import { type DoorPush, DoorRows, type DoorRowsOptions } from "./door-rows.js";
import { ObjectReader } from "./object-reader.js";

/** The actions of a bulk; an answer names them by their index here. */
export const bulkActions = ["index", "create", "update", "delete"] as const;

/** A decoded bulk with the action of each record. */
export interface BulkPush extends DoorPush {
  readonly actions: Uint8Array;
}

/** The answer has an item for each action; agents send a hundredth of it. */
const maxActions = 128 * 1024;
const lineFeed = 0x0a;

/**
 * Decodes the body of Elasticsearch's `_bulk`: a line with an action, then a line with its document, which becomes a row.
 * `update` and `delete` are refused one by one. Throws invalid_argument for a line that should have an action and has none,
 * because nobody knows then which lines are documents.
 */
export function decodeBulk(options: DoorRowsOptions): BulkPush {
  return new BulkDecoder(options).decode();
}

/** Decodes one document, which may have line feeds in it. */
export function decodeDocument(options: DoorRowsOptions): DoorPush {
  const rows = new DoorRows(options);
  const reader = new ObjectReader(rows);
  rows.record(() => reader.endWith());
  return rows.finish();
}

class BulkDecoder {
  readonly #rows: DoorRows;
  readonly #reader: ObjectReader;
  readonly #indexName: { readonly start: number; readonly length: number };
  readonly #actions: number[] = [];
  #at = 0;

  constructor(options: DoorRowsOptions) {
    this.#rows = new DoorRows(options);
    this.#reader = new ObjectReader(this.#rows);
    this.#indexName = this.#rows.write("_index");
  }

  decode(): BulkPush {
    const rows = this.#rows;
    const { scanner } = this.#reader;
    while (this.#nextLine()) {
      if (this.#actions.length === maxActions) {
        throw tooLarge(
          `the bulk has more than ${maxActions} actions, so none is stored; send less in one bulk`,
        );
      }
      rows.begin();
      this.#action();
      scanner.end();
      const action = bulkActions[this.#actions.at(-1)!]!;
      const hasDocument = action === "delete" || this.#nextLine();
      try {
        if (action === "delete" || action === "update") {
          throw invalidArgument(`${action} is not supported: log lines never change`);
        }
        if (!hasDocument) throw invalidArgument("the bulk ends before the document of the action");
        this.#reader.endWith();
      } catch (error) {
        rows.refuse(error);
      }
    }
    return { ...rows.finish(), actions: Uint8Array.from(this.#actions) };
  }

  /** Goes to the next line that is not empty; false at the end. */
  #nextLine(): boolean {
    const { body } = this.#rows;
    const { scanner } = this.#reader;
    while (this.#at < body.length) {
      const found = body.indexOf(lineFeed, this.#at);
      const end = found < 0 ? body.length : found;
      scanner.at = this.#at;
      scanner.limit = end;
      this.#at = end + 1;
      if (scanner.peek() !== -1) return true;
    }
    return false;
  }

  /** Reads `{"create": {"_index": "logs"}}`; the index is a field of the record. */
  #action(): void {
    const { scanner } = this.#reader;
    scanner.expect(0x7b);
    const name = this.#reader.text();
    const action = bulkActions.findIndex((one) => this.#rows.isText(name, one));
    if (action < 0) throw scanner.error("expected an action: index, create, update or delete");
    this.#actions.push(action);
    scanner.expect(0x3a);
    scanner.expect(0x7b);
    if (!scanner.accept(0x7d)) {
      do this.#parameter();
      while (scanner.accept(0x2c));
      scanner.expect(0x7d);
    }
    scanner.expect(0x7d);
  }

  #parameter(): void {
    const { scanner } = this.#reader;
    scanner.peek();
    const name = this.#reader.text();
    scanner.expect(0x3a);
    if (!this.#rows.isText(name, "_index")) {
      scanner.skip(0);
      return;
    }
    const value = this.#reader.value();
    const { start, length } = this.#indexName;
    this.#rows.field(start, length, value.start, value.length);
  }
}
