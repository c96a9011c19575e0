import {
  Composer,
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type LineCounter,
  type Node,
  Parser,
  type SchemaOptions,
} from "yaml";

/** Collections within each other; the parser recurses, and nothing that Skald reads needs ten. */
const maxDepth = 100;

export interface ParsedYaml {
  readonly document: Document.Parsed;
  /** What is wrong with the text, in the order of places. */
  readonly errors: readonly YamlError[];
}

export interface YamlError {
  /** Place in the text, in characters. */
  readonly offset: number;
  readonly message: string;
}

export interface ParseYamlOptions extends Pick<SchemaOptions, "schema" | "merge"> {
  readonly lines: LineCounter;
  /** Words, indicators and pieces of white space that the text may have; no bound when absent. */
  readonly maxTokens?: number;
}

/**
 * The first document of a YAML text, in time that grows with its length: keys of a map are looked up rather than compared
 * with each other, and a text that is too deep or has too many tokens is given up before a tree is made of it.
 */
export function parseYaml(text: string, options: ParseYamlOptions): ParsedYaml {
  const { lines, maxTokens = Number.POSITIVE_INFINITY, ...schema } = options;
  const errors: YamlError[] = [];
  const parser = new Parser(lines.addNewLine);
  function* tokens() {
    lines.addNewLine(0);
    let count = 0;
    for (const lexeme of new Lexer().lex(text)) {
      const offset = parser.offset;
      yield* parser.next(lexeme);
      if (++count > maxTokens) errors.push({ offset, message: `more than ${maxTokens} tokens` });
      if (parser.stack.length > maxDepth)
        errors.push({ offset, message: `more than ${maxDepth} levels deep` });
      if (errors.length > 0) return;
    }
    yield* parser.end();
  }
  const composer = new Composer({ ...schema, uniqueKeys: false });
  const document = withoutStacks(() => {
    const [first] = composer.compose(tokens(), true, text.length);
    // There is one even when the text is empty.
    return first as Document.Parsed;
  });
  if (errors.length === 0) {
    for (const { pos, message } of document.errors) errors.push({ offset: pos[0], message });
    findRepeatedKeys(document.contents, errors);
    errors.sort((a, b) => a.offset - b.offset);
  }
  return { document, errors };
}

/** The composer makes an error for every token that is wrong: with their stacks a megabyte takes seven seconds. */
function withoutStacks<T>(task: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return task();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function findRepeatedKeys(node: unknown, errors: YamlError[]): void {
  if (isSeq(node)) for (const item of node.items) findRepeatedKeys(item, errors);
  if (!isMap<Node, Node>(node)) return;
  const seen = new Set<unknown>();
  for (const { key, value } of node.items) {
    findRepeatedKeys(key, errors);
    findRepeatedKeys(value, errors);
    if (!isScalar(key)) continue;
    if (seen.has(key.value))
      errors.push({ offset: key.range?.[0] ?? 0, message: "Map keys must be unique" });
    seen.add(key.value);
  }
}
