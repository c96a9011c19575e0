/** An expression whose named groups have names of their own, and what they were called. */
export interface DistinctNames {
  readonly pattern: string;
  /** The name given for each made-up one. */
  readonly given: ReadonlyMap<string, string>;
}

/** What is not a group, or one with its name: an escape, quoted text, a class. */
const piece =
  /\\Q[\s\S]*?(?:\\E|$)|\\[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]|\(\?P?<(\w+)>/g;

/** Several groups may have one name in RE2 syntax as Go reads it, but not in what runs it here. */
export function distinctNames(pattern: string): DistinctNames {
  const given = new Map<string, string>();
  const seen = new Set<string>();
  const distinct = pattern.replace(piece, (text, name?: string) => {
    if (name === undefined || !seen.has(name)) {
      if (name !== undefined) seen.add(name);
      return text;
    }
    let other = `${name}_${given.size}`;
    while (pattern.includes(other)) other += "_";
    given.set(other, name);
    return `(?P<${other}>`;
  });
  return { pattern: distinct, given };
}
