import { formatLabels, invalidArgument, type Labels, labelValue, makeLabels } from "@skald/model";
import type { SeriesMatrix } from "../../plan/result.js";
import { groupKey, groupLabels } from "../../scan/metric/series.js";
import type { VectorMatching } from "../../syntax/ast.js";

/** The result for two samples; undefined when a comparison filters them out. */
export type SampleOperation = (left: number, right: number) => number | undefined;

/** Arithmetic and comparison: joins two vectors on their signatures, one to one or many to one. */
export function joinVectors(
  matching: VectorMatching | undefined,
  left: SeriesMatrix,
  right: SeriesMatrix,
  operation: SampleOperation,
): SeriesMatrix {
  const manyIsRight = matching?.group?.side === "right";
  const many = manyIsRight ? right : left;
  const one = manyIsRight ? left : right;
  const ones = onesBySignature(one, matching, manyIsRight ? "left" : "right");
  const result = new JoinedSeries(left.pointCount, matching);
  many.labels.forEach((labels, s) => {
    for (const match of ones.get(signature(labels, matching)) ?? []) {
      const row = result.row(resultLabels(labels, one.labels[match]!, matching));
      for (let p = 0; p < left.pointCount; p++) {
        if (many.present[s]![p] === 0 || one.present[match]![p] === 0) continue;
        const a = many.values[s]![p] as number;
        const b = one.values[match]![p] as number;
        result.set(row, p, manyIsRight ? operation(b, a) : operation(a, b));
      }
    }
  });
  return result.matrix();
}

/** The labels that decide which samples of two vectors belong together, as a text. */
export function signature(labels: Labels, matching: VectorMatching | undefined): string {
  if (matching === undefined) return formatLabels(labels);
  return groupKey(labels, { without: !matching.on, labels: matching.labels });
}

/** The series of the `one` side by signature: several are fine as long as they never have samples together. */
function onesBySignature(
  one: SeriesMatrix,
  matching: VectorMatching | undefined,
  side: "left" | "right",
): Map<string, number[]> {
  const bySignature = new Map<string, number[]>();
  one.labels.forEach((labels, s) => {
    const key = signature(labels, matching);
    const known = bySignature.get(key);
    if (known === undefined) bySignature.set(key, [s]);
    else known.push(s);
  });
  for (const series of bySignature.values()) {
    if (series.length > 1 && overlap(one, series)) {
      throw invalidArgument(
        `found duplicate series on the ${side} hand-side;many-to-many matching not allowed: matching labels must be unique on one side`,
      );
    }
  }
  return bySignature;
}

function overlap({ pointCount, present }: SeriesMatrix, series: readonly number[]): boolean {
  for (let p = 0; p < pointCount; p++) {
    let count = 0;
    for (const s of series) count += present[s]![p] as number;
    if (count > 1) return true;
  }
  return false;
}

/** One to one: the labels of the signature. Many to one: those of the many side and what is copied from the other. */
function resultLabels(many: Labels, one: Labels, matching: VectorMatching | undefined): Labels {
  if (matching === undefined) return many;
  if (matching.group === undefined) {
    return groupLabels(many, { without: !matching.on, labels: matching.labels });
  }
  const { include } = matching.group;
  if (include.length === 0) return many;
  const own = many.names.map((name, i) => [name, many.values[i] as string] as const);
  return makeLabels([...own, ...include.map((name) => [name, labelValue(one, name)] as const)]);
}

/** The series of a join under construction; one sample per series and point. */
class JoinedSeries {
  readonly #pointCount: number;
  readonly #matching: VectorMatching | undefined;
  readonly #byText = new Map<string, number>();
  readonly #labels: Labels[] = [];
  readonly #values: Float64Array[] = [];
  readonly #present: Uint8Array[] = [];
  /** Points that were matched, also those that a comparison filtered out. */
  readonly #matched: Uint8Array[] = [];

  constructor(pointCount: number, matching: VectorMatching | undefined) {
    this.#pointCount = pointCount;
    this.#matching = matching;
  }

  row(labels: Labels): number {
    const text = formatLabels(labels);
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    const row = this.#labels.push(labels) - 1;
    this.#byText.set(text, row);
    this.#values.push(new Float64Array(this.#pointCount));
    this.#present.push(new Uint8Array(this.#pointCount));
    this.#matched.push(new Uint8Array(this.#pointCount));
    return row;
  }

  set(row: number, point: number, value: number | undefined): void {
    if (this.#matched[row]![point] === 1) throw this.#ambiguous();
    this.#matched[row]![point] = 1;
    if (value === undefined) return;
    this.#values[row]![point] = value;
    this.#present[row]![point] = 1;
  }

  matrix(): SeriesMatrix {
    return {
      pointCount: this.#pointCount,
      labels: this.#labels,
      values: this.#values,
      present: this.#present,
    };
  }

  #ambiguous(): Error {
    return invalidArgument(
      this.#matching?.group === undefined
        ? "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
        : "multiple matches for labels: grouping labels must ensure unique matches",
    );
  }
}
