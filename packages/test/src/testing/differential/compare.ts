/** An answer as it was received. */
export interface Answered {
  readonly status: number;
  readonly text: string;
}

/** How two answers may differ; the first class that applies counts. */
export const differenceClasses = [
  "status",
  "error text",
  "type of result",
  "missing or extra series",
  "missing or extra lines",
  "missing or extra samples",
  "value",
  "last digits of a value",
  "order",
  "warnings",
  "other",
] as const;

export type DifferenceClass = (typeof differenceClasses)[number];

export interface Difference {
  readonly kind: DifferenceClass;
  readonly a: string;
  readonly b: string;
}

/** A smaller relative difference comes from the order in which floats were added. */
const maxRelativeError = 1e-9;

/** Compares two answers to one call without their statistics; undefined when they are equal. */
export function compareAnswers(a: Answered, b: Answered): Difference | undefined {
  const of = (kind: DifferenceClass, left: unknown, right: unknown): Difference => {
    return { kind, a: shorten(left), b: shorten(right) };
  };
  if (a.status !== b.status) return of("status", `${a.status} ${a.text}`, `${b.status} ${b.text}`);
  if (a.text === b.text) return undefined;
  if (a.status >= 300) return of("error text", a.text, b.text);
  const [left, right] = [parse(a.text), parse(b.text)];
  if (left?.data?.result === undefined || right?.data?.result === undefined)
    return compareLists(left, right, of);
  if (left.data.resultType !== right.data.resultType)
    return of("type of result", left.data.resultType, right.data.resultType);
  const found = compareResults(left.data.result, right.data.result, of);
  if (found !== undefined) return found;
  const warnings = [JSON.stringify(left.warnings ?? []), JSON.stringify(right.warnings ?? [])];
  return warnings[0] === warnings[1] ? undefined : of("warnings", warnings[0], warnings[1]);
}

type Make = (kind: DifferenceClass, a: unknown, b: unknown) => Difference;
type Pair = readonly [number | string, string, unknown?];

interface Series {
  readonly stream?: Readonly<Record<string, string>>;
  readonly metric?: Readonly<Record<string, string>>;
  readonly value?: Pair;
  readonly values?: readonly Pair[];
}

interface Body {
  readonly warnings?: readonly string[];
  readonly data?: { readonly resultType?: string; readonly result?: readonly Series[] | Pair };
}

function parse(text: string): Body | undefined {
  try {
    return JSON.parse(text) as Body;
  } catch {
    return undefined;
  }
}

/** Lists of labels, values and series have no order. */
function compareLists(a: Body | undefined, b: Body | undefined, of: Make): Difference | undefined {
  const [left, right] = [a, b].map((body) =>
    Array.isArray(body?.data) ? body.data.map(keyOf).sort() : undefined,
  );
  if (left === undefined || right === undefined) return of("other", a, b);
  const [onlyA, onlyB] = apart(left, right);
  return onlyA.length + onlyB.length === 0
    ? undefined
    : of("missing or extra series", onlyA, onlyB);
}

function compareResults(
  a: readonly Series[] | Pair,
  b: readonly Series[] | Pair,
  of: Make,
): Difference | undefined {
  if (!isSeriesList(a) || !isSeriesList(b)) return compareSamples([a as Pair], [b as Pair], of);
  const [left, right] = [a, b].map(
    (list) => new Map(list.map((series) => [labelsOf(series), series])),
  ) as [Map<string, Series>, Map<string, Series>];
  const [onlyA, onlyB] = apart([...left.keys()], [...right.keys()]);
  if (onlyA.length + onlyB.length > 0) return of("missing or extra series", onlyA, onlyB);
  const found: Difference[] = [];
  for (const [labels, series] of left) {
    const other = right.get(labels) as Series;
    const compare = series.stream === undefined ? compareSamples : compareLines;
    const difference = compare(pairsOf(series), pairsOf(other), (kind, x, y) =>
      of(kind, `${labels} ${shorten(x)}`, `${labels} ${shorten(y)}`),
    );
    if (difference !== undefined) found.push(difference);
  }
  found.sort((x, y) => differenceClasses.indexOf(x.kind) - differenceClasses.indexOf(y.kind));
  if (found.length > 0) return found[0];
  const [orderA, orderB] = [[...left.keys()].join(" "), [...right.keys()].join(" ")];
  return orderA === orderB ? undefined : of("order", orderA, orderB);
}

function compareLines(a: readonly Pair[], b: readonly Pair[], of: Make): Difference | undefined {
  const [left, right] = [a.map(keyOf), b.map(keyOf)];
  const [onlyA, onlyB] = apart(left, right);
  if (onlyA.length + onlyB.length > 0) return of("missing or extra lines", onlyA, onlyB);
  return left.join() === right.join() ? undefined : of("order", left, right);
}

function compareSamples(a: readonly Pair[], b: readonly Pair[], of: Make): Difference | undefined {
  const [onlyA, onlyB] = apart(
    a.map(([time]) => String(time)),
    b.map(([time]) => String(time)),
  );
  if (onlyA.length + onlyB.length > 0) return of("missing or extra samples", onlyA, onlyB);
  let close: Difference | undefined;
  for (const [i, pair] of a.entries()) {
    const other = b[i] as Pair;
    if (pair[1] === other[1]) continue;
    const [x, y] = [Number(pair[1]), Number(other[1])];
    if (!(Math.abs(x - y) <= maxRelativeError * Math.max(Math.abs(x), Math.abs(y))))
      return of("value", pair, other);
    close ??= of("last digits of a value", pair, other);
  }
  return close;
}

function isSeriesList(result: readonly Series[] | Pair): result is readonly Series[] {
  return result.length === 0 || typeof result[0] === "object";
}

function pairsOf({ value, values }: Series): readonly Pair[] {
  return values ?? (value === undefined ? [] : [value]);
}

function labelsOf({ stream, metric }: Series): string {
  return keyOf(stream ?? metric ?? {});
}

/** A text that is equal for equal values, whatever the order of their keys. */
function keyOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** What each list has more often than the other. */
function apart(a: readonly string[], b: readonly string[]): [string[], string[]] {
  const counts = new Map<string, number>();
  for (const text of a) counts.set(text, (counts.get(text) ?? 0) + 1);
  for (const text of b) counts.set(text, (counts.get(text) ?? 0) - 1);
  const entries = [...counts];
  return [
    entries.filter(([, count]) => count > 0).map(([text]) => text),
    entries.filter(([, count]) => count < 0).map(([text]) => text),
  ];
}

function shorten(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > 400 ? `${text.slice(0, 400)}.. (${text.length})` : text;
}
