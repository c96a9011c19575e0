import { useEffect } from "preact/hooks";
import {
  closeLine,
  hidden,
  moveBy,
  opened,
  pins,
  shownLines,
  tab,
  togglePin,
} from "../answer/list-state.js";
import { fields, labels, sheetOpen } from "../answer/panel-state.js";
import { answer, busy, editQuery, grown, histogram, trouble } from "../answer/run.js";
import { zoom, zoomOut } from "../answer/zoom.js";
import { Histogram } from "../chart/histogram.js";
import { FieldPanel } from "../fields/panel.js";
import { Context } from "../lines/context.js";
import { Detail } from "../lines/detail.js";
import { anchorOf } from "../lines/paging.js";
import { Similar } from "../lines/similar.js";
import { formatWhole } from "../parts/format.js";
import { Lazy } from "../parts/lazy.js";
import { copy } from "../parts/toast.js";
import { countable, selectorText } from "../query/derive.js";
import { addFilter, addStage, type Origin } from "../query/edit.js";
import { config } from "../state/config.js";
import {
  chartFolded,
  draft,
  navigate,
  route,
  shareAddress,
  theme,
  zone,
} from "../state/explore.js";
import { LinesView } from "../views/lines-view.js";
import { QueryBar } from "./query-bar.js";
import { Strip } from "./states.js";
import { Toolbar } from "./toolbar.js";

/** Filters by a value that somebody clicked, and runs. */
function filterBy(name: string, value: string, negated: boolean, origin: Origin): void {
  editQuery(addFilter(draft.peek(), { name, value, negated }, origin));
}

/** Goes to the chart of lines by the values of a field. */
function graphBy(name: string, parser: string | undefined): void {
  const log = answer.peek()?.log;
  if (log === undefined) return;
  const isRead = parser === undefined || log.stages.some(({ kind }) => kind === parser);
  const counted = countable(log, isRead ? "" : ` | ${parser}`);
  editQuery(`sum by (${name}) (count_over_time(${counted} [1m]))`);
}

export function Explore() {
  const found = answer.value;
  useEffect(() => {
    const { title } = config.peek();
    document.title = found === undefined ? title : `${found.text} · ${title}`;
  }, [found]);
  return (
    <main class="explore">
      <h1 class="hidden">Explore</h1>
      <QueryBar />
      <div class={`body${opened.value === undefined ? "" : " with-detail"}`}>
        <FieldPanel
          labels={labels.value}
          fields={fields.value}
          log={found?.log}
          span={found?.span}
          shown={shownLines}
          open={route.value.open}
          sheet={sheetOpen.value}
          onOpen={(open) => navigate({ open }, "replace")}
          onFilter={filterBy}
          onGraph={graphBy}
        />
        <div class="answer">
          <Progress />
          <Strip />
          <Answered />
        </div>
        <OpenLine />
      </div>
      <p class="hidden" role="status" aria-live="polite">
        {statusText()}
      </p>
    </main>
  );
}

function statusText(): string {
  if (trouble.value !== undefined) return trouble.value.title;
  if (busy.value) return "The query runs";
  const total = histogram.value?.total;
  return total === undefined ? "" : `${formatWhole(total)} lines`;
}

function Progress() {
  if (!busy.value) return null;
  return (
    <div class="progress" role="progressbar" aria-label="The query runs">
      <i class="runs" />
    </div>
  );
}

const loadTable = () => import("../views/table-view.js");
const loadPatterns = () => import("../views/patterns-view.js");
const loadMetric = () => import("../views/metric-view.js");

function Answered() {
  const { view } = route.value;
  if (answer.value?.metric !== undefined) return <Lazy load={loadMetric} />;
  return (
    <>
      {!chartFolded.value && <Chart />}
      <Toolbar />
      <Pins />
      {view === "table" ? (
        <Lazy load={loadTable} />
      ) : view === "patterns" ? (
        <Lazy load={loadPatterns} />
      ) : (
        <LinesView />
      )}
    </>
  );
}

function Chart() {
  const data = histogram.value;
  if (data === undefined) return <div class="histogram" />;
  return (
    <Histogram
      data={data}
      hidden={hidden.value}
      zone={zone.value}
      theme={theme.value}
      covered={coveredRange()}
      onZoom={zoom}
      onZoomOut={zoomOut}
    />
  );
}

/** The times that the list covers, ms. */
function coveredRange(): readonly [number, number] | undefined {
  grown.value;
  const paging = answer.value?.paging;
  if (paging === undefined || paging.count === 0) return undefined;
  const ends = [paging.at(0), paging.at(paging.count - 1)].map(
    (line) => Number(line?.ns ?? 0) / 1e6,
  );
  return [Math.min(...ends), Math.max(...ends)];
}

function Pins() {
  if (pins.value.length === 0) return null;
  return (
    <section class="pins" aria-label="Pinned lines">
      {pins.value.map((line) => (
        <div key={`${line.ns}${line.text}`} class={`l-${line.level}`}>
          <button class="plus" type="button" aria-label="Unpin" onClick={() => togglePin(line)}>
            ×
          </button>
          <span>{line.text.slice(0, 500)}</span>
        </div>
      ))}
    </section>
  );
}

function OpenLine() {
  const line = opened.value;
  const found = answer.value;
  if (line === undefined) return null;
  const { cols } = route.value;
  const share = () => {
    const span = found?.span;
    void copy(
      shareAddress(span?.startNs ?? "now-1h", span?.endNs ?? "now", anchorOf(line)),
      "the link",
    );
  };
  return (
    <Detail
      line={line}
      zone={zone.value}
      tab={tab.value}
      links={config.value.links}
      columns={cols}
      onTab={(name) => (tab.value = name)}
      onMove={moveBy}
      onClose={closeLine}
      onFilter={filterBy}
      onColumn={(name) =>
        navigate(
          { cols: cols.includes(name) ? cols.filter((one) => one !== name) : [...cols, name] },
          "replace",
        )
      }
      onShare={share}
      context={() => <Context line={line} />}
      similar={() =>
        found?.log === undefined ? null : (
          <Similar
            line={line}
            selector={selectorText(found.log)}
            span={found.span}
            shown={shownLines}
            onStage={(stage) => editQuery(addStage(draft.peek(), stage))}
          />
        )
      }
    />
  );
}

/** The link to what is on the page, with absolute times. */
export function shareLink(): void {
  const span = answer.peek()?.span;
  void copy(
    shareAddress(span?.startNs ?? route.peek().from, span?.endNs ?? route.peek().to),
    "the link",
  );
}
