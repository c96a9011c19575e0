import type { Command, Operand, Pipe, TemplateNode, TemplateSet } from "./ast.js";
import { TemplateSyntaxError } from "./error.js";
import { lexTemplate, type TemplateToken } from "./lexer.js";
import { templateNumber, templateText } from "./literal.js";

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

const depthMax = 200;

type ListEnd = "eof" | "end" | "else";

class Parser {
  readonly #source: string;
  readonly #tokens: readonly TemplateToken[];
  readonly #hasFunction: (name: string) => boolean;
  readonly #definitions = new Map<string, readonly TemplateNode[]>();
  /** Variables in scope. */
  #variables: string[] = ["$"];
  #next = 0;
  #ranges = 0;
  #depth = 0;

  constructor(source: string, hasFunction: (name: string) => boolean) {
    this.#source = source;
    this.#tokens = lexTemplate(source);
    this.#hasFunction = hasFunction;
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

  get #at(): number {
    return this.#peek().at;
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
        this.#next++;
        if (word.text === "end") this.#expectRight("end");
        return { nodes, end: word.text };
      }
      if (!inside && word.kind === "word" && word.text === "define") this.#definition();
      else nodes.push(this.#action());
    }
  }

  /** Reads `{{define "name"}} ... {{end}}`, which stands beside other nodes only. */
  #definition(): void {
    this.#next++;
    const name = this.#templateName("define clause");
    this.#expectRight("define clause");
    this.#define(name, this.#body("define clause"));
  }

  /** The nodes of a template inside this one: it sees no variables but its own `$`. */
  #body(context: string): readonly TemplateNode[] {
    this.#enter();
    const outer = { variables: this.#variables, ranges: this.#ranges };
    this.#variables = ["$"];
    this.#ranges = 0;
    const { nodes, end } = this.#list(true);
    if (end !== "end")
      throw new TemplateSyntaxError(`unexpected {{${end}}} in ${context}`, this.#at);
    this.#variables = outer.variables;
    this.#ranges = outer.ranges;
    this.#depth--;
    return nodes;
  }

  /** Of two templates with a name one must be empty, and the other one counts. */
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
    if (kind === "template" && this.#peek().kind === "right") this.#next++;
    else pipe = this.#pipe(context, "right");
    const given = this.#source.slice(from, this.#tokens[this.#next - 1]?.at).trim();
    const text = `{{template ${JSON.stringify(name)}${given === "" ? "" : ` ${given}`}}}`;
    if (kind === "block") this.#define(name, this.#body(context));
    return { kind: "template", name, pipe, at, text };
  }

  #templateName(context: string): string {
    this.#skipSpace();
    const token = this.#take();
    if (token.kind !== "string") {
      throw new TemplateSyntaxError(`unexpected ${describe(token)} in ${context}`, token.at);
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
          this.#next++;
          return this.#control(word.text);
        case "break":
        case "continue":
          this.#next++;
          if (this.#ranges === 0) {
            throw new TemplateSyntaxError(`{{${word.text}}} outside {{range}}`, word.at);
          }
          this.#expectRight(`{{${word.text}}}`);
          return { kind: word.text };
        case "block":
        case "template":
          this.#next++;
          return this.#template(word.text);
        case "define":
          throw new TemplateSyntaxError("unexpected <define> in command", word.at);
      }
    }
    return { kind: "action", pipe: this.#pipe("command", "right") };
  }

  #control(kind: "if" | "with" | "range"): TemplateNode {
    this.#enter();
    const scope = this.#variables.length;
    const pipe = this.#pipe(kind, "right");
    if (kind === "range") this.#ranges++;
    const { nodes: body, end } = this.#list(true);
    if (kind === "range") this.#ranges--;
    const otherwise = end === "else" ? this.#otherwise(kind) : [];
    this.#variables.length = scope;
    this.#depth--;
    return kind === "range" ? { kind, pipe, body, otherwise } : { kind, pipe, body, otherwise };
  }

  #otherwise(kind: "if" | "with" | "range"): readonly TemplateNode[] {
    this.#skipSpace();
    const word = this.#peek();
    if (word.kind === "word" && kind !== "range" && word.text === kind) {
      this.#next++;
      return [this.#control(kind)];
    }
    this.#expectRight("else");
    const { nodes, end } = this.#list(true);
    if (end === "else") throw new TemplateSyntaxError("expected end; found {{else}}", this.#at);
    return nodes;
  }

  /** Blocks and parentheses inside each other are walked by recursion. */
  #enter(): void {
    if (++this.#depth > depthMax) throw new TemplateSyntaxError("nested too deeply", this.#at);
  }

  #pipe(context: string, closes: "right" | "close"): Pipe {
    this.#enter();
    const pipe = this.#commands(context, closes);
    this.#depth--;
    return pipe;
  }

  #commands(context: string, closes: "right" | "close"): Pipe {
    const { variables, assigns } = this.#declarations(context);
    const commands: Command[] = [];
    while (true) {
      this.#skipSpace();
      const token = this.#peek();
      if (token.kind === closes) {
        this.#next++;
        if (commands.length === 0)
          throw new TemplateSyntaxError(`missing value for ${context}`, token.at);
        checkPipeline(commands);
        this.#variables.push(...(assigns ? [] : variables));
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
      this.#next++;
      this.#skipSpace();
      const mark = this.#peek();
      if (mark.kind === "comma" && context === "range" && variables.length === 0) {
        this.#next++;
        variables.push(token.text);
        continue;
      }
      if (mark.kind !== "declare" && mark.kind !== "assign") break;
      this.#next++;
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
          this.#next++;
          return this.#commandOf(args, from, token.at);
        case "right":
        case "close":
          return this.#commandOf(args, from, token.at);
        default: {
          const place = operand === undefined ? context : "operand";
          throw new TemplateSyntaxError(`unexpected ${describe(token)} in ${place}`, token.at);
        }
      }
    }
  }

  #commandOf(args: readonly Operand[], from: number, to: number): Command {
    if (args.length === 0) throw new TemplateSyntaxError("empty command", to);
    return { args, at: from, text: this.#source.slice(from, to).trim() };
  }

  #operand(): Operand | undefined {
    const token = this.#peek();
    const base = this.#term(token);
    if (base === undefined) return undefined;
    // A chain is found where its second field is.
    const at = this.#peek().kind === "field" ? this.#at : token.at;
    const fields: string[] = [];
    while (this.#peek().kind === "field") fields.push(this.#take().text.slice(1));
    const text = this.#source.slice(token.at, this.#at);
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

  #checkVariable(name: string, at: number): void {
    if (!this.#variables.includes(name)) {
      throw new TemplateSyntaxError(`undefined variable ${JSON.stringify(name)}`, at);
    }
  }

  #expectRight(context: string): void {
    this.#skipSpace();
    const token = this.#take();
    if (token.kind !== "right") {
      throw new TemplateSyntaxError(`unexpected ${describe(token)} in ${context}`, token.at);
    }
  }

  #skipSpace(): void {
    while (this.#peek().kind === "space") this.#next++;
  }

  #peek(): TemplateToken {
    return this.#tokens[this.#next] as TemplateToken;
  }

  #take(): TemplateToken {
    const token = this.#peek();
    if (token.kind !== "end") this.#next++;
    return token;
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

function describe(token: TemplateToken): string {
  return token.kind === "end" ? "EOF" : `${JSON.stringify(token.text)}`;
}
