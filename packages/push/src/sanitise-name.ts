/**
 * Turns an attribute name into a label name, as for OTLP: every character but ASCII letters and digits becomes `_`, runs
 * of them one; a leading digit gets the prefix `key_`; `__x__` keeps its double underscores. Undefined when nothing
 * but underscores would be left.
 */
export function sanitiseLabelName(name: string): string | undefined {
  const reserved = /^__(.+)__$/su.exec(name);
  const middle = (reserved?.[1] ?? name).replace(/[^a-zA-Z0-9]+/gu, "_");
  const clean = reserved === null ? middle : `__${middle}__`;
  if (/^_*$/.test(clean)) return undefined;
  return /^[0-9]/.test(clean) ? `key_${clean}` : clean;
}
