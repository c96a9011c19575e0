import { TemplateSyntaxError } from "../value/error.js";
import { lexTemplate, type TemplateToken } from "./lexer.js";

const depthMax = 200;

/** Where a parser is in a template: the next token, the variables in scope, and how deep in blocks and parentheses. */
export class Cursor {
  readonly source: string;
  readonly #tokens: readonly TemplateToken[];
  #next = 0;
  #depth = 0;
  #variables: string[] = ["$"];

  /** Throws TemplateSyntaxError where the source is no tokens. */
  constructor(source: string) {
    this.source = source;
    this.#tokens = lexTemplate(source);
  }

  /** Where the next token begins in the source. */
  get at(): number {
    return this.peek().at;
  }

  peek(): TemplateToken {
    return this.#tokens[this.#next] as TemplateToken;
  }

  /** Consumes the next token; the end stays the next one for ever. */
  take(): TemplateToken {
    const token = this.peek();
    if (token.kind !== "end") this.#next++;
    return token;
  }

  skipSpace(): void {
    while (this.peek().kind === "space") this.#next++;
  }

  /** Consumes the end of an action. */
  expectRight(context: string): void {
    this.skipSpace();
    const token = this.take();
    if (token.kind !== "right") throw unexpected(token, context);
  }

  /** The place of the next token, to come back to with `goTo`. */
  get place(): number {
    return this.#next;
  }

  goTo(place: number): void {
    this.#next = place;
  }

  /** What the source says from an offset to the token that was taken last. */
  textFrom(from: number): string {
    return this.source.slice(from, this.#tokens[this.#next - 1]?.at).trim();
  }

  /** Reads what is inside a block or parentheses, which are walked by recursion. Throws where that is too deep. */
  inside<T>(read: () => T): T {
    if (++this.#depth > depthMax) throw new TemplateSyntaxError("nested too deeply", this.at);
    const found = read();
    this.#depth--;
    return found;
  }

  /** Reads what has variables of its own, and sees those around it. */
  inScope<T>(read: () => T): T {
    const count = this.#variables.length;
    const found = read();
    this.#variables.length = count;
    return found;
  }

  /** Reads what sees no variables but its own `$`. */
  inNewScope<T>(read: () => T): T {
    const outer = this.#variables;
    this.#variables = ["$"];
    const found = read();
    this.#variables = outer;
    return found;
  }

  declare(variables: readonly string[]): void {
    this.#variables.push(...variables);
  }

  checkVariable(name: string, at: number): void {
    if (!this.#variables.includes(name)) {
      throw new TemplateSyntaxError(`undefined variable ${JSON.stringify(name)}`, at);
    }
  }
}

/** The error of a token that cannot stand where it does. */
export function unexpected(token: TemplateToken, context: string): TemplateSyntaxError {
  const text = token.kind === "end" ? "EOF" : JSON.stringify(token.text);
  return new TemplateSyntaxError(`unexpected ${text} in ${context}`, token.at);
}
