import { compileRegex, type Regex, SkaldError } from "@skald/model";
import { groupReference, groupText } from "../../go/group-text.js";
import { regexCost } from "../../syntax/check-regex.js";
import { TemplateRunError } from "../value/error.js";
import { type TemplateFunction, text, textMax } from "../value/function.js";
import { tooLong } from "./strings.js";

/** Functions that search by RE2 expressions. */
export const regexFunctions: Readonly<Record<string, TemplateFunction>> = {
  regexReplaceAll: {
    takes: "sss",
    call: (args) => {
      const regex = cachedRegex(text(args, 0));
      return replaceMatches(regex, text(args, 1), (groups, whole) =>
        expand(text(args, 2), regex, groups, whole),
      );
    },
  },
  regexReplaceAllLiteral: {
    takes: "sss",
    call: (args) => replaceMatches(cachedRegex(text(args, 0)), text(args, 1), () => text(args, 2)),
  },
  count: {
    takes: "ss",
    call: (args) => {
      let count = 0n;
      replaceMatches(cachedRegex(text(args, 0)), text(args, 1), () => {
        count++;
        return "";
      });
      return count;
    },
  },
};

const regexCostMax = 10_000;
/** Matches times characters of an expression that may look at all the text behind for each match. */
const workMax = 2 ** 24;
/** Instructions that all remembered expressions have together; one takes some hundred bytes. */
const rememberedCostMax = 100_000;
/** What remembering an expression costs besides its instructions. */
const rememberedCostBase = 50;
const regexes = new Map<string, Regex>();
let rememberedCost = 0;

function cachedRegex(pattern: string): Regex {
  const known = regexes.get(pattern);
  if (known !== undefined) return known;
  // the pattern can come from a line: it may cost no more than one of a query
  const cost = regexCost(pattern);
  if (cost > regexCostMax) throw new TemplateRunError("regular expression too large");
  try {
    const regex = compileRegex(pattern, { anchored: false });
    rememberedCost += cost + rememberedCostBase;
    if (rememberedCost > rememberedCostMax) {
      regexes.clear();
      rememberedCost = cost + rememberedCostBase;
    }
    regexes.set(pattern, regex);
    return regex;
  } catch (error) {
    if (error instanceof SkaldError) throw new TemplateRunError(error.message);
    throw error;
  }
}

/** Go's ReplaceAll: an empty match right behind a match is not replaced. */
function replaceMatches(
  regex: Regex,
  value: string,
  replacement: (groups: readonly (string | undefined)[], whole: string) => string,
): string {
  let out = "";
  let copied = 0;
  let at = 0;
  let matchesMax = regex.findsAllInLinearTime ? Number.POSITIVE_INFINITY : workMax / value.length;
  while (at <= value.length) {
    if (--matchesMax < 0) throw new TemplateRunError("too many matches for the length of the text");
    const match = regex.exec(value, at);
    if (match === undefined) break;
    out += value.slice(copied, match.start);
    if (match.end > copied || match.start === 0) {
      out += replacement(match.groups, value.slice(match.start, match.end));
    }
    copied = match.end;
    if (out.length > textMax) tooLong();
    const width = (value.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
    at = Math.max(at + width, match.end);
  }
  return out + value.slice(copied);
}

function expand(
  template: string,
  regex: Regex,
  groups: readonly (string | undefined)[],
  whole: string,
): string {
  const names = ["", ...regex.groupNames];
  return template.replace(groupReference, (_, bare?: string, braced?: string) => {
    const name = bare ?? braced;
    return name === undefined ? "$" : groupText(name, [whole, ...groups], names);
  });
}
