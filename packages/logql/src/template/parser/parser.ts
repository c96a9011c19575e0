import { TemplateSyntaxError } from "../value/error.js";
import type { Pipe, TemplateNode, TemplateSet } from "./ast.js";
import { Cursor, unexpected } from "./cursor.js";
import { templateText } from "./literal.js";
import { PipeParser } from "./pipe-parser.js";

/**
 * Parses a template called `name` and those it defines; `hasFunction` tells which functions exist. Throws
 * TemplateSyntaxError.
 */
export function parseTemplate(
  source: string,
  name: string,
  hasFunction: (name: string) => boolean,
): TemplateSet {
  return new Parser(source, hasFunction).parse(name);
}

type ListEnd = "eof" | "end" | "else";

/** Parses nodes: texts, actions, and blocks with nodes inside. */
class Parser {
  readonly #cursor: Cursor;
  readonly #pipes: PipeParser;
  readonly #definitions = new Map<string, readonly TemplateNode[]>();
  #ranges = 0;

  constructor(source: string, hasFunction: (name: string) => boolean) {
    this.#cursor = new Cursor(source);
    this.#pipes = new PipeParser(this.#cursor, hasFunction);
  }

  parse(name: string): TemplateSet {
    const { nodes, end } = this.#list(false);
    if (end !== "eof") throw new TemplateSyntaxError(`unexpected {{${end}}}`, this.#cursor.at);
    this.#define(name, nodes);
    return {
      main: this.#definitions.get(name) as readonly TemplateNode[],
      definitions: this.#definitions,
    };
  }

  /** Nodes up to the end of the template, or up to an `end` or `else`, which is consumed as a word. */
  #list(inside: boolean): { nodes: readonly TemplateNode[]; end: ListEnd } {
    const nodes: TemplateNode[] = [];
    while (true) {
      const token = this.#cursor.take();
      if (token.kind === "end") {
        if (inside) throw new TemplateSyntaxError("unexpected EOF", token.at);
        return { nodes, end: "eof" };
      }
      if (token.kind === "text") {
        nodes.push({ kind: "text", text: token.text });
        continue;
      }
      this.#cursor.skipSpace();
      const word = this.#cursor.peek();
      if (word.kind === "word" && (word.text === "end" || word.text === "else")) {
        this.#cursor.take();
        if (word.text === "end") this.#cursor.expectRight("end");
        return { nodes, end: word.text };
      }
      if (!inside && word.kind === "word" && word.text === "define") this.#definition();
      else nodes.push(this.#action());
    }
  }

  /** Reads `{{define "name"}} ... {{end}}`, which stands beside other nodes only. */
  #definition(): void {
    this.#cursor.take();
    const name = this.#templateName("define clause");
    this.#cursor.expectRight("define clause");
    this.#define(name, this.#body("define clause"));
  }

  /** The nodes of a template inside this one: it sees no variables but its own `$`. */
  #body(context: string): readonly TemplateNode[] {
    const outer = this.#ranges;
    this.#ranges = 0;
    const read = () => this.#list(true);
    const { nodes, end } = this.#cursor.inside(() => this.#cursor.inNewScope(read));
    if (end !== "end")
      throw new TemplateSyntaxError(`unexpected {{${end}}} in ${context}`, this.#cursor.at);
    this.#ranges = outer;
    return nodes;
  }

  /** Of two templates with a name one must be empty, and the other one counts. */
  #define(name: string, nodes: readonly TemplateNode[]): void {
    const known = this.#definitions.get(name);
    if (known === undefined || isBlank(known)) this.#definitions.set(name, nodes);
    else if (!isBlank(nodes)) {
      throw new TemplateSyntaxError(
        `template: multiple definition of template ${JSON.stringify(name)}`,
        this.#cursor.at,
      );
    }
  }

  /** Reads `{{template "name" pipeline}}`, or `{{block "name" pipeline}} ... {{end}}`, which defines it too. */
  #template(kind: "template" | "block"): TemplateNode {
    const context = `${kind} clause`;
    this.#cursor.skipSpace();
    const { at } = this.#cursor.peek();
    const name = this.#templateName(context);
    this.#cursor.skipSpace();
    const from = this.#cursor.at;
    let pipe: Pipe | undefined;
    if (kind === "template" && this.#cursor.peek().kind === "right") this.#cursor.take();
    else pipe = this.#pipes.pipe(context, "right");
    const given = this.#cursor.textFrom(from);
    const text = `{{template ${JSON.stringify(name)}${given === "" ? "" : ` ${given}`}}}`;
    if (kind === "block") this.#define(name, this.#body(context));
    return { kind: "template", name, pipe, at, text };
  }

  #templateName(context: string): string {
    this.#cursor.skipSpace();
    const token = this.#cursor.take();
    if (token.kind !== "string") {
      throw unexpected(token, context);
    }
    return templateText(token);
  }

  #action(): TemplateNode {
    const word = this.#cursor.peek();
    if (word.kind === "word") {
      switch (word.text) {
        case "if":
        case "with":
        case "range":
          this.#cursor.take();
          return this.#block(word.text);
        case "break":
        case "continue":
          this.#cursor.take();
          if (this.#ranges === 0) {
            throw new TemplateSyntaxError(`{{${word.text}}} outside {{range}}`, word.at);
          }
          this.#cursor.expectRight(`{{${word.text}}}`);
          return { kind: word.text };
        case "block":
        case "template":
          this.#cursor.take();
          return this.#template(word.text);
        case "define":
          throw new TemplateSyntaxError("unexpected <define> in command", word.at);
      }
    }
    return { kind: "action", pipe: this.#pipes.pipe("command", "right") };
  }

  #block(kind: "if" | "with" | "range"): TemplateNode {
    return this.#cursor.inside(() => this.#cursor.inScope(() => this.#control(kind)));
  }

  #control(kind: "if" | "with" | "range"): TemplateNode {
    const pipe = this.#pipes.pipe(kind, "right");
    if (kind === "range") this.#ranges++;
    const { nodes: body, end } = this.#list(true);
    if (kind === "range") this.#ranges--;
    const otherwise = end === "else" ? this.#otherwise(kind) : [];
    return kind === "range" ? { kind, pipe, body, otherwise } : { kind, pipe, body, otherwise };
  }

  #otherwise(kind: "if" | "with" | "range"): readonly TemplateNode[] {
    this.#cursor.skipSpace();
    const word = this.#cursor.peek();
    if (word.kind === "word" && kind !== "range" && word.text === kind) {
      this.#cursor.take();
      return [this.#block(kind)];
    }
    this.#cursor.expectRight("else");
    const { nodes, end } = this.#list(true);
    if (end === "else")
      throw new TemplateSyntaxError("expected end; found {{else}}", this.#cursor.at);
    return nodes;
  }
}

/** A template of blanks, and of definitions, which leave no node. */
function isBlank(nodes: readonly TemplateNode[]): boolean {
  return nodes.every((node) => node.kind === "text" && /^[ \t\r\n]*$/.test(node.text));
}
