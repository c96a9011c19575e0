export const errorLabel = "__error__";
export const errorDetailsLabel = "__error_details__";
export const preserveErrorLabel = "__preserve_error__";

/** Kinds of errors that stages set in `__error__`. */
export const stageErrors = {
  json: "JSONParserErr",
  logfmt: "LogfmtParserErr",
  labelFilter: "LabelFilterErr",
  template: "TemplateFormatErr",
  unwrap: "SampleExtractionErr",
} as const;

/**
 * The label name that a parser makes of a key: outer blanks go, any character outside `[A-Za-z0-9_]` becomes `_`,
 * and a digit cannot come first (unless the key is nested and gets a prefix). May be empty: then it is no label.
 */
export function sanitizeLabelName(key: string, nested = false): string {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) return key;
  const name = key.trim().replace(/[^A-Za-z0-9_]/gu, "_");
  return !nested && /^[0-9]/.test(name) ? `_${name}` : name;
}

/** The name that a parsed label gets when its own is taken by a stream label or structured metadata. */
export function extractedName(name: string): string {
  return `${name}_extracted`;
}
