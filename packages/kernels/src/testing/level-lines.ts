import type { Kernels } from "../shared/kernels.js";
import type { LevelOptions } from "../shared/levels.js";

/** The names of level fields in the order of the default configuration. */
export const defaultLevelFields: readonly string[] = [
  "level",
  "LEVEL",
  "Level",
  "log.level",
  "severity",
  "SEVERITY",
  "Severity",
  "SeverityText",
  "lvl",
  "LVL",
  "Lvl",
  "severity_text",
  "Severity_Text",
  "SEVERITY_TEXT",
];

/** The level codes of lines that stand one behind the other. */
export function detect(
  kernels: Kernels,
  lines: readonly string[],
  options: LevelOptions,
): readonly number[] {
  const encoded = lines.map((line) => Buffer.from(line));
  const lineLength = Uint32Array.from(encoded, (line) => line.length);
  const lineStart = new Uint32Array(lines.length);
  for (let i = 1; i < lines.length; i++) lineStart[i] = lineStart[i - 1]! + lineLength[i - 1]!;
  const out = new Uint8Array(lines.length);
  const bytes = Buffer.concat(encoded);
  kernels.detectLevels(bytes, lineStart, lineLength, lines.length, out, options);
  return [...out];
}
