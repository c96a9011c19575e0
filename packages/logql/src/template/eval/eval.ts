import { lastOperand, type Pipe, type TemplateNode, type TemplateSet } from "../parser/ast.js";
import { TemplateRunError } from "../value/error.js";
import { textMax } from "../value/function.js";
import { isList, isMap, isTrue, printValue, type Value } from "../value/value.js";
import { countRound, type Env, roundsMax } from "./env.js";
import { Failures, type TemplateSource } from "./failures.js";
import { PipeCompiler } from "./pipe-compiler.js";

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

/** Compiles nodes into closures. */
class Compiler {
  readonly #failures: Failures;
  readonly #pipes: PipeCompiler;
  /** The templates that can be called, once all are compiled. */
  readonly #templates: ReadonlyMap<string, Run>;

  constructor(source: TemplateSource, executing: string, templates: ReadonlyMap<string, Run>) {
    this.#failures = new Failures(source, executing);
    this.#pipes = new PipeCompiler(source.functions, this.#failures);
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
    const value = this.#pipes.pipe(pipe);
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
      if (env.out.length > textMax) {
        throw new TemplateRunError(`result longer than ${textMax} characters`);
      }
      return "next";
    };
  }

  #branch(node: TemplateNode & { kind: "if" | "with" }): Run {
    const { value, body, otherwise } = this.#pipes.inScope(() => ({
      value: this.#pipes.pipe(node.pipe),
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
    const value = pipe === undefined ? () => null : this.#pipes.pipe(pipe);
    return (env) => {
      const run = this.#templates.get(name);
      if (run === undefined) {
        return this.#failures.fail(at, text, `template ${JSON.stringify(name)} not defined`);
      }
      if (env.depth === templateDepthMax) {
        const message = `exceeded maximum template depth (${templateDepthMax})`;
        return this.#failures.fail(at, text, message);
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
    const { value, slots, body, otherwise } = this.#pipes.inScope(() => ({
      value: this.#pipes.pipe({ variables: [], assigns: false, commands }),
      slots: variables.map((name) => this.#pipes.slot(name, assigns)),
      body: this.list(node.body),
      otherwise: this.list(node.otherwise),
    }));
    const [first, second] = slots;
    return (env) => {
      const got = value(env);
      const items = this.#failures.guard(last.at, last.text, "", () => itemsOf(got));
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
