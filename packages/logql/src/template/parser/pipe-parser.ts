import { TemplateSyntaxError } from "../value/error.js";
import type { Command, Operand, Pipe } from "./ast.js";
import { type Cursor, unexpected } from "./cursor.js";
import type { TemplateToken } from "./lexer.js";
import { templateNumber, templateText } from "./literal.js";

/** Parses what is evaluated: commands with their operands, each given the result of the one before it. */
export class PipeParser {
  readonly #cursor: Cursor;
  readonly #hasFunction: (name: string) => boolean;

  constructor(cursor: Cursor, hasFunction: (name: string) => boolean) {
    this.#cursor = cursor;
    this.#hasFunction = hasFunction;
  }

  /** Reads commands up to the end of an action or of parentheses, which is consumed; what it declares is in scope then. */
  pipe(context: string, closes: "right" | "close"): Pipe {
    return this.#cursor.inside(() => this.#commands(context, closes));
  }

  #commands(context: string, closes: "right" | "close"): Pipe {
    const { variables, assigns } = this.#declarations(context);
    const commands: Command[] = [];
    while (true) {
      this.#cursor.skipSpace();
      const token = this.#cursor.peek();
      if (token.kind === closes) {
        this.#cursor.take();
        if (commands.length === 0)
          throw new TemplateSyntaxError(`missing value for ${context}`, token.at);
        checkPipeline(commands);
        if (!assigns) this.#cursor.declare(variables);
        return { variables, assigns, commands };
      }
      commands.push(this.#command(context));
    }
  }

  #declarations(context: string): { variables: readonly string[]; assigns: boolean } {
    const start = this.#cursor.place;
    const variables: string[] = [];
    while (true) {
      this.#cursor.skipSpace();
      const token = this.#cursor.peek();
      if (token.kind !== "variable") break;
      this.#cursor.take();
      this.#cursor.skipSpace();
      const mark = this.#cursor.peek();
      if (mark.kind === "comma" && context === "range" && variables.length === 0) {
        this.#cursor.take();
        variables.push(token.text);
        continue;
      }
      if (mark.kind !== "declare" && mark.kind !== "assign") break;
      this.#cursor.take();
      variables.push(token.text);
      if (mark.kind === "assign")
        for (const name of variables) this.#cursor.checkVariable(name, token.at);
      return { variables, assigns: mark.kind === "assign" };
    }
    this.#cursor.goTo(start);
    return { variables: [], assigns: false };
  }

  #command(context: string): Command {
    const from = this.#cursor.at;
    const args: Operand[] = [];
    while (true) {
      const operand = this.#operand();
      if (operand !== undefined) args.push(operand);
      const token = this.#cursor.peek();
      switch (token.kind) {
        case "space":
          this.#cursor.skipSpace();
          break;
        case "pipe":
          this.#cursor.take();
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
    return { args, at: from, text: this.#cursor.source.slice(from, to).trim() };
  }

  #operand(): Operand | undefined {
    const token = this.#cursor.peek();
    const base = this.#term(token);
    if (base === undefined) return undefined;
    // A chain is found where its second field is.
    const at = this.#cursor.peek().kind === "field" ? this.#cursor.at : token.at;
    const fields: string[] = [];
    while (this.#cursor.peek().kind === "field") fields.push(this.#cursor.take().text.slice(1));
    const text = this.#cursor.source.slice(token.at, this.#cursor.at);
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
    const take = () => this.#cursor.take();
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
        this.#cursor.checkVariable(text, at);
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
        const pipe = this.pipe("parenthesized pipeline", "close");
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
