export * from "./arrays.js";
export * from "./batch.js";
export * from "./block.js";
export * from "./errors.js";
export * from "./labels.js";
export * from "./matchers.js";
export {
  allOf,
  anyOf,
  formulaOfText,
  type NeedleFormula,
  type Needles,
  type NeedleText,
  type NeedleValue,
} from "./needles.js";
export { compileRegex, compileReplacement, type Regex, type RegexMatch } from "./regex.js";
export { parseRegex, type RegexNode } from "./regex-syntax.js";
export * from "./stats.js";
export * from "./text.js";
export * from "./time.js";
export * from "./units.js";
