import { lexTemplate, type TemplateToken, templateNumber, templateText } from "./lexer.js";
import { TemplateSyntaxError } from "./value.js";

/** A parsed template: what Go's text/template calls its list of nodes. */
export type TemplateNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "action"; readonly pipe: Pipe }
  | (Block & { readonly kind: "if" | "with" })
  | (Block & { readonly kind: "range" })
  | { readonly kind: "break" }
  | { readonly kind: "continue" }
  | (Placed & {
      readonly kind: "template";
      readonly name: string;
      /** What becomes the dot; nil when not given. */
      readonly pipe: Pipe | undefined;
    });

/** A template and those it defines, by name; its own is among them. */
export interface TemplateSet {
  readonly main: readonly TemplateNode[];
  readonly definitions: ReadonlyMap<string, readonly TemplateNode[]>;
}

/** Where an error text says that something stands. */
export interface Placed {
  /** Offset in the template. */
  readonly at: number;
  /** As Go prints it in error texts. */
  readonly text: string;
}

interface Block {
  readonly pipe: Pipe;
  readonly body: readonly TemplateNode[];
  readonly otherwise: readonly TemplateNode[];
}

/** `$x := .a | upper`: commands joined by `|`, each one's result is the last argument of the next. */
export interface Pipe {
  /** Names with the dollar sign. */
  readonly variables: readonly string[];
  /** `=` instead of `:=` */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

/** A function with its arguments, or a single operand. */
export interface Command extends Placed {
  readonly args: readonly Operand[];
}

export type Operand = Placed &
  (
    | { readonly kind: "dot" }
    | { readonly kind: "nil" }
    | { readonly kind: "constant"; readonly value: string | bigint | number | boolean }
    /** `.a.b`: a chain of fields on the dot */
    | { readonly kind: "field"; readonly fields: readonly string[] }
    /** `$x.a.b` */
    | { readonly kind: "variable"; readonly name: string; readonly fields: readonly string[] }
    /** `(pipeline).a.b` */
    | { readonly kind: "group"; readonly pipe: Pipe; readonly fields: readonly string[] }
    | { readonly kind: "function"; readonly name: string }
  );

/** What the error of a pipeline's result names: the operand that was evaluated last. */
export function lastOperand(pipe: Pipe): Operand {
  const operand = pipe.commands.at(-1)?.args.at(-1) as Operand;
  return operand.kind === "group" && operand.fields.length === 0
    ? lastOperand(operand.pipe)
    : operand;
}

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

/** Parses a template from its tokens: texts, actions with their pipes, and blocks with nodes inside. */
class Parser {
  readonly #source: string;
  readonly #hasFunction: (name: string) => boolean;
  readonly #tokens: readonly TemplateToken[];
  readonly #definitions = new Map<string, readonly TemplateNode[]>();
  #next = 0;
  /** Blocks and parentheses around the next token, and those of them that are ranges. */
  #depth = 0;
  #ranges = 0;
  /** Variables in scope. */
  #variables: string[] = ["$"];

  /** Throws TemplateSyntaxError where the source cannot be split into tokens. */
  constructor(source: string, hasFunction: (name: string) => boolean) {
    this.#source = source;
    this.#hasFunction = hasFunction;
    this.#tokens = lexTemplate(source);
  }

  parse(name: string): TemplateSet {
    const { nodes, end } = this.#list(false);
    if (end !== "eof") throw new TemplateSyntaxError(`unexpected {{${end}}}`, this.#at);
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
      const token = this.#take();
      if (token.kind === "end") {
        if (inside) throw new TemplateSyntaxError("unexpected EOF", token.at);
        return { nodes, end: "eof" };
      }
      if (token.kind === "text") {
        nodes.push({ kind: "text", text: token.text });
        continue;
      }
      this.#skipSpace();
      const word = this.#peek();
      if (word.kind === "word" && (word.text === "end" || word.text === "else")) {
        this.#take();
        if (word.text === "end") this.#expectRight("end");
        return { nodes, end: word.text };
      }
      if (!inside && word.kind === "word" && word.text === "define") this.#definition();
      else nodes.push(this.#action());
    }
  }

  /** Reads `{{define "name"}} ... {{end}}`, which stands beside other nodes only. */
  #definition(): void {
    this.#take();
    const name = this.#templateName("define clause");
    this.#expectRight("define clause");
    this.#define(name, this.#body("define clause"));
  }

  /** The nodes of a template inside this one: it sees no variables but its own `$`. */
  #body(context: string): readonly TemplateNode[] {
    const outer = this.#ranges;
    this.#ranges = 0;
    const read = () => this.#list(true);
    const { nodes, end } = this.#inside(() => this.#inNewScope(read));
    if (end !== "end")
      throw new TemplateSyntaxError(`unexpected {{${end}}} in ${context}`, this.#at);
    this.#ranges = outer;
    return nodes;
  }

  /** Defines a template. Where two have one name, one of them must be empty and the other one counts. */
  #define(name: string, nodes: readonly TemplateNode[]): void {
    const known = this.#definitions.get(name);
    if (known === undefined || isBlank(known)) this.#definitions.set(name, nodes);
    else if (!isBlank(nodes)) {
      throw new TemplateSyntaxError(
        `template: multiple definition of template ${JSON.stringify(name)}`,
        this.#at,
      );
    }
  }

  /** Reads `{{template "name" pipeline}}`, or `{{block "name" pipeline}} ... {{end}}`, which defines it too. */
  #template(kind: "template" | "block"): TemplateNode {
    const context = `${kind} clause`;
    this.#skipSpace();
    const { at } = this.#peek();
    const name = this.#templateName(context);
    this.#skipSpace();
    const from = this.#at;
    let pipe: Pipe | undefined;
    if (kind === "template" && this.#peek().kind === "right") this.#take();
    else pipe = this.#pipe(context, "right");
    const given = this.#textFrom(from);
    const text = `{{template ${JSON.stringify(name)}${given === "" ? "" : ` ${given}`}}}`;
    if (kind === "block") this.#define(name, this.#body(context));
    return { kind: "template", name, pipe, at, text };
  }

  #templateName(context: string): string {
    this.#skipSpace();
    const token = this.#take();
    if (token.kind !== "string") {
      throw unexpected(token, context);
    }
    return templateText(token);
  }

  #action(): TemplateNode {
    const word = this.#peek();
    if (word.kind === "word") {
      switch (word.text) {
        case "if":
        case "with":
        case "range":
          this.#take();
          return this.#block(word.text);
        case "break":
        case "continue":
          this.#take();
          if (this.#ranges === 0) {
            throw new TemplateSyntaxError(`{{${word.text}}} outside {{range}}`, word.at);
          }
          this.#expectRight(`{{${word.text}}}`);
          return { kind: word.text };
        case "block":
        case "template":
          this.#take();
          return this.#template(word.text);
        case "define":
          throw new TemplateSyntaxError("unexpected <define> in command", word.at);
      }
    }
    return { kind: "action", pipe: this.#pipe("command", "right") };
  }

  #block(kind: "if" | "with" | "range"): TemplateNode {
    return this.#inside(() => this.#inScope(() => this.#control(kind)));
  }

  #control(kind: "if" | "with" | "range"): TemplateNode {
    const pipe = this.#pipe(kind, "right");
    if (kind === "range") this.#ranges++;
    const { nodes: body, end } = this.#list(true);
    if (kind === "range") this.#ranges--;
    const otherwise = end === "else" ? this.#otherwise(kind) : [];
    return kind === "range" ? { kind, pipe, body, otherwise } : { kind, pipe, body, otherwise };
  }

  #otherwise(kind: "if" | "with" | "range"): readonly TemplateNode[] {
    this.#skipSpace();
    const word = this.#peek();
    if (word.kind === "word" && kind !== "range" && word.text === kind) {
      this.#take();
      return [this.#block(kind)];
    }
    this.#expectRight("else");
    const { nodes, end } = this.#list(true);
    if (end === "else") throw new TemplateSyntaxError("expected end; found {{else}}", this.#at);
    return nodes;
  }

  /** Reads commands up to the end of an action or of parentheses, which is consumed; what it declares is in scope then. */
  #pipe(context: string, closes: "right" | "close"): Pipe {
    return this.#inside(() => this.#commands(context, closes));
  }

  #commands(context: string, closes: "right" | "close"): Pipe {
    const { variables, assigns } = this.#declarations(context);
    const commands: Command[] = [];
    while (true) {
      this.#skipSpace();
      const token = this.#peek();
      if (token.kind === closes) {
        this.#take();
        if (commands.length === 0)
          throw new TemplateSyntaxError(`missing value for ${context}`, token.at);
        checkPipeline(commands);
        if (!assigns) this.#variables.push(...variables);
        return { variables, assigns, commands };
      }
      commands.push(this.#command(context));
    }
  }

  #declarations(context: string): { variables: readonly string[]; assigns: boolean } {
    const start = this.#next;
    const variables: string[] = [];
    while (true) {
      this.#skipSpace();
      const token = this.#peek();
      if (token.kind !== "variable") break;
      this.#take();
      this.#skipSpace();
      const mark = this.#peek();
      if (mark.kind === "comma" && context === "range" && variables.length === 0) {
        this.#take();
        variables.push(token.text);
        continue;
      }
      if (mark.kind !== "declare" && mark.kind !== "assign") break;
      this.#take();
      variables.push(token.text);
      if (mark.kind === "assign") for (const name of variables) this.#checkVariable(name, token.at);
      return { variables, assigns: mark.kind === "assign" };
    }
    this.#next = start;
    return { variables: [], assigns: false };
  }

  #command(context: string): Command {
    const from = this.#at;
    const args: Operand[] = [];
    while (true) {
      const operand = this.#operand();
      if (operand !== undefined) args.push(operand);
      const token = this.#peek();
      switch (token.kind) {
        case "space":
          this.#skipSpace();
          break;
        case "pipe":
          this.#take();
          return this.#commandOf(args, from, token.at);
        case "right":
        case "close":
          return this.#commandOf(args, from, token.at);
        default: {
          const place = operand === undefined ? context : "operand";
          throw unexpected(token, place);
        }
      }
    }
  }

  #commandOf(args: readonly Operand[], from: number, to: number): Command {
    if (args.length === 0) throw new TemplateSyntaxError("empty command", to);
    return { args, at: from, text: spaced(this.#source.slice(from, to)) };
  }

  #operand(): Operand | undefined {
    const token = this.#peek();
    const base = this.#term(token);
    if (base === undefined) return undefined;
    // A chain is found where its second field is.
    const at = this.#peek().kind === "field" ? this.#at : token.at;
    const fields: string[] = [];
    while (this.#peek().kind === "field") fields.push(this.#take().text.slice(1));
    const text = spaced(this.#source.slice(token.at, this.#at));
    switch (base.kind) {
      case "field":
        return { ...base, fields: [...base.fields, ...fields], at, text };
      case "variable":
      case "group":
        return { ...base, fields, at, text };
      default:
        if (fields.length === 0) return base;
        if (base.kind === "dot" || base.kind === "function") {
          const args: readonly Operand[] = [base];
          const pipe: Pipe = {
            variables: [],
            assigns: false,
            commands: [{ args, at: token.at, text: token.text }],
          };
          return { kind: "group", pipe, fields, at, text };
        }
        throw new TemplateSyntaxError(`unexpected . after term ${JSON.stringify(token.text)}`, at);
    }
  }

  #term(token: TemplateToken): Operand | undefined {
    const { at, text } = token;
    const take = () => this.#take();
    switch (token.kind) {
      case "word":
        take();
        return this.#word(token);
      case "dot":
        take();
        return { kind: "dot", at, text };
      case "field":
        take();
        return { kind: "field", fields: [text.slice(1)], at, text };
      case "variable":
        take();
        this.#checkVariable(text, at);
        return { kind: "variable", name: text, fields: [], at, text };
      case "string":
        take();
        return { kind: "constant", value: templateText(token), at, text };
      case "char": {
        take();
        const [char = "", ...others] = templateText({ ...token, text: `"${text.slice(1, -1)}"` });
        if (others.length > 0) {
          throw new TemplateSyntaxError(`malformed character constant: ${text}`, at);
        }
        return { kind: "constant", value: BigInt(char.codePointAt(0) ?? 0), at, text };
      }
      case "number":
        take();
        return { kind: "constant", value: templateNumber(token), at, text };
      case "open": {
        take();
        const pipe = this.#pipe("parenthesized pipeline", "close");
        return { kind: "group", pipe, fields: [], at, text: "" };
      }
      default:
        return undefined;
    }
  }

  #word({ at, text }: TemplateToken): Operand {
    if (text === "true" || text === "false") {
      return { kind: "constant", value: text === "true", at, text };
    }
    if (text === "nil") return { kind: "nil", at, text };
    if (!this.#hasFunction(text)) {
      throw new TemplateSyntaxError(`function ${JSON.stringify(text)} not defined`, at);
    }
    return { kind: "function", name: text, at, text };
  }

  /** Where the next token begins in the source. */
  get #at(): number {
    return this.#peek().at;
  }

  #peek(): TemplateToken {
    return this.#tokens[this.#next] as TemplateToken;
  }

  /** Consumes the next token; the end stays the next one for ever. */
  #take(): TemplateToken {
    const token = this.#peek();
    if (token.kind !== "end") this.#next++;
    return token;
  }

  #skipSpace(): void {
    while (this.#peek().kind === "space") this.#next++;
  }

  /** Consumes the end of an action. */
  #expectRight(context: string): void {
    this.#skipSpace();
    const token = this.#take();
    if (token.kind !== "right") throw unexpected(token, context);
  }

  /** What the source says from an offset to the token that was taken last. */
  #textFrom(from: number): string {
    return this.#source.slice(from, this.#tokens[this.#next - 1]?.at).trim();
  }

  /** Reads what is inside a block or parentheses, which are walked by recursion. Throws where that is too deep. */
  #inside<T>(read: () => T): T {
    if (++this.#depth > depthMax) throw new TemplateSyntaxError("nested too deeply", this.#at);
    const found = read();
    this.#depth--;
    return found;
  }

  /** Reads what has variables of its own, and sees those around it. */
  #inScope<T>(read: () => T): T {
    const count = this.#variables.length;
    const found = read();
    this.#variables.length = count;
    return found;
  }

  /** Reads what sees no variables but its own `$`. */
  #inNewScope<T>(read: () => T): T {
    const outer = this.#variables;
    this.#variables = ["$"];
    const found = read();
    this.#variables = outer;
    return found;
  }

  #checkVariable(name: string, at: number): void {
    if (!this.#variables.includes(name)) {
      throw new TemplateSyntaxError(`undefined variable ${JSON.stringify(name)}`, at);
    }
  }
}

/** A template of blanks, and of definitions, which leave no node. */
function isBlank(nodes: readonly TemplateNode[]): boolean {
  return nodes.every((node) => node.kind === "text" && /^[ \t\r\n]*$/.test(node.text));
}

/** Only a function can take the result of the command before it. */
function checkPipeline(commands: readonly Command[]): void {
  for (const command of commands.slice(1)) {
    const first = command.args[0] as Operand;
    if (first.kind === "constant" || first.kind === "dot" || first.kind === "nil") {
      throw new TemplateSyntaxError(`non executable command in pipeline stage 2`, command.at);
    }
  }
}

const depthMax = 200;

/** The error of a token that cannot stand where it does. */
function unexpected(token: TemplateToken, context: string): TemplateSyntaxError {
  const text = token.kind === "end" ? "EOF" : JSON.stringify(token.text);
  return new TemplateSyntaxError(`unexpected ${text} in ${context}`, token.at);
}

/** A piece of a template as error texts show it: one blank between words, none inside parentheses. */
function spaced(source: string): string {
  return source
    .trim()
    .replace(
      /("(?:\\.|[^"\\])*"|`[^`]*`|'(?:\\.|[^'\\])*')|\s*(\|)\s*|(\()\s+|\s+(\))|(\s+)/g,
      spacing,
    );
}

function spacing(all: string, text?: string, pipe?: string, open?: string, close?: string): string {
  if (text !== undefined) return all;
  if (pipe !== undefined) return " | ";
  return open ?? close ?? " ";
}
