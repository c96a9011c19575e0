/**
 * True for an expression that only asks for words: literals joined by `|`, grouped, with `.*` or `.+` around them.
 * These are printed in double quotes behind a pipe, all others in back quotes.
 */
export function isSimpleRegex(regex: string): boolean {
  return hasOnlyWords(regex) && !hasNeighbouringLetters(regex);
}

function hasOnlyWords(regex: string): boolean {
  const rest = regex
    .replace(/^\(\?i\)/, "")
    .replaceAll(/\\[^\w\s]/g, "x")
    .replaceAll(/\.[*+]/g, "");
  return !/[\\.[\]{}*+?^$]/.test(rest.replaceAll("(?:", "("));
}

/** `a|b` reads as the class `[ab]`. */
function hasNeighbouringLetters(regex: string): boolean {
  return /(?:^|[|(])[^|()\\.]\|[^|()\\.](?:$|[|)])/u.test(regex);
}
