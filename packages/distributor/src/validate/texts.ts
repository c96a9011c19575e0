/** Longest part of an answer that repeats what the client sent. */
const maxEchoChars = 4096;

/** Cuts what an error text repeats of a push, so that a hostile push gets a short answer. */
export function echo(text: string): string {
  return text.length > maxEchoChars ? `${text.slice(0, maxEchoChars)}...` : text;
}

/** `2026-11-20T10:00:00Z`, fractions cut off. */
export function formatSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The end of texts about limits, in the words that agents and dashboards know. */
export const contactHint =
  "or contact your Loki administrator to see if the limit can be increased";

/** Tells who can lift a limit. */
export function raiseHint(key: string): string {
  return `Please see \`limits_config.${key}\` or contact your Loki administrator to increase it.`;
}
