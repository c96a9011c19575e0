import { labelValue, parseStreamText } from "@skald/model";

/**
 * Calls back for each label of a canonical label text, in order, without a label set being made; stops when that returns
 * false.
 */
export function forEachLabel(
  text: string,
  visit: (name: string, value: string) => boolean | undefined,
): void {
  // What has an escape is read by the parser that knows them all.
  if (text.includes("\\")) {
    const labels = parseStreamText(text);
    for (const name of labels.names) if (visit(name, labelValue(labels, name)) === false) return;
    return;
  }
  for (let at = 1; at < text.length - 1; ) {
    const equals = text.indexOf('="', at);
    if (equals < 0) return;
    const end = text.indexOf('"', equals + 2);
    if (visit(text.slice(at, equals), text.slice(equals + 2, end)) === false) return;
    at = end + '", '.length;
  }
}
