import { normaliseLevel } from "@skald/kernels";
import { levelInMetadata, levelNames } from "@skald/model";

const unknownCode = levelNames.indexOf("unknown");

/** Code of a level that a label or metadata names; `levelInMetadata` for a text outside the table, which stays as it is. */
export function levelCodeOf(text: string): number {
  if (text === "unknown") return unknownCode;
  const code = normaliseLevel(text);
  return code === 0 ? levelInMetadata : code;
}

/** Severity numbers of OpenTelemetry by fours: 1-4 trace ... 21-24 fatal. */
const severities = ["trace", "debug", "info", "warn", "error", "fatal"] as const;

/** Code of an OpenTelemetry `severity_number`; a text that is no number counts as info. */
export function severityCodeOf(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) return levelNames.indexOf("info");
  const name = severities[Math.ceil(Number(text) / 4) - 1];
  return name === undefined ? unknownCode : levelNames.indexOf(name);
}
