/** The text with its variables replaced, or what is wrong with it. */
export interface Expansion {
  readonly text: string;
  readonly problems: readonly string[];
}

/**
 * Replaces `${NAME}`, `${NAME:-default}` and `${NAME:=default}` (also without the colon: a variable that is set but
 * empty then stays empty). A missing variable without default becomes empty; `$${` is a literal `${`. Defaults may
 * hold variables themselves.
 */
export function expandEnv(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): Expansion {
  const problems: string[] = [];
  const expand = (input: string): string => {
    let out = "";
    let from = 0;
    for (let at = input.indexOf("${"); at >= 0; at = input.indexOf("${", from)) {
      if (input[at - 1] === "$" && at - 1 >= from) {
        out += `${input.slice(from, at - 1)}\${`;
        from = at + 2;
        continue;
      }
      const end = closingBrace(input, at + 2);
      if (end < 0) {
        problems.push(`"${input.slice(at, at + 20)}" has no closing brace`);
        break;
      }
      out += input.slice(from, at) + lookUp(input.slice(at + 2, end));
      from = end + 1;
    }
    return out + input.slice(from);
  };
  const lookUp = (reference: string): string => {
    const match = /^([A-Za-z_]\w*)(?:(:?)[-=]([\s\S]*))?$/.exec(reference);
    if (match === null) {
      problems.push(`cannot expand "\${${reference}}"; write \${NAME} or \${NAME:-default}`);
      return "";
    }
    const value = env[match[1] as string];
    const isMissing = value === undefined || (match[2] === ":" && value === "");
    return isMissing ? expand(match[3] ?? "") : value;
  };
  return { text: expand(text), problems };
}

function closingBrace(text: string, from: number): number {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "{" && text[i - 1] === "$") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
    else if (text[i] === "\n") return -1;
  }
  return -1;
}
