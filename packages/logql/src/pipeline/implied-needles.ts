import { unreachable } from "@skald/model";
import type { LabelFilter, Stage } from "../syntax/ast.js";
import type { ImpliedNeedles } from "./compiled.js";
import { encodeText } from "./row/bytes.js";
import { errorDetailsLabel, errorLabel } from "./row/labels.js";

/** In JSON and logfmt a value can be written with escapes. */
const backslash = encodeText("\\");
/** A shorter text is in too many lines. */
const lengthMin = 3;

/**
 * What equalities behind a parser say of the line: a value that the parser finds stands in the line as it is, or the
 * line has an escape. Broken characters become blanks, so a value with a blank says nothing.
 */
export function impliedNeedles(stages: readonly Stage[]): readonly ImpliedNeedles[] {
  const implied: ImpliedNeedles[] = [];
  let parsers = 0;
  let escapes = false;
  for (const stage of stages) {
    switch (stage.kind) {
      case "json":
      case "logfmt":
        escapes = true;
        parsers++;
        break;
      case "regexp":
      case "pattern":
        parsers++;
        break;
      case "label_filter":
        if (parsers > 0) {
          for (const [label, value] of equalities(stage.filter)) {
            const text = encodeText(value);
            implied.push({ label, anyOf: escapes ? [text, backslash] : [text] });
          }
        }
        break;
      case "line_filter":
      case "drop":
      case "keep":
        break;
      case "unpack":
      case "decolorize":
      case "line_format":
      case "label_format":
        // From here on labels and lines are no longer what the stored line says.
        return implied;
      default:
        return unreachable(stage);
    }
  }
  return implied;
}

/** Equalities that must hold for the filter to pass. */
function equalities(filter: LabelFilter): readonly (readonly [label: string, value: string])[] {
  if (filter.kind === "and") return [...equalities(filter.left), ...equalities(filter.right)];
  if (filter.kind !== "string" || filter.matcher.op !== "=") return [];
  const { name, value } = filter.matcher;
  const isError = name === errorLabel || name === errorDetailsLabel;
  // metadata of another name may have become x_extracted
  if (name.endsWith("_extracted")) return [];
  return isError || value.length < lengthMin || value.includes(" ") ? [] : [[name, value]];
}
