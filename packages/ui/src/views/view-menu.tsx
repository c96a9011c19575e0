import type { Signal } from "@preact/signals";
import { quote } from "@skald/model";
import { shareLink, turnOrder } from "../answer/clicks.js";
import { selectedLines } from "../answer/list-state.js";
import { editQuery } from "../answer/run.js";
import type { Line } from "../api/lines.js";
import { anchorOf } from "../lines/paging.js";
import { copyText } from "../lines/selection.js";
import { Menu } from "../parts/menu.js";
import { copy } from "../parts/toast.js";
import { addStage } from "../query/edit.js";
import {
  chartFolded,
  chipsFolded,
  draft,
  navigate,
  oldestFirst,
  raw,
  route,
  wrap,
} from "../state/explore.js";

/** Texts of one filter: a longer one is no help to a reader. */
const filterTextsMax = 20;

const copies = [
  ["Copy", "text"],
  ["Copy with times", "timed"],
  ["Copy as JSON", "jsonl"],
] as const;

interface ViewMenuProps {
  readonly onClose: () => void;
  readonly onCounts: () => void;
}

/** How the answer is shown, and what can be done with the lines that are selected. */
export default function ViewMenu({ onClose, onCounts }: ViewMenuProps) {
  const lines = selectedLines().filter(({ note }) => !note);
  const item = (label: string, run: () => void, note = "") => (
    <button
      class="item"
      type="button"
      key={label}
      onClick={() => {
        onClose();
        run();
      }}
    >
      {label}
      <span class="note">{note}</span>
    </button>
  );
  const toggle = (label: string, flag: Signal<boolean>, note = "") => (
    <button
      class="item"
      type="button"
      aria-pressed={flag.value}
      onClick={() => (flag.value = !flag.value)}
    >
      {label}
      <span class="note">{note}</span>
    </button>
  );
  const { tz } = route.value;
  return (
    <Menu label="More about the view" class="view-menu" onClose={onClose}>
      <div class="head">View</div>
      {toggle("Wrap lines", wrap, "W")}
      {toggle("Raw lines", raw, "R")}
      {item(oldestFirst.value ? "Newest first" : "Oldest first", turnOrder, "O")}
      {item(
        `Times in ${tz === "utc" ? "local time" : "UTC"}`,
        () => navigate({ tz: tz === "utc" ? "local" : "utc" }),
        "U",
      )}
      {toggle("Fold the parts of the query", chipsFolded)}
      {toggle("Fold the chart", chartFolded)}
      {item("Counts as a table", onCounts)}
      {lines.length > 0 && (
        <>
          <div class="head">{countOf(lines)}</div>
          {copies.map(([label, as]) =>
            item(
              label,
              () => void copy(copyText(lines, as), countOf(lines)),
              as === "text" ? "Ctrl+C" : "",
            ),
          )}
          {item("Only lines with these texts", () => filterByTexts(lines))}
          {item("Copy a link to the first", () => shareLink(anchorOf(lines[0]!)))}
        </>
      )}
    </Menu>
  );
}

function countOf({ length }: readonly Line[]): string {
  return `${length} line${length === 1 ? "" : "s"}`;
}

function filterByTexts(lines: readonly Line[]): void {
  const texts = [...new Set(lines.map(({ text }) => quote(text)))].slice(0, filterTextsMax);
  editQuery(addStage(draft.peek(), `|= ${texts.join(" or ")}`));
}
