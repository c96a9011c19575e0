import type { Stage } from "./ast.js";

/** What is true of every stage of a kind. Planners and scans ask this table, so that a new kind must answer all of it. */
export interface StageFacts {
  /** Finds labels in the line. */
  readonly parses: boolean;
  /** Puts another text in the place of the line. */
  readonly changesLine: boolean;
  /** Drops rows. */
  readonly filters: boolean;
  /** Adds, changes or removes labels. */
  readonly changesLabels: boolean;
  /** Marks a row with an error that nobody sees who does not run the stage. */
  readonly marksErrors: boolean;
  /** May ask a template for the time of day, among other things. */
  readonly hasTemplate: boolean;
}

const none: StageFacts = {
  parses: false,
  changesLine: false,
  filters: false,
  changesLabels: false,
  marksErrors: false,
  hasTemplate: false,
};
const parser: StageFacts = { ...none, parses: true, changesLabels: true };

export const stageFacts: Readonly<Record<Stage["kind"], StageFacts>> = {
  line_filter: { ...none, filters: true },
  label_filter: { ...none, filters: true },
  json: { ...parser, marksErrors: true },
  logfmt: { ...parser, marksErrors: true },
  regexp: parser,
  pattern: parser,
  unpack: { ...parser, changesLine: true, marksErrors: true },
  decolorize: { ...none, changesLine: true },
  line_format: { ...none, changesLine: true, marksErrors: true, hasTemplate: true },
  label_format: { ...none, changesLabels: true, marksErrors: true, hasTemplate: true },
  drop: { ...none, changesLabels: true },
  keep: { ...none, changesLabels: true },
};

/** The facts of a stage. */
export function factsOf({ kind }: Stage): StageFacts {
  return stageFacts[kind];
}
