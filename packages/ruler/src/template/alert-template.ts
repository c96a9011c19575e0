import { Budget } from "@skald/logql";
import {
  compileTemplate,
  mapValue,
  type Template,
  TemplateRunError,
  type Value,
} from "@skald/logql/template";
import { type Labels, SkaldError } from "@skald/model";
import { alertFunctions } from "./functions.js";

/** What templates of one alert see. */
export interface AlertData {
  readonly labels: Labels;
  readonly externalLabels: Readonly<Record<string, string>>;
  readonly externalUrl: string;
  readonly value: number;
  readonly nowNs: bigint;
}

/** Names that every template of an alert knows; on the line before it, so that its own places stay right. */
const definitions =
  "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}";
/** The longest that one template may take, ms, and the longest text that it may make. */
const maxTemplateMs = 100;
const maxTextLength = 64 * 1024;

/** Compiles a template of an alert. Throws TemplateSyntaxError. */
export function parseAlertTemplate(text: string, alert: string): Template {
  return compileTemplate(definitions + text, `__alert_${alert}`, alertFunctions);
}

/** What a label or an annotation says of one alert; of a template that fails, why. */
export function expandTemplate(template: Template, data: AlertData): string {
  const until = performance.now() + maxTemplateMs;
  const budget = new Budget({ shouldStop: () => performance.now() > until });
  const row = { line: () => "", timestampNs: () => data.nowNs, nowNs: () => data.nowNs, budget };
  try {
    const text = template.run(dataMap(data), row);
    if (text.length <= maxTextLength) return text;
    return `<error expanding template: result longer than ${maxTextLength} characters>`;
  } catch (error) {
    const isTooSlow = error instanceof SkaldError;
    if (!isTooSlow && !(error instanceof TemplateRunError)) throw error;
    const why = isTooSlow ? `it takes longer than ${maxTemplateMs} ms` : error.message;
    return `<error expanding template: ${why}>`;
  }
}

function dataMap({ labels, externalLabels, externalUrl, value }: AlertData) {
  const pairs = labels.names.map((name, i): [string, Value] => [name, labels.values[i] as string]);
  return mapValue(
    new Map<string, Value>([
      ["Labels", mapValue(new Map(pairs), "")],
      ["ExternalLabels", mapValue(new Map(Object.entries(externalLabels)), "")],
      ["ExternalURL", externalUrl],
      ["Value", value],
    ]),
    null,
  );
}
