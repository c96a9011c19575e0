import type { RowSelection } from "@skald/kernels";
import { type Block, emptyLabels, invalidArgument, type Labels, SkaldError } from "@skald/model";
import { compilePipeline } from "../../pipeline/pipeline.js";
import type {
  Pipeline,
  PipelineNeeds,
  PipelineRun,
  RowBatch,
  SeriesError,
} from "../../pipeline/types.js";
import type { LeafPlan } from "../../plan/plan.js";
import type { StreamLabels } from "../block-selection.js";
import { groupLabels, type SeriesIndex } from "./series.js";

/** Label sets that a run of the pipeline may remember before it is replaced by a fresh one. */
const maxRememberedSeries = 50_000;

/** The pipeline of a leaf, and the series of the leaf that its series belong to. */
export class PipelineSeries {
  readonly #leaf: LeafPlan;
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
    this.#leaf = leaf;
    this.#index = index;
    const { stages, unwrap, grouping, extract, mode } = leaf;
    // With every label extracted the grouping is left to seriesOf.
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
    const { grouping, extract } = this.#leaf;
    const series = this.#index.find(extract === "all" ? groupLabels(labels, grouping) : labels);
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
