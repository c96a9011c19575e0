import { styleText } from "node:util";
import { formatTime, type TimeFormat, type Zone } from "../shell/times.js";
import { alignRows, csvLine, goJson, logfmtLine } from "./cells.js";
import {
  type AnswerStream,
  commonLabels,
  type Entry,
  type LabelChoice,
  type LabelSet,
  labelText,
  shownLabels,
} from "./entries.js";
import { PrettyLines } from "./pretty.js";

export const logForms = ["pretty", "default", "raw", "jsonl", "logfmt", "csv", "table"] as const;
export type LogForm = (typeof logForms)[number];

export interface LogOutputOptions {
  readonly form: LogForm;
  readonly zone: Zone;
  readonly timeFormat: TimeFormat;
  readonly labels: LabelChoice;
  /** The least width of labels in `default`; 0: that of the longest. */
  readonly labelsWidth: number;
  /** Columns of `csv` and `table`: `time`, `labels`, `line`, or names of labels. */
  readonly columns: readonly string[];
  readonly isColoured: boolean;
  /** In `default`: streams have a colour each. */
  readonly hasColourByStream: boolean;
  /** Lines come one after another without an end, so no labels are common to all. */
  readonly isLive: boolean;
}

/** Text for answers of lines. `default`, `raw` and `jsonl` are those of logcli, to the byte. */
export class LogOutput {
  readonly #options: LogOutputOptions;
  readonly #pretty: PrettyLines;
  #hasHead = false;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#pretty = new PrettyLines(options);
  }

  /** Labels that all streams of an answer share, and that its lines are written without; empty where there are none. */
  common(streams: readonly AnswerStream[]): LabelSet {
    const { labels, isLive, form } = this.#options;
    const isShared = form === "default" || form === "raw" || form === "jsonl";
    if (isLive || labels.keepsCommon || !isShared) return {};
    return commonLabels(
      streams.map(({ stream }) => stream),
      labels,
    );
  }

  /**
   * The text of lines of an answer. Its streams tell which labels its lines share and how wide the longest are, also those
   * whose lines were written before.
   */
  format(streams: readonly AnswerStream[], entries: readonly Entry[]): string {
    switch (this.#options.form) {
      case "raw":
        return entries.map(({ line }) => `${line.replace(/\n$/, "")}\n`).join("");
      case "pretty":
        return this.#pretty.format(entries);
      case "default":
        return this.#default(entries, this.#shown(streams));
      case "jsonl": {
        const shown = this.#shown(streams);
        return entries.map((entry) => this.#jsonl(entry, shown.get(entry.labels)!)).join("");
      }
      case "logfmt": {
        const shown = this.#shown(streams);
        return entries.map((entry) => this.#logfmt(entry, shown.get(entry.labels)!)).join("");
      }
      case "csv":
      case "table":
        return this.#rows(entries, this.#shown(streams));
    }
  }

  /** The labels that lines of each stream are written with. */
  #shown(streams: readonly AnswerStream[]): Map<LabelSet, LabelSet> {
    const common = this.common(streams);
    const { labels } = this.#options;
    return new Map(streams.map(({ stream }) => [stream, shownLabels(stream, common, labels)]));
  }

  #default(entries: readonly Entry[], shown: ReadonlyMap<LabelSet, LabelSet>): string {
    const { labels, labelsWidth, zone, timeFormat, isColoured, hasColourByStream } = this.#options;
    const texts = new Map([...shown].map(([stream, set]) => [stream, labelText(set)]));
    const longest = [...texts.values()].reduce(
      (most, text) => Math.max(most, Buffer.byteLength(text)),
      0,
    );
    const width = labelsWidth > 0 ? labelsWidth : longest;
    // Go counts bytes.
    const padded = (text: string) =>
      text + " ".repeat(Math.max(width - Buffer.byteLength(text), 0));
    return entries
      .map(({ ns, line, labels: stream }) => {
        const time = formatTime(ns, zone, timeFormat);
        const text = labels.isWithout ? "" : ` ${padded(texts.get(stream)!)}`;
        const own = hasColourByStream ? colourOf(text) : undefined;
        const paint = (colour: "blue" | "red", part: string) =>
          isColoured ? styleText(own ?? colour, part, { validateStream: false }) : part;
        return `${paint("blue", time)}${paint("red", text)} ${line.trim()}\n`;
      })
      .join("");
  }

  #jsonl({ ns, line }: Entry, labels: LabelSet): string {
    const timestamp = formatTime(ns, this.#options.zone);
    return `${goJson({ ...(this.#options.labels.isWithout ? {} : { labels }), line, timestamp })}\n`;
  }

  #logfmt({ ns, line }: Entry, labels: LabelSet): string {
    const time = formatTime(ns, this.#options.zone);
    const pairs = this.#options.labels.isWithout ? [] : Object.entries(labels);
    return logfmtLine([["time", time], ...pairs, ["line", line]]);
  }

  #rows(entries: readonly Entry[], shown: ReadonlyMap<LabelSet, LabelSet>): string {
    const { form, zone, columns } = this.#options;
    const rows = entries.map(({ ns, line, labels }) =>
      columns.map((column) => {
        if (column === "time") return formatTime(ns, zone);
        if (column === "line") return line;
        return column === "labels" ? labelText(shown.get(labels)!) : (labels[column] ?? "");
      }),
    );
    if (form === "table")
      return alignRows(
        columns,
        rows.map((row) => row.map((cell) => cell.replace(/\s+/g, " "))),
      );
    const head = this.#hasHead ? "" : csvLine(columns);
    this.#hasHead = true;
    return head + rows.map(csvLine).join("");
  }
}

const colours = ["red", "green", "yellow", "blue", "magenta", "cyan"] as const;

/** A colour that is the same for the same text. */
function colourOf(text: string) {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return colours[sum % colours.length]!;
}
