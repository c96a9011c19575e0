/** A part of a Helm template: https://pkg.go.dev/text/template */
export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "print"; readonly pipeline: Pipeline }
  | {
      readonly kind: "set";
      readonly name: string;
      readonly isNew: boolean;
      readonly pipeline: Pipeline;
    }
  | {
      readonly kind: "if" | "with";
      readonly pipeline: Pipeline;
      readonly body: Part[];
      readonly other: Part[];
    }
  | {
      readonly kind: "range";
      readonly names: readonly string[];
      readonly pipeline: Pipeline;
      readonly body: Part[];
      readonly other: Part[];
    };

/** Commands; each gets the result of the one before as its last argument. */
export type Pipeline = readonly (readonly Term[])[];

/** A term, with the fields that are read from it. */
export interface Term {
  readonly head:
    | { readonly kind: "literal"; readonly value: string | number | boolean | null }
    | { readonly kind: "dot" }
    | { readonly kind: "variable" | "function"; readonly name: string }
    | { readonly kind: "pipeline"; readonly pipeline: Pipeline };
  readonly fields: readonly string[];
}

/** The parts of a file and the templates that it defines; throws at syntax that it does not know. */
export function parseTemplate(text: string): { parts: Part[]; defined: Map<string, Part[]> } {
  const defined = new Map<string, Part[]>();
  const reader = new BlockReader(cut(text), defined);
  const parts = reader.readParts([]);
  return { parts, defined };
}

interface Piece {
  readonly isAction: boolean;
  readonly text: string;
}

/** Texts and actions in turn, without the white space that dashes remove. */
function cut(text: string): Piece[] {
  const pieces: Piece[] = [];
  let rest = text;
  for (;;) {
    const found = /\{\{(-(?=\s))?((?:"(?:\\.|[^"\\])*"|\/\*[\s\S]*?\*\/|[\s\S])*?)(\s-)?\}\}/.exec(
      rest,
    );
    if (found === null) break;
    const before = rest.slice(0, found.index);
    pieces.push({ isAction: false, text: found[1] === undefined ? before : before.trimEnd() });
    pieces.push({ isAction: true, text: (found[2] ?? "").trim() });
    rest = rest.slice(found.index + found[0].length);
    if (found[3] !== undefined) rest = rest.trimStart();
  }
  return [...pieces, { isAction: false, text: rest }];
}

class BlockReader {
  readonly #pieces: Piece[];
  readonly #defined: Map<string, Part[]>;
  #next = 0;
  /** The action that ended the last block. */
  #end = "";

  constructor(pieces: Piece[], defined: Map<string, Part[]>) {
    this.#pieces = pieces;
    this.#defined = defined;
  }

  /** The parts before an action that starts with one of the words; all parts when no words are given. */
  readParts(ends: readonly string[]): Part[] {
    const parts: Part[] = [];
    for (;;) {
      const piece = this.#pieces[this.#next++];
      if (piece === undefined) {
        if (ends.length > 0) throw new Error(`no ${ends.join(" or ")}`);
        return parts;
      }
      if (!piece.isAction) {
        parts.push({ kind: "text", text: piece.text });
        continue;
      }
      const [word = ""] = /^[a-z]*/.exec(piece.text) ?? [];
      if (ends.includes(word)) {
        this.#end = piece.text;
        return parts;
      }
      const part = this.#readAction(word, piece.text);
      if (part !== undefined) parts.push(part);
    }
  }

  #readAction(word: string, text: string): Part | undefined {
    if (text.startsWith("/*")) return undefined;
    const rest = text.slice(word.length).trim();
    switch (word) {
      case "if":
      case "with":
        return { kind: word, pipeline: parsePipeline(rest), ...this.#readBodies() };
      case "range":
        return this.#readRange(rest);
      case "define":
        this.#defined.set(JSON.parse(rest), this.readParts(["end"]));
        return undefined;
      default:
        return readPlain(text);
    }
  }

  #readBodies(): { body: Part[]; other: Part[] } {
    const body = this.readParts(["else", "end"]);
    if (this.#end === "end") return { body, other: [] };
    const [, condition] = /^else if\s+([\s\S]*)$/.exec(this.#end) ?? [];
    if (condition === undefined) return { body, other: this.readParts(["end"]) };
    return {
      body,
      other: [{ kind: "if", pipeline: parsePipeline(condition), ...this.#readBodies() }],
    };
  }

  #readRange(text: string): Part {
    const [, names = "", rest = text] =
      /^((?:\$\w+\s*,\s*)?\$\w+)\s*:=\s*([\s\S]*)$/.exec(text) ?? [];
    return {
      kind: "range",
      names: names.split(",").flatMap((name) => (name === "" ? [] : [name.trim()])),
      pipeline: parsePipeline(rest),
      ...this.#readBodies(),
    };
  }
}

function readPlain(text: string): Part {
  const [, name, sign, rest = ""] = /^(\$\w+)\s*(:?=)\s*([\s\S]*)$/.exec(text) ?? [];
  if (name === undefined) return { kind: "print", pipeline: parsePipeline(text) };
  return { kind: "set", name, isNew: sign === ":=", pipeline: parsePipeline(rest) };
}

const tokenPattern =
  /\s*("(?:\\.|[^"\\])*"|`[^`]*`|[()|]|-?\d+(?:\.\d+)?|\$\w*(?:\.\w+)*|(?:\.\w+)+|\.|[A-Za-z_]\w*)/y;

function parsePipeline(text: string): Pipeline {
  const tokens: string[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.trimEnd().length) {
    const start = tokenPattern.lastIndex;
    const found = tokenPattern.exec(text);
    if (found === null) throw new Error(`not understood: ${text.slice(start)}`);
    tokens.push(found[1] ?? "");
  }
  const pipeline = readPipeline(tokens);
  if (tokens.length > 0) throw new Error(`too much: ${tokens.join(" ")} in ${text}`);
  return pipeline;
}

/** Takes the tokens before a closing bracket, and leaves the bracket. */
function readPipeline(tokens: string[]): Pipeline {
  const commands: Term[][] = [[]];
  while (tokens.length > 0 && tokens[0] !== ")") {
    const token = tokens.shift() ?? "";
    if (token === "|") commands.push([]);
    else commands.at(-1)?.push(readTerm(token, tokens));
  }
  if (commands.some((command) => command.length === 0)) throw new Error("an empty command");
  return commands;
}

function readTerm(token: string, tokens: string[]): Term {
  if (token === "(") {
    const pipeline = readPipeline(tokens);
    if (tokens.shift() !== ")") throw new Error("a bracket is not closed");
    return { head: { kind: "pipeline", pipeline }, fields: [] };
  }
  if (token.startsWith("$")) {
    const [name = "", ...fields] = token.split(".");
    return { head: { kind: "variable", name }, fields };
  }
  if (token.startsWith("."))
    return { head: { kind: "dot" }, fields: token.split(".").filter((name) => name !== "") };
  return { head: readWord(token), fields: [] };
}

function readWord(token: string): Term["head"] {
  if (token.startsWith('"')) return { kind: "literal", value: JSON.parse(token) };
  if (token.startsWith("`")) return { kind: "literal", value: token.slice(1, -1) };
  if (/^-?\d/.test(token)) return { kind: "literal", value: Number(token) };
  if (token === "true" || token === "false") return { kind: "literal", value: token === "true" };
  if (token === "nil") return { kind: "literal", value: null };
  return { kind: "function", name: token };
}
