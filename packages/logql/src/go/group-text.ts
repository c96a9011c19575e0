/** `$1`, `$name`, `${name}` and `$$` in the replacement of a regular expression; a bare name is as long as it can be. */
export const groupReference = /\$(?:\$|([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)\})/gu;

/**
 * The text of a group by number or by name, `groups[0]` being the whole match; empty when there is none. Of groups of
 * one name it is the first that took part.
 */
export function groupText(
  name: string,
  groups: readonly (string | undefined)[],
  names: readonly string[],
): string {
  if (/^(?:0|[1-9]\d*)$/.test(name)) return groups[Number(name)] ?? "";
  return groups.find((text, i) => names[i] === name && text !== undefined) ?? "";
}
