import { formatLabels, labelsFromObject, labelsToObject } from "@skald/model";
import type { Grouping } from "../../syntax/ast.js";

/** One sample of a vector: labels as an object. */
export interface NaiveSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The value of an expression at one point: a vector, or the number of a literal expression. */
export type NaiveValue = readonly NaiveSample[] | number;

export function groupBy<T extends { readonly labels: Readonly<Record<string, string>> }>(
  items: readonly T[],
  grouping: Grouping | undefined,
): { labels: Readonly<Record<string, string>>; members: T[] }[] {
  const groups = new Map<string, { labels: Readonly<Record<string, string>>; members: T[] }>();
  for (const item of items) {
    const labels = grouped(item.labels, grouping);
    const key = keyOf(labels);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { labels, members: [item] });
    else group.members.push(item);
  }
  return [...groups.values()];
}

export function grouped(
  labels: Readonly<Record<string, string>>,
  grouping: Grouping | undefined,
): Readonly<Record<string, string>> {
  if (grouping === undefined) return labels;
  return Object.fromEntries(
    Object.entries(labels).filter(([name]) => grouping.labels.includes(name) !== grouping.without),
  );
}

export function keyOf(labels: Readonly<Record<string, string>>): string {
  return formatLabels(labelsFromObject(labels));
}

/** The labels without empty values. */
export function clean(labels: Readonly<Record<string, string>>): Record<string, string> {
  return labelsToObject(labelsFromObject(labels));
}
