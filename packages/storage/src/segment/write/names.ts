/** Most columns of labels and of structured metadata in one file; the other names go to a map column. */
export const maxLabelColumns = 64;
export const maxMetadataColumns = 32;

export interface NameSplit {
  /** Names with a column of their own, sorted. */
  readonly columns: readonly string[];
  /** The other names, in the order given. */
  readonly more: readonly string[];
}

/**
 * Splits names, given in order of preference, into those that get a column and the rest. Of names that differ only
 * by case the first gets it, because several readers do not tell columns apart by case.
 */
export function splitNames(preferred: readonly string[], maxColumns: number): NameSplit {
  const columns: string[] = [];
  const more: string[] = [];
  const taken = new Set<string>();
  for (const name of preferred) {
    const folded = name.toLowerCase();
    if (name === "" || columns.length === maxColumns || taken.has(folded)) {
      more.push(name);
      continue;
    }
    taken.add(folded);
    columns.push(name);
  }
  return { columns: columns.sort(), more };
}
