import type { RowSelection } from "@skald/kernels";
import {
  type Block,
  type BlockFacts,
  detectedLevelName,
  emptyLabels,
  invalidArgument,
  keyOfLabels,
  type Labels,
  makeLabels,
  SkaldError,
} from "@skald/model";
import { compilePipeline } from "../pipeline/compile.js";
import type {
  Pipeline,
  PipelineNeeds,
  PipelineRun,
  RowBatch,
  SeriesError,
} from "../pipeline/pipeline.js";
import { tooManySeries } from "../plan/budget.js";
import type { LeafPlan } from "../plan/plan.js";
import type { Grouping } from "../syntax/ast.js";
import type { StreamLabels } from "./block-selection.js";
import { shortenTo } from "./short-labels.js";

/** The series of a leaf: label sets numbered from 0 in order of appearance. */
export class SeriesIndex {
  readonly labels: Labels[] = [];
  readonly #byKey = new Map<string, number>();
  readonly #maxSeries: number;
  readonly #shorten: (all: Labels) => Labels;

  /** `labelsRead`: see LeafPlan. */
  constructor({ maxSeries, labelsRead }: Pick<LeafPlan, "maxSeries" | "labelsRead">) {
    this.#maxSeries = maxSeries;
    this.#shorten = labelsRead === undefined ? (all) => all : shortenTo(labelsRead);
  }

  find(all: Labels): number {
    const labels = this.#shorten(all);
    const key = keyOfLabels(labels);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.labels.length >= this.#maxSeries) throw tooManySeries(this.#maxSeries);
    this.#byKey.set(key, this.labels.length);
    return this.labels.push(labels) - 1;
  }
}

/** Series of rows whose labels are those of their stream; of those only what the grouping asks for is looked at. */
export class StreamSeries {
  readonly #grouping: Grouping | undefined;
  readonly #group: (labels: Labels) => Labels;
  readonly #index: SeriesIndex;
  #source: StreamLabels | undefined;
  #labels: (stream: number) => Labels = () => emptyLabels;
  /** Series by the labels of a stream that the grouping may leave. */
  #known = new Map<Labels, number>();
  #levels = new Map<Labels, Map<string, number>>();

  constructor(grouping: Grouping | undefined, index: SeriesIndex) {
    this.#grouping = grouping;
    this.#group = makeGrouper(grouping);
    this.#index = index;
  }

  find(source: StreamLabels, stream: number): number {
    this.#open(source);
    const labels = this.#labels(stream);
    const known = this.#known.get(labels);
    if (known !== undefined) return known;
    const series = this.#index.find(this.#group(labels));
    this.#known.set(labels, series);
    return series;
  }

  /** Whether a stream has a label `detected_level` itself: its rows then belong to other series. */
  hasLevelLabel(source: StreamLabels, stream: number): boolean {
    this.#open(source);
    return this.#labels(stream).names.includes(detectedLevelName);
  }

  /** The series of rows of a stream that have a level. */
  findLevel(source: StreamLabels, stream: number, level: string): number {
    this.#open(source);
    const labels = this.#labels(stream);
    let known = this.#levels.get(labels);
    if (known === undefined) {
      known = new Map();
      this.#levels.set(labels, known);
    }
    let series = known.get(level);
    if (series === undefined) {
      const pairs = labels.names.map((name, i) => [name, labels.values[i]!] as const);
      const own = makeLabels([...pairs, [detectedLevelName, level]]);
      series = this.#index.find(this.#group(own));
      known.set(level, series);
    }
    return series;
  }

  #open(source: StreamLabels): void {
    if (source === this.#source) return;
    const grouping = this.#grouping;
    this.#source = source;
    this.#labels = (grouping?.without === false && source.only?.(grouping.labels)) || source;
    this.#known = new Map();
    this.#levels = new Map();
  }
}

/**
 * True when structured metadata of these names can change the series of a row. A name that a stream label has
 * already becomes `<name>_extracted`.
 */
export function metadataMatters(names: readonly string[], grouping: Grouping | undefined): boolean {
  if (names.length === 0) return false;
  if (grouping === undefined || grouping.without || names.includes("__error__")) return true;
  return names.some(
    (name) => grouping.labels.includes(name) || grouping.labels.includes(`${name}_extracted`),
  );
}

/** True when of all metadata of these names only the level can. */
export function onlyLevelMatters(
  names: readonly string[],
  grouping: Grouping | undefined,
): boolean {
  if (!names.includes(detectedLevelName)) return false;
  if (grouping?.labels.includes(`${detectedLevelName}_extracted`) === true) return false;
  const others = names.filter((name) => name !== detectedLevelName);
  return !metadataMatters(others, grouping);
}

/** Gives the labels that a grouping leaves of a label set; without a grouping all. */
export function makeGrouper(grouping: Grouping | undefined): (all: Labels) => Labels {
  if (grouping === undefined) return (all) => all;
  const named = new Set(grouping.labels);
  return (all) => {
    const names: string[] = [];
    const values: string[] = [];
    for (let i = 0; i < all.names.length; i++) {
      if (named.has(all.names[i]!) === grouping.without) continue;
      names.push(all.names[i]!);
      values.push(all.values[i]!);
    }
    return { names, values };
  };
}

/** Label sets that a run of the pipeline may remember before it is replaced by a fresh one. */
const maxRememberedSeries = 50_000;

/** The pipeline of a leaf, and the series of the leaf that its series belong to. */
export class PipelineSeries {
  /** Groups the labels where the pipeline does not. */
  readonly #group: (labels: Labels) => Labels;
  readonly #index: SeriesIndex;
  readonly #pipeline: Pipeline;
  #run: PipelineRun;
  /** Series of the leaf by series of the run. */
  #known: number[] = [];

  readonly #check: (() => void) | undefined;
  #streams: StreamLabels | undefined;
  #usedLabels: (stream: number) => Labels = () => emptyLabels;

  constructor(leaf: LeafPlan, index: SeriesIndex, check?: () => void) {
    this.#check = check;
    this.#index = index;
    const { stages, unwrap, grouping, extract, mode } = leaf;
    this.#group = makeGrouper(extract === "all" ? grouping : undefined);
    const grouped = extract === "needed" && grouping !== undefined ? { grouping } : {};
    this.#pipeline = compilePipeline({
      stages,
      ...(unwrap === undefined ? {} : { unwrap }),
      output: { kind: "metric", ...grouped },
      countsLines: mode === "bytes",
      nowNs: leaf.nowNs,
    });
    this.#run = this.#pipeline.start({ check: this.#check });
  }

  get needs(): PipelineNeeds {
    return this.#pipeline.needs;
  }

  get formula(): Pipeline["formula"] {
    return this.#pipeline.formula;
  }

  readsLines(facts: BlockFacts | undefined): boolean {
    return this.#pipeline.readsLines(facts);
  }

  mayPass(facts: BlockFacts): Uint32Array | undefined {
    return this.#run.mayPass(facts);
  }

  process(block: Block, streams: StreamLabels, selection: Readonly<RowSelection>): RowBatch {
    if (this.#run.series.count > maxRememberedSeries) {
      this.#run = this.#pipeline.start({ check: this.#check });
      this.#known = [];
    }
    if (streams !== this.#streams) this.#usedLabels = this.#usedOf(streams);
    this.#streams = streams;
    return this.#run.process(block, this.#usedLabels, selection);
  }

  /** The labels of streams that stages and grouping look at, or that a parsed label may clash with. */
  #usedOf(streams: StreamLabels): (stream: number) => Labels {
    const { metadata } = this.#pipeline.needs;
    return metadata === true || streams.only === undefined ? streams : streams.only(metadata);
  }

  /** The series of the leaf for a series of the last batch. Throws when rows of it end in an error. */
  readonly seriesOf = (id: number): number => {
    const known = this.#known[id];
    if (known !== undefined) return known;
    const { labels, error } = this.#run.series.get(id);
    if (error !== undefined) throw pipelineError(error);
    const series = this.#index.find(this.#group(labels));
    this.#known[id] = series;
    return series;
  };
}

/** The kind of error that rows of a metric query ended in, `JSONParserErr` and such; undefined for any other failure. */
export function rowErrorOf(error: unknown): string | undefined {
  const detail = error instanceof SkaldError ? error.detail : undefined;
  return (detail as { readonly rowError?: string } | undefined)?.rowError;
}

function pipelineError({ kind, labelsText }: SeriesError): Error {
  return invalidArgument(
    [
      `pipeline error: '${kind}' for series: '${labelsText}'.`,
      `Use a label filter to intentionally skip this error. (e.g | __error__!="${kind}").`,
      'To skip all potential errors you can match empty errors.(e.g __error__="")',
      'The label filter can also be specified after unwrap. (e.g | unwrap latency | __error__="" )',
    ].join("\n"),
    { detail: { rowError: kind } },
  );
}
