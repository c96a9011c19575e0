import type { FunctionTable } from "./functions.js";
import {
  type Command,
  lastOperand,
  type Operand,
  type Pipe,
  type Placed,
  type TemplateNode,
  type TemplateSet,
} from "./parser.js";
import { timeMethods } from "./times.js";
import {
  checkArguments,
  checkLength,
  type GoMap,
  isList,
  isMap,
  isTime,
  isTrue,
  printValue,
  type TemplateFunction,
  type TemplateRow,
  TemplateRunError,
  typeName,
  type Value,
} from "./value.js";

type Flow = "next" | "break" | "continue";
type Run = (env: Env) => Flow;

const templateDepthMax = 100;

/** Compiles a template and those it defines into one closure that appends to `env.out`. */
export function compileTemplates({ main, definitions }: TemplateSet, source: TemplateSource): Run {
  const runs = new Map<string, Run>();
  for (const [name, nodes] of definitions) {
    runs.set(name, new Compiler(source, name, runs).list(nodes));
  }
  return runs.get(source.name) ?? new Compiler(source, source.name, runs).list(main);
}

/** Compiles the nodes of one template into closures. */
class Compiler {
  readonly #source: TemplateSource;
  readonly #executing: string;
  /** The templates that can be called, once all are compiled. */
  readonly #templates: ReadonlyMap<string, Run>;
  /** Names of the variables in scope, by their place in an execution. */
  readonly #scope: string[] = ["$"];

  /** `executing` is the name of the template among those of the source. */
  constructor(source: TemplateSource, executing: string, templates: ReadonlyMap<string, Run>) {
    this.#source = source;
    this.#executing = executing;
    this.#templates = templates;
  }

  list(nodes: readonly TemplateNode[]): Run {
    const runs = nodes.map((node) => this.#node(node));
    return (env) => {
      for (const run of runs) {
        const flow = run(env);
        if (flow !== "next") return flow;
      }
      return "next";
    };
  }

  #node(node: TemplateNode): Run {
    switch (node.kind) {
      case "text": {
        const { text } = node;
        return (env) => {
          env.out += text;
          return "next";
        };
      }
      case "action":
        return this.#action(node.pipe);
      case "if":
      case "with":
        return this.#branch(node);
      case "range":
        return this.#range(node);
      case "template":
        return this.#template(node);
      default: {
        const flow = node.kind;
        return () => flow;
      }
    }
  }

  #action(pipe: Pipe): Run {
    const value = this.#pipe(pipe);
    if (pipe.variables.length > 0) {
      return (env) => {
        value(env);
        return "next";
      };
    }
    return (env) => {
      const printed = printValue(value(env));
      env.row.budget?.work(1 + printed.length);
      env.out += printed;
      checkLength(env.out.length);
      return "next";
    };
  }

  #branch(node: TemplateNode & { kind: "if" | "with" }): Run {
    const { value, body, otherwise } = this.#inScope(() => ({
      value: this.#pipe(node.pipe),
      body: this.list(node.body),
      otherwise: this.list(node.otherwise),
    }));
    const setsDot = node.kind === "with";
    return (env) => {
      const got = value(env);
      if (!isTrue(got)) return otherwise(env);
      if (!setsDot) return body(env);
      const { dot } = env;
      env.dot = got;
      const flow = body(env);
      env.dot = dot;
      return flow;
    };
  }

  #template({ name, pipe, at, text }: TemplateNode & { kind: "template" }): Run {
    const value = pipe === undefined ? () => null : this.#pipe(pipe);
    return (env) => {
      const run = this.#templates.get(name);
      if (run === undefined) {
        return this.#fail(at, text, `template ${JSON.stringify(name)} not defined`);
      }
      if (env.depth === templateDepthMax) {
        const message = `exceeded maximum template depth (${templateDepthMax})`;
        return this.#fail(at, text, message);
      }
      countRound(env);
      const dot = value(env);
      const inner: Env = { ...env, dot, vars: [dot], depth: env.depth + 1 };
      run(inner);
      env.out = inner.out;
      env.rounds = inner.rounds;
      return "next";
    };
  }

  #range(node: TemplateNode & { kind: "range" }): Run {
    const last = lastOperand(node.pipe);
    const { variables, commands, assigns } = node.pipe;
    const { value, slots, body, otherwise } = this.#inScope(() => ({
      value: this.#pipe({ variables: [], assigns: false, commands }),
      slots: variables.map((name) => this.#slot(name, assigns)),
      body: this.list(node.body),
      otherwise: this.list(node.otherwise),
    }));
    const [first, second] = slots;
    return (env) => {
      const got = value(env);
      const items = this.#guard(last.at, last.text, "", () => itemsOf(got));
      if (items.length === 0) return otherwise(env);
      const { dot } = env;
      for (const [key, item] of items) {
        countRound(env);
        env.dot = item;
        if (second !== undefined) {
          env.vars[first as number] = key;
          env.vars[second] = item;
        } else if (first !== undefined) env.vars[first] = item;
        if (body(env) === "break") break;
      }
      env.dot = dot;
      return "next";
    };
  }

  /** Compiles what has variables of its own, and sees those around it. */
  #inScope<T>(compile: () => T): T {
    const count = this.#scope.length;
    const compiled = compile();
    this.#scope.length = count;
    return compiled;
  }

  /** The place of a variable among those of an execution: a new one unless it is assigned to. */
  #slot(name: string, assigns: boolean): number {
    return assigns ? this.#scope.lastIndexOf(name) : this.#scope.push(name) - 1;
  }

  #pipe(pipe: Pipe): Eval {
    let value: Eval | undefined;
    for (const command of pipe.commands) value = this.#command(command, value);
    const last = value as Eval;
    const [name] = pipe.variables;
    if (name === undefined) return last;
    const slot = this.#slot(name, pipe.assigns);
    return (env) => {
      const got = last(env);
      env.vars[slot] = got;
      return got;
    };
  }

  #command(command: Command, piped: Eval | undefined): Eval {
    const [first, ...rest] = command.args as readonly [Operand, ...Operand[]];
    const args = rest.map((operand) => this.#operand(operand));
    if (first.kind === "function") return this.#call(first.name, args, command, piped);
    if (piped !== undefined) args.push(piped);
    switch (first.kind) {
      case "field":
      case "variable":
      case "group":
        return this.#chain(first, args);
      default:
        if (args.length > 0) {
          return () =>
            this.#fail(
              command.at,
              command.text,
              `can't give argument to non-function ${command.text}`,
            );
        }
        if (first.kind === "nil") {
          return () => this.#fail(command.at, command.text, "nil is not a command");
        }
        return this.#operand(first);
    }
  }

  #operand(operand: Operand): Eval {
    switch (operand.kind) {
      case "dot":
        return (env) => env.dot;
      case "nil":
        return () => null;
      case "constant": {
        const { value } = operand;
        return () => value;
      }
      case "function":
        return this.#call(operand.name, [], { ...operand, args: [operand] });
      default:
        return this.#chain(operand, []);
    }
  }

  #chain(operand: Operand & { kind: "field" | "variable" | "group" }, args: readonly Eval[]): Eval {
    const base = this.#base(operand);
    const { fields, at, text } = operand;
    if (fields.length === 0) {
      if (args.length === 0) return base;
      return () => this.#fail(at, text, `can't give argument to non-function ${text}`);
    }
    const last = fields.length - 1;
    return (env) => {
      let value = base(env);
      if (value === null) return null;
      for (let i = 0; i <= last; i++) {
        const given = i === last ? args.map((arg) => arg(env)) : [];
        value = this.#field(value, fields[i] as string, given, operand);
      }
      return value;
    };
  }

  #base(operand: Operand & { kind: "field" | "variable" | "group" }): Eval {
    if (operand.kind === "field") return (env) => env.dot;
    if (operand.kind === "group") return this.#pipe(operand.pipe);
    const slot = this.#scope.lastIndexOf(operand.name);
    return (env) => env.vars[slot] ?? null;
  }

  #field(value: Value, name: string, args: readonly Value[], { at, text }: Placed): Value {
    if (isTime(value)) {
      const method = timeMethods.get(name);
      if (method === undefined) {
        return this.#fail(at, text, `can't evaluate field ${name} in type time.Time`);
      }
      return this.#guard(at, text, "", () =>
        method.call(value, checkArguments(name, method.takes, args)),
      );
    }
    if (value === null) {
      return this.#fail(at, text, `nil pointer evaluating interface {}.${name}`);
    }
    if (args.length > 0) {
      return this.#fail(at, text, `${name} has arguments but cannot be invoked as function`);
    }
    if (isMap(value)) return value.get(name) ?? value.missing;
    return this.#fail(at, text, `can't evaluate field ${name} in type ${typeName(value)}`);
  }

  /** A piped value is the last argument, and is evaluated before the others. */
  #call(name: string, args: readonly Eval[], command: Command, piped?: Eval): Eval {
    if (name === "and" || name === "or") return this.#shortCircuit(name, args, command, piped);
    const fn = this.#source.functions.get(name) as TemplateFunction;
    const { at, text } = command;
    return (env) => {
      const last = piped?.(env);
      const given = args.map((arg) => arg(env));
      if (last !== undefined) given.push(last);
      const checked = this.#guard(at, text, "", () => checkArguments(name, fn.takes, given));
      const made = this.#guard(at, text, `error calling ${name}: `, () =>
        fn.call(checked, env.row),
      );
      env.row.budget?.work(1 + sizeOf(made));
      return made;
    };
  }

  /** The first false (and) or true (or) argument, else the last. */
  #shortCircuit(
    name: "and" | "or",
    args: readonly Eval[],
    { at, text }: Command,
    piped: Eval | undefined,
  ): Eval {
    const stopsAt = name === "or";
    return (env) => {
      if (args.length === 0 && piped === undefined) {
        return this.#fail(at, text, `wrong number of args for ${name}: want at least 1 got 0`);
      }
      const last = piped?.(env);
      let value: Value = null;
      for (const arg of args) {
        value = arg(env);
        if (isTrue(value) === stopsAt) return value;
      }
      return last === undefined ? value : last;
    };
  }

  /** Does work, and says of a TemplateRunError of it where it came from. */
  #guard<T>(at: number, text: string, prefix: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof TemplateRunError) return this.#fail(at, text, prefix + error.message);
      throw error;
    }
  }

  /** Throws TemplateRunError. */
  #fail(at: number, text: string, message: string): never {
    const { source, name } = this.#source;
    const before = source.slice(0, at);
    const line = before.split("\n").length;
    const column = new TextEncoder().encode(before.slice(before.lastIndexOf("\n") + 1)).length;
    throw new TemplateRunError(
      `template: ${name}:${line}:${column}: executing ${JSON.stringify(this.#executing)} at <${text}>: ${message}`,
    );
  }
}

function itemsOf(value: Value): readonly (readonly [Value, Value])[] {
  if (value === null) return [];
  if (isList(value)) return value.map((item, i) => [BigInt(i), item] as const);
  if (isMap(value))
    return value.keys().map((key) => [key, value.get(key) ?? value.missing] as const);
  if (typeof value === "bigint") {
    if (value > roundsMax) throw new TemplateRunError("too many rounds of range");
    return Array.from(
      { length: Math.max(Number(value), 0) },
      (_, i) => [BigInt(i), BigInt(i)] as const,
    );
  }
  throw new TemplateRunError(`range can't iterate over ${printValue(value)}`);
}

/** What a value made by a function cost, in steps. */
function sizeOf(value: Value): number {
  return typeof value === "string" || isList(value) ? value.length : 1;
}

/** Where a node stands, for error texts, and what it may call. */
export interface TemplateSource {
  readonly source: string;
  readonly name: string;
  readonly functions: FunctionTable;
}

/** State of one execution. */
interface Env {
  dot: Value;
  readonly vars: Value[];
  readonly row: TemplateRow;
  out: string;
  /** Rounds of `range` and calls of templates so far. */
  rounds: number;
  /** Templates that have called each other. */
  depth: number;
}

export function newEnv(root: GoMap, row: TemplateRow): Env {
  return { dot: root, vars: [root], row, out: "", rounds: 0, depth: 0 };
}

/** What a pipe is compiled to. */
type Eval = (env: Env) => Value;

/** Rounds of one execution, and items of one `range`. */
const roundsMax = 100_000;

/** Templates that call each other twice would run for ever, though each call is shallow. */
function countRound(env: Env): void {
  if (++env.rounds > roundsMax) throw new TemplateRunError("too many rounds of range");
  env.row.budget?.work(1);
}
