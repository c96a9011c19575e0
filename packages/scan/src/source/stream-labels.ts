import type { StreamLabels } from "@skald/logql";
import { emptyLabels, type Labels, labelValue, makeLabels } from "@skald/model";
import { codeOf, type LabelTable, type StreamColumn } from "@skald/storage";

/**
 * The label sets of a table's streams, each made once, with `__tenant_id__` when a tenant is given. Scans tell sources apart by this
 * function, so that a source has one for all of its blocks.
 */
export function streamLabels(streams: LabelTable, tenant: string | undefined): StreamLabels {
  const labels = onceEach((stream: number) => streams.labels(stream));
  const only = (names: readonly string[]) => projectedLabels(streams, names);
  if (tenant === undefined) return Object.assign(labels, { only });
  const renamed = onceEach((own: Labels) => withTenantLabel(own, tenant));
  return Object.assign((stream: number) => renamed(labels(stream)), {
    only: (names: readonly string[]) => {
      const own = only([...names, tenantLabelName]);
      const kept = new Set(names);
      const reduced = onceEach((all: Labels) => keepNames(withTenantLabel(all, tenant), kept));
      return (stream: number) => reduced(own(stream));
    },
  });
}

/** The function, called once for each key. */
function onceEach<Key>(make: (key: Key) => Labels): (key: Key) => Labels {
  const known = new Map<Key, Labels>();
  return (key) => {
    let made = known.get(key);
    if (made === undefined) {
      made = make(key);
      known.set(key, made);
    }
    return made;
  };
}

function keepNames({ names, values }: Labels, kept: ReadonlySet<string>): Labels {
  const left = names.flatMap((name, i) => (kept.has(name) ? [i] : []));
  return { names: left.map((i) => names[i]!), values: left.map((i) => values[i]!) };
}

/** Labels of some names only, by stream. Streams with the same values share one object. */
function projectedLabels(table: LabelTable, names: readonly string[]): (stream: number) => Labels {
  const columns = [...new Set(names)].sort().flatMap((name) => table.column(name) ?? []);
  const [only] = columns;
  if (only === undefined) return () => emptyLabels;
  const known = new Map<number | string, Labels>();
  const keyOf = columns.length === 1 ? (stream: number) => codeOf(only, stream) : keysOf(columns);
  return (stream) => {
    const key = keyOf(stream);
    let labels = known.get(key);
    if (labels === undefined) {
      labels = labelsIn(columns, stream);
      known.set(key, labels);
    }
    return labels;
  };
}

/** The codes of a stream as one number, or as a text where they do not fit into one. */
function keysOf(columns: readonly StreamColumn[]): (stream: number) => number | string {
  const combinations = columns.reduce((product, { valueCount }) => product * (valueCount + 1), 1);
  if (combinations > Number.MAX_SAFE_INTEGER) {
    return (stream) => columns.map((column) => codeOf(column, stream)).join();
  }
  return (stream) => {
    let key = 0;
    for (const column of columns) key = key * (column.valueCount + 1) + codeOf(column, stream);
    return key;
  };
}

function labelsIn(columns: readonly StreamColumn[], stream: number): Labels {
  const has = columns.filter((column) => codeOf(column, stream) > 0);
  return {
    names: has.map(({ name }) => name),
    values: has.map((column) => column.value(codeOf(column, stream) - 1)),
  };
}

export const tenantLabelName = "__tenant_id__";
const shadowedName = `original_${tenantLabelName}`;

/** True for the labels that `withTenantLabel` may add. */
export function isTenantLabel(name: string): boolean {
  return name === tenantLabelName || name === shadowedName;
}

/** Adds `__tenant_id__`. A label of that name that the stream already has is kept as `original___tenant_id__`. */
export function withTenantLabel(labels: Labels, tenant: string): Labels {
  const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
  const own = labelValue(labels, tenantLabelName);
  const shadowed = own === "" ? [] : [[shadowedName, own] as const];
  return makeLabels([...pairs, ...shadowed, [tenantLabelName, tenant] as const]);
}
