import { compileMatcher, type Labels, labelValue, type Matcher, matchesEmpty } from "@skald/model";

/** Which streams have which label value: finds the streams of a selector without a look at the others. */
export class Postings {
  readonly #names = new Map<string, Map<string, number[]>>();

  add(stream: number, labels: Labels): void {
    for (let i = 0; i < labels.names.length; i++) {
      const name = labels.names[i] as string;
      const value = labels.values[i] as string;
      let values = this.#names.get(name);
      if (values === undefined) {
        values = new Map();
        this.#names.set(name, values);
      }
      const streams = values.get(value);
      if (streams === undefined) values.set(value, [stream]);
      else streams.push(stream);
    }
  }

  /** Takes streams out; each list that has one of them is gone through once. */
  remove(removed: ReadonlySet<number>, labelsOf: (stream: number) => Labels): void {
    const touched = new Map<string, Set<string>>();
    for (const stream of removed) {
      const { names, values } = labelsOf(stream);
      for (let i = 0; i < names.length; i++) {
        const set = touched.get(names[i] as string);
        if (set === undefined) touched.set(names[i] as string, new Set([values[i] as string]));
        else set.add(values[i] as string);
      }
    }
    for (const [name, values] of touched) {
      for (const value of values) this.#removeFrom(name, value, removed);
    }
  }

  /**
   * Numbers of the streams that satisfy every matcher, in no order; undefined when every stream may, because no
   * matcher asks for a label to be there. Throws on a bad regular expression.
   */
  match(matchers: readonly Matcher[], labelsOf: (stream: number) => Labels): number[] | undefined {
    const tests = matchers.map((matcher) => ({ matcher, test: remembered(matcher) }));
    let best: { lists: readonly number[][]; size: number; matcher: Matcher } | undefined;
    for (const { matcher, test } of tests) {
      if (matchesEmpty(matcher)) continue;
      const lists = this.#lists(matcher, test);
      const size = lists.reduce((sum, list) => sum + list.length, 0);
      if (best === undefined || size < best.size) best = { lists, size, matcher };
    }
    if (best === undefined) return undefined;
    const others = tests.filter(({ matcher }) => matcher !== best.matcher);
    return best.lists.flat().filter((stream) => {
      const labels = labelsOf(stream);
      return others.every(({ matcher, test }) => test(labelValue(labels, matcher.name)));
    });
  }

  #lists(matcher: Matcher, test: (value: string) => boolean): readonly number[][] {
    const values = this.#names.get(matcher.name);
    if (values === undefined) return [];
    if (matcher.op === "=") {
      const list = values.get(matcher.value);
      return list === undefined ? [] : [list];
    }
    return [...values].flatMap(([value, list]) => (test(value) ? [list] : []));
  }

  #removeFrom(name: string, value: string, removed: ReadonlySet<number>): void {
    const values = this.#names.get(name);
    const left = values?.get(value)?.filter((stream) => !removed.has(stream));
    if (values === undefined || left === undefined) return;
    if (left.length > 0) values.set(value, left);
    else values.delete(value);
    if (values.size === 0) this.#names.delete(name);
  }
}

/** The test of a matcher, asked once per distinct value: a regular expression costs far more than a look-up. */
export function remembered(matcher: Matcher): (value: string) => boolean {
  const test = compileMatcher(matcher);
  if (matcher.op === "=" || matcher.op === "!=") return test;
  const known = new Map<string, boolean>();
  return (value) => {
    let matches = known.get(value);
    if (matches === undefined) {
      matches = test(value);
      known.set(value, matches);
    }
    return matches;
  };
}
