import type { FunctionTable } from "../functions/table.js";
import { TemplateRunError } from "../value/error.js";

/** Where a node stands, for error texts, and what it may call. */
export interface TemplateSource {
  readonly source: string;
  readonly name: string;
  readonly functions: FunctionTable;
}

/** Says of what goes wrong in a template where that is. */
export class Failures {
  readonly #source: TemplateSource & { readonly executing: string };

  /** `executing` is the name of the template among those of the source. */
  constructor(source: TemplateSource, executing: string) {
    this.#source = { ...source, executing };
  }

  /** Does work, and says of a TemplateRunError of it where it came from. */
  guard<T>(at: number, text: string, prefix: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof TemplateRunError) return this.fail(at, text, prefix + error.message);
      throw error;
    }
  }

  /** Throws TemplateRunError. */
  fail(at: number, text: string, message: string): never {
    const { source, name, executing } = this.#source;
    const before = source.slice(0, at);
    const line = before.split("\n").length;
    const column = new TextEncoder().encode(before.slice(before.lastIndexOf("\n") + 1)).length;
    throw new TemplateRunError(
      `template: ${name}:${line}:${column}: executing ${JSON.stringify(executing)} at <${text}>: ${message}`,
    );
  }
}
