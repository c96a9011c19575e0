import { parseSelector } from "@skald/logql";
import { invalidArgument, type Matcher } from "@skald/model";

/** The selector of a `query` parameter; none means everything. */
export function selectorsOf(query: string): Matcher[][] {
  return query.trim() === "" ? [] : [parseSelector(query)];
}

/** The selectors of `match[]`; `{}` means everything, but only where it stands alone. */
export function seriesSelectors(matches: readonly string[]): Matcher[][] {
  const groups = [...new Set(matches)];
  if (groups.length === 1) {
    const matchers = parseSelector(groups[0] as string, { emptyCompatible: "bare" });
    return matchers.length === 0 ? [] : [matchers];
  }
  const empty = groups.find((match) => /^\s*\{\s*\}\s*$/.test(match));
  if (empty !== undefined) throw invalidArgument("0 matchers in group: {}");
  return groups.map((match) => parseSelector(match));
}
