import { ApiError, callJson } from "./client.js";
import type { Span } from "./fields.js";
import { type Level, levelOf } from "./lines.js";

export interface Pattern {
  readonly pattern: string;
  readonly level: Level;
  readonly lines: number;
  /** Seconds and lines. */
  readonly samples: readonly (readonly [number, number])[];
}

/** The patterns of the lines of a selector, the most frequent first; undefined where the server mines none. */
export async function fetchPatterns(
  selector: string,
  span: Span,
  signal?: AbortSignal,
): Promise<Pattern[] | undefined> {
  try {
    const { data } = await callJson<{
      data: { pattern: string; level?: string; samples: [number, number][] }[];
    }>("loki/api/v1/patterns", {
      params: { query: selector, start: span.startNs, end: span.endNs },
      signal,
    });
    return data
      .map(({ pattern, level, samples }) => ({
        pattern,
        level: levelOf(level),
        samples,
        lines: samples.reduce((sum, [, lines]) => sum + lines, 0),
      }))
      .sort((a, b) => b.lines - a.lines);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
