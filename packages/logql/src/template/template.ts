import { compileTemplates, newEnv, type TemplateSource } from "./eval.js";
import { type FunctionTable, logqlFunctions } from "./functions.js";
import {
  type Command,
  type Operand,
  type Pipe,
  parseTemplate,
  type TemplateNode,
  type TemplateSet,
} from "./parser.js";
import { type GoMap, type TemplateRow, TemplateSyntaxError } from "./value.js";

/** A template of line_format or label_format, compiled once into closures. */
export interface Template {
  /** Labels that it can look at; `all` when that depends on the row. */
  readonly labels: readonly string[] | "all";
  readonly usesLine: boolean;
  readonly usesTimestamp: boolean;
  /** False for texts and single labels: then `run` never throws. */
  readonly canFail: boolean;
  /** Throws TemplateRunError with Go's text when the row's values do not fit, and what the row's budget throws. */
  run(labels: GoMap, row: TemplateRow): string;
}

/**
 * Compiles a template; `name` is what error texts call it (`line` or `label`). Throws TemplateSyntaxError, whose
 * message has Go's form `template: line:1: ...`.
 */
export function compileTemplate(
  source: string,
  name: string,
  functions: FunctionTable = logqlFunctions,
): Template {
  let set: TemplateSet;
  try {
    set = parseTemplate(source, name, (word) => functions.has(word));
  } catch (error) {
    if (!(error instanceof TemplateSyntaxError)) throw error;
    const line = source.slice(0, error.at).split("\n").length;
    throw new TemplateSyntaxError(`template: ${name}:${line}: ${error.message}`, error.at);
  }
  const uses = new Uses();
  for (const nodes of set.definitions.values()) uses.nodes(nodes);
  const plain = simple(set.main);
  return {
    labels: uses.all ? "all" : [...uses.labels],
    usesLine: uses.functions.has("__line__"),
    usesTimestamp: uses.functions.has("__timestamp__"),
    canFail: plain === undefined,
    run: plain ?? general(set, { source, name, functions }),
  };
}

/** Text and single fields only: no environment is needed. */
function simple(nodes: readonly TemplateNode[]): Template["run"] | undefined {
  const parts: { readonly text: string; readonly field: string | undefined }[] = [];
  for (const node of nodes) {
    if (node.kind === "text") parts.push({ text: node.text, field: undefined });
    else {
      const operand = node.kind === "action" ? onlyOperand(node.pipe) : undefined;
      if (operand?.kind !== "field" || operand.fields.length !== 1) return undefined;
      parts.push({ text: "", field: operand.fields[0] });
    }
  }
  return (labels, { budget }) => {
    let out = "";
    for (const { text, field } of parts) {
      out += field === undefined ? text : ((labels.get(field) as string | undefined) ?? "");
    }
    budget?.work(1 + out.length);
    return out;
  };
}

function onlyOperand(pipe: Pipe): Operand | undefined {
  if (pipe.variables.length > 0 || pipe.commands.length !== 1) return undefined;
  const { args } = pipe.commands[0] as Command;
  return args.length === 1 ? args[0] : undefined;
}

function general(set: TemplateSet, from: TemplateSource): Template["run"] {
  const { source } = from;
  const run = compileTemplates(set, from);
  return (labels, row) => {
    row.budget?.work(1 + source.length);
    const env = newEnv(labels, row);
    run(env);
    return env.out;
  };
}

/** What a template looks at. */
class Uses {
  readonly labels = new Set<string>();
  readonly functions = new Set<string>();
  all = false;

  nodes(nodes: readonly TemplateNode[]): void {
    for (const node of nodes) {
      if ("pipe" in node && node.pipe !== undefined) this.#pipe(node.pipe);
      if (!("body" in node)) continue;
      this.nodes(node.body);
      this.nodes(node.otherwise);
    }
  }

  #pipe(pipe: Pipe): void {
    for (const command of pipe.commands) for (const operand of command.args) this.#operand(operand);
  }

  #operand(operand: Operand): void {
    if (operand.kind === "function") this.functions.add(operand.name);
    else if (operand.kind === "group") this.#pipe(operand.pipe);
    else if (operand.kind === "dot") this.all = true;
    else if (operand.kind === "field" || (operand.kind === "variable" && operand.name === "$")) {
      const [label] = operand.fields;
      if (label === undefined) this.all = true;
      else this.labels.add(label);
    }
  }
}
