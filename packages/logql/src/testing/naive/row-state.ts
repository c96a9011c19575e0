import { formatLabels, labelsFromObject } from "@skald/model";
import type { PipelineOptions, SeriesError } from "../../pipeline/pipeline.js";
import {
  errorDetailsLabel,
  errorLabel,
  extractedName,
  isParserError,
} from "../../pipeline/row/row-labels.js";

export interface NaiveRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly ts: bigint;
  readonly line: string;
}

export interface NaiveResult {
  readonly line: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly categories: Readonly<Record<Category, Readonly<Record<string, string>>>>;
  readonly error?: SeriesError;
}

export type Category = "stream" | "structuredMetadata" | "parsed";
const strength: Readonly<Record<Category, number>> = {
  stream: 0,
  structuredMetadata: 1,
  parsed: 2,
};

/** A row between two stages: its line, its labels with their categories, its error. */
export class State {
  line: string;
  error = "";
  details = "";
  readonly ts: bigint;
  readonly #labels = new Map<string, { value: string; category: Category }>();
  readonly #streamNames: ReadonlySet<string>;
  readonly #metadataNames = new Set<string>();
  readonly #extracted = new Set<string>();

  constructor(row: NaiveRow) {
    this.line = row.line;
    this.ts = row.ts;
    this.#streamNames = new Set(Object.keys(row.labels));
    for (const [name, value] of Object.entries(row.labels)) {
      this.#labels.set(name, { value, category: "stream" });
    }
    for (const [name, value] of Object.entries(row.metadata)) {
      if (value === "") continue;
      if (name === errorLabel) this.error = value;
      else if (name === errorDetailsLabel) this.details = value;
      else {
        const own = this.#streamNames.has(name) ? extractedName(name) : name;
        this.#metadataNames.add(own);
        this.#labels.set(own, { value, category: "structuredMetadata" });
      }
    }
  }

  get(name: string): string | undefined {
    return this.#labels.get(name)?.value;
  }

  /** A weaker category does not replace a stronger one. A label of metadata that is replaced frees its name. */
  set(category: Category, name: string, value: string): void {
    const known = this.#labels.get(name);
    const isBase = known?.category === "stream";
    if (known !== undefined && !isBase && strength[known.category] > strength[category]) return;
    this.#metadataNames.delete(name);
    this.#labels.set(name, { value, category });
  }

  delete(name: string): void {
    this.#metadataNames.delete(name);
    this.#labels.delete(name);
  }

  rename(to: string, from: string): void {
    const known = this.#labels.get(from);
    if (known === undefined) return;
    this.set("parsed", to, known.value);
    this.delete(from);
  }

  /** A parser found a value. The first parser that finds a name wins, unless the parser `replaces` values. */
  extract(name: string, value: string, replaces = false): string | undefined {
    const taken = this.#streamNames.has(name) || this.#metadataNames.has(name);
    const target = taken ? extractedName(name) : name;
    if (this.#extracted.has(target) && !replaces) return undefined;
    this.#extracted.add(target);
    this.set("parsed", target, value);
    return target;
  }

  fail(kind: string, details?: string): false {
    this.error = kind;
    if (details !== undefined) this.details = details;
    return false;
  }

  names(): readonly string[] {
    return [...this.#labels.keys()];
  }

  all(): Map<string, string> {
    const labels = new Map([...this.#labels].map(([name, label]) => [name, label.value]));
    if (this.error !== "") labels.set(errorLabel, this.error);
    if (this.details !== "") labels.set(errorDetailsLabel, this.details);
    return labels;
  }

  output({ output, unwrap }: PipelineOptions): Omit<NaiveResult, "line" | "value"> {
    const all = this.all();
    const categories = { stream: {}, structuredMetadata: {}, parsed: {} } as Record<
      Category,
      Record<string, string>
    >;
    for (const [name, { value, category }] of this.#labels) categories[category][name] = value;
    if (this.error !== "") categories.parsed[errorLabel] = this.error;
    if (this.details !== "") categories.parsed[errorDetailsLabel] = this.details;
    if (output.kind === "log") return { labels: Object.fromEntries(all), categories };
    const { grouping } = output;
    const asksForError = grouping?.without === false && grouping.labels.includes(errorLabel);
    if (this.error !== "" && !(asksForError && isParserError(this.error))) {
      const labels = Object.fromEntries(all);
      const labelsText = formatLabels(labelsFromObject(labels));
      return { labels, categories, error: { kind: this.error, labelsText } };
    }
    const keeps = (name: string) => {
      if (grouping?.without === false) return grouping.labels.includes(name);
      return name !== unwrap?.label && !grouping?.labels.includes(name);
    };
    const labels = [...all].filter(([name, value]) => keeps(name) && value !== "");
    return { labels: Object.fromEntries(labels), categories };
  }
}
