import type { FunctionTable } from "../functions/table.js";
import { timeMethods } from "../functions/times.js";
import type { Command, Operand, Pipe, Placed } from "../parser/ast.js";
import { checkArguments, type TemplateFunction } from "../value/function.js";
import { isList, isMap, isTime, isTrue, typeName, type Value } from "../value/value.js";
import type { Eval } from "./env.js";
import type { Failures } from "./failures.js";

/** Compiles what is evaluated into closures, with the variables that are in scope where it stands. */
export class PipeCompiler {
  readonly #functions: FunctionTable;
  readonly #failures: Failures;
  readonly #scope: string[] = ["$"];

  constructor(functions: FunctionTable, failures: Failures) {
    this.#functions = functions;
    this.#failures = failures;
  }

  /** Compiles what has variables of its own, and sees those around it. */
  inScope<T>(compile: () => T): T {
    const count = this.#scope.length;
    const compiled = compile();
    this.#scope.length = count;
    return compiled;
  }

  /** The place of a variable among those of an execution: a new one unless it is assigned to. */
  slot(name: string, assigns: boolean): number {
    return assigns ? this.#scope.lastIndexOf(name) : this.#scope.push(name) - 1;
  }

  pipe(pipe: Pipe): Eval {
    let value: Eval | undefined;
    for (const command of pipe.commands) value = this.#command(command, value);
    const last = value as Eval;
    const [name] = pipe.variables;
    if (name === undefined) return last;
    const slot = this.slot(name, pipe.assigns);
    return (env) => {
      const got = last(env);
      env.vars[slot] = got;
      return got;
    };
  }

  #command(command: Command, piped: Eval | undefined): Eval {
    const [first, ...rest] = command.args as readonly [Operand, ...Operand[]];
    const args = rest.map((operand) => this.#operand(operand));
    if (piped !== undefined) args.push(piped);
    switch (first.kind) {
      case "function":
        return this.#call(first.name, args, command);
      case "field":
      case "variable":
      case "group":
        return this.#chain(first, args);
      default:
        if (args.length > 0) {
          return () =>
            this.#failures.fail(
              command.at,
              command.text,
              `can't give argument to non-function ${command.text}`,
            );
        }
        if (first.kind === "nil") {
          return () => this.#failures.fail(command.at, command.text, "nil is not a command");
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
      return () => this.#failures.fail(at, text, `can't give argument to non-function ${text}`);
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
    if (operand.kind === "group") return this.pipe(operand.pipe);
    const slot = this.#scope.lastIndexOf(operand.name);
    return (env) => env.vars[slot] ?? null;
  }

  #field(value: Value, name: string, args: readonly Value[], { at, text }: Placed): Value {
    if (isTime(value)) {
      const method = timeMethods.get(name);
      if (method === undefined) {
        return this.#failures.fail(at, text, `can't evaluate field ${name} in type time.Time`);
      }
      return this.#failures.guard(at, text, "", () =>
        method.call(value, checkArguments(name, method.takes, args)),
      );
    }
    if (value === null) {
      return this.#failures.fail(at, text, `nil pointer evaluating interface {}.${name}`);
    }
    if (args.length > 0) {
      return this.#failures.fail(
        at,
        text,
        `${name} has arguments but cannot be invoked as function`,
      );
    }
    if (isMap(value)) return value.get(name) ?? value.missing;
    return this.#failures.fail(at, text, `can't evaluate field ${name} in type ${typeName(value)}`);
  }

  #call(name: string, args: readonly Eval[], command: Command): Eval {
    if (name === "and" || name === "or") return this.#shortCircuit(name, args, command);
    const fn = this.#functions.get(name) as TemplateFunction;
    const { at, text } = command;
    return (env) => {
      const given = args.map((arg) => arg(env));
      const checked = this.#failures.guard(at, text, "", () =>
        checkArguments(name, fn.takes, given),
      );
      const made = this.#failures.guard(at, text, `error calling ${name}: `, () =>
        fn.call(checked, env.row),
      );
      env.row.budget?.work(1 + sizeOf(made));
      return made;
    };
  }

  /** The first false (and) or true (or) argument, else the last. */
  #shortCircuit(name: "and" | "or", args: readonly Eval[], { at, text }: Command): Eval {
    const stopsAt = name === "or";
    return (env) => {
      if (args.length === 0) {
        return this.#failures.fail(
          at,
          text,
          `wrong number of args for ${name}: want at least 1 got 0`,
        );
      }
      let value: Value = null;
      for (const arg of args) {
        value = arg(env);
        if (isTrue(value) === stopsAt) break;
      }
      return value;
    };
  }
}

/** What a value made by a function cost, in steps. */
function sizeOf(value: Value): number {
  return typeof value === "string" || isList(value) ? value.length : 1;
}
