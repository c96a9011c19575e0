import { useEffect } from "preact/hooks";
import { answer, grown, histogram, percentOf, progress } from "../answer/ask.js";
import { filterBy, graphBy, zoom, zoomOut } from "../answer/clicks.js";
import { hidden, liveSource, opened, pins, shownLines, togglePin } from "../answer/list-state.js";
import { fields, labels, sheetOpen } from "../answer/panel-state.js";
import { before, busy, runQuery, trouble } from "../answer/run.js";
import { Histogram } from "../chart/histogram.js";
import { FieldPanel } from "../fields/panel.js";
import { formatWhole } from "../parts/format.js";
import { Lazy } from "../parts/lazy.js";
import { say } from "../parts/toast.js";
import { config } from "../state/config.js";
import { chartFolded, navigate, route, theme, zone } from "../state/explore.js";
import { LinesView } from "../views/lines-view.js";
import { NothingFound } from "./nothing.js";
import { QueryBar } from "./query-bar.js";
import { isEmpty } from "./start.js";
import { Missing, Strip } from "./states.js";
import { countsOpen, downloadOpen, Toolbar } from "./toolbar.js";

const loadWelcome = () => import("../welcome/welcome.js");
const loadOpenLine = () => import("./open-line.js");
const loadDownload = () => import("../download/download.js");
const loadCounts = () => import("../views/counts-table.js");

export function Explore() {
  if (isEmpty.value) return <Lazy load={loadWelcome} props={{}} />;
  return <ExploreScreen />;
}

/** Asks for the sample logs to be deleted; queries leave them out at once. */
function removeSample(): void {
  void import("../welcome/sample.js")
    .then((sample) => sample.removeSample(Date.now()))
    .then(
      () => {
        say("The sample logs are being deleted");
        runQuery("replace");
      },
      (error: unknown) => say(error instanceof Error ? error.message : String(error)),
    );
}

function ExploreScreen() {
  const hasSample = config.value.deletes && labels.value.some(({ name }) => name === "sample");
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
          onFilter={(...filter) => {
            sheetOpen.value = false;
            filterBy(...filter);
          }}
          onGraph={graphBy}
          onRemoveSample={hasSample ? removeSample : undefined}
        />
        <div class={`answer${busy.value && answer.value === before.value ? " old" : ""}`}>
          <Progress />
          <Strip />
          <Missing />
          <Answered />
        </div>
        {opened.value !== undefined && <Lazy load={loadOpenLine} props={{}} />}
      </div>
      {downloadOpen.value && (
        <Lazy load={loadDownload} props={{ onClose: () => (downloadOpen.value = false) }} />
      )}
      {countsOpen.value && (
        <Lazy load={loadCounts} props={{ onClose: () => (countsOpen.value = false) }} />
      )}
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

/** That a query runs, and how far it is where it is asked in slices. */
function Progress() {
  if (!busy.value) return null;
  const now = progress.value;
  if (now === undefined) {
    return (
      <div class="progress" role="progressbar" aria-label="The query runs">
        <i class="runs" />
      </div>
    );
  }
  const percent = percentOf(now);
  return (
    <div class="progress" role="progressbar" aria-label="The query runs" aria-valuenow={percent}>
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}

const loadTable = () => import("../views/table-view.js");
const loadPatterns = () => import("../views/patterns-view.js");
const loadMetric = () => import("../views/metric-view.js");

function Answered() {
  const { view } = route.value;
  if (answer.value?.metric !== undefined) return <Lazy load={loadMetric} props={{}} />;
  return (
    <>
      {!chartFolded.value && liveSource.value === undefined && <Chart />}
      <Toolbar />
      <Pins />
      {view === "table" ? (
        <Lazy load={loadTable} props={{}} />
      ) : view === "patterns" ? (
        <Lazy load={loadPatterns} props={{}} />
      ) : (
        <Lines />
      )}
    </>
  );
}

function Lines() {
  const found = answer.value;
  const isNone = found?.paging?.done && found.paging.count === 0;
  if (isNone && liveSource.value === undefined) return <NothingFound found={found} />;
  return <LinesView />;
}

function Chart() {
  return (
    <Histogram
      data={histogram.value}
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
