/**
 * Estimates the instructions an RE2 expression compiles to, in time linear to its length. Made before compiling: a
 * repetition such as `(.{30}x){33}` costs as much as its copies, so a short text can ask for much time and memory.
 */
export function regexCost(pattern: string): number {
  if (!pattern.includes("{")) return pattern.length;
  const lastNamedEnd = pattern.lastIndexOf(":]");
  const outer: number[] = [];
  let sum = 0;
  let last = 0;
  for (let at = 0; at < pattern.length; ) {
    const end = pieceEnd(pattern, at, lastNamedEnd);
    const char = pattern[at];
    if (char === "(") {
      outer.push(sum);
      sum = 0;
      last = 0;
    } else if (char === ")") {
      // One that closes nothing, which RE2 refuses, counts all before it.
      last = sum + 2;
      sum = (outer.pop() ?? 0) + last;
    } else if (char === "{" && end > at + 1) {
      const grown = last * Math.max(1, timesOf(pattern.slice(at + 1, end - 1)));
      sum += grown - last;
      last = grown;
    } else {
      last = end - at;
      sum += last;
    }
    at = end;
  }
  return outer.reduce((total, cost) => total + cost, sum);
}

/** Offset behind an escape, a quoted run, a class, a repetition, or the one character that stands here. */
function pieceEnd(pattern: string, at: number, lastNamedEnd: number): number {
  if (pattern[at] === "[") return classEnd(pattern, at, lastNamedEnd);
  if (pattern.startsWith("\\Q", at)) {
    const close = pattern.indexOf("\\E", at + 2);
    return close < 0 ? pattern.length : close + 2;
  }
  piecePattern.lastIndex = at;
  return at + (piecePattern.exec(pattern)?.[0].length ?? 1);
}

const piecePattern = /\\[pPx]\{[^{}]{0,40}\}|\\[\s\S]|\{\d{1,9}(?:,\d{0,9})?\}/y;

/** Offset behind the class that starts here, with `[:alpha:]` inside; the end of the text when it is not closed. */
function classEnd(pattern: string, start: number, lastNamedEnd: number): number {
  let at = start + 1;
  if (pattern[at] === "^") at++;
  if (pattern[at] === "]") at++;
  for (; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === "]") return at + 1;
    if (char === "\\") at++;
    else if (at + 2 <= lastNamedEnd && pattern.startsWith("[:", at)) {
      at = pattern.indexOf(":]", at + 2) + 1;
    }
  }
  return pattern.length;
}

/** The larger number of `2`, `2,`, `2,5`. */
function timesOf(counts: string): number {
  return Math.max(...counts.split(",").map(Number));
}
