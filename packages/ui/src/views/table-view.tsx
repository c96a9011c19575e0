import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { grown } from "../answer/ask.js";
import { opened, openRow, source } from "../answer/list-state.js";
import { fields, labels } from "../answer/panel-state.js";
import { loadMore, restore } from "../answer/run.js";
import { valueIn } from "../fields/counts.js";
import { parsedOf } from "../lines/row.js";
import { formatWhole } from "../parts/format.js";
import { navigate, route, zone } from "../state/explore.js";
import { formatTime } from "../state/range.js";

/** Rows that are drawn above and below those in view. */
const aheadRows = 10;

/** Lines with chosen fields as columns. Sorting is of the lines that are held. */
export default function TableView() {
  const { cols } = route.value;
  const sort = useSignal<{ name: string; down: boolean } | undefined>(undefined);
  const view = useSignal({ first: 0, count: 60, rowPx: 24 });
  const widths = useSignal<Readonly<Record<string, number>>>({});
  const list = source.value;
  grown.value;
  const host = useRef<HTMLDivElement>(null);
  const look = () => {
    if (host.current !== null) view.value = viewOf(host.current);
  };
  useEffect(() => {
    host.current?.scrollTo(0, 0);
    look();
  }, [list]);
  const columns =
    cols.length > 0
      ? cols
      : ["detected_level", list.at(0)?.stream.source === "" ? "" : "service_name"].filter(Boolean);
  const order = useMemo(
    () => (sort.value === undefined ? undefined : sortedRows(sort.value)),
    [list, list.count, sort.value],
  );
  const total = order?.length ?? list.count;
  const { first, count, rowPx } = view.value;
  const from = Math.max(0, Math.min(first, total - count));
  const to = Math.min(total, from + count);
  const setSort = (name: string) => {
    const { value } = sort;
    sort.value =
      value?.name === name && !value.down ? undefined : { name, down: value?.name !== name };
  };
  const widthOf = (name: string) => widths.value[name] ?? (name === "time" ? 130 : 170);
  const allWidths = ["time", ...columns].reduce((sum, name) => sum + widthOf(name), 0);
  const head = (name: string) => (
    <th
      key={name}
      aria-sort={sort.value?.name !== name ? "none" : sort.value.down ? "descending" : "ascending"}
      style={name === "line" ? {} : { width: `${widthOf(name)}px` }}
    >
      <button type="button" onClick={() => setSort(name)}>
        {name}
        {sort.value?.name === name ? (sort.value.down ? " ▾" : " ▴") : ""}
      </button>
      {name !== "time" && name !== "line" && (
        <button
          type="button"
          aria-label={`Remove the column ${name}`}
          onClick={() => navigate({ cols: columns.filter((one) => one !== name) }, "replace")}
        >
          {" "}
          ×
        </button>
      )}
      <span
        class="drag"
        onPointerDown={(event) =>
          startDrag(event, (width) => (widths.value = { ...widths.value, [name]: width }))
        }
      />
    </th>
  );
  return (
    <div
      class="grid"
      tabIndex={0}
      role="region"
      aria-label="Lines as a table"
      ref={host}
      onScroll={({ currentTarget: at }) => {
        look();
        const middle = Math.floor((from + to) / 2);
        if (middle < list.count && list.at(order?.[middle] ?? middle) === undefined)
          void restore(order?.[middle] ?? middle);
        if (at.scrollTop + 2 * at.clientHeight >= at.scrollHeight) void loadMore();
      }}
    >
      <div class="bar note-row">
        <ColumnPicker columns={columns} />
        <span>
          {sort.value !== undefined && `sorted: the ${formatWhole(total)} lines that are held`}
        </span>
      </div>
      <table class="lines" aria-rowcount={total + 1} style={{ minWidth: `${allWidths + 320}px` }}>
        <thead>
          <tr>{["time", ...columns, "line"].map(head)}</tr>
        </thead>
        <tbody>
          <tr class="space" style={{ height: `${from * rowPx}px` }} />
          {Array.from({ length: to - from }, (_, at) => {
            const index = order?.[from + at] ?? from + at;
            const line = list.at(index);
            if (line === undefined) return null;
            return (
              <tr
                key={index}
                aria-rowindex={from + at + 2}
                class={opened.value === line ? "at" : ""}
                onClick={() => openRow(index)}
              >
                <td class="dim">{formatTime(line.ns, zone.value).slice(11)}</td>
                {columns.map((name) => (
                  <td key={name}>{(valueIn(line, name) ?? "").slice(0, 300)}</td>
                ))}
                <td>{(parsedOf(line).message || line.text).slice(0, 500)}</td>
              </tr>
            );
          })}
          <tr class="space" style={{ height: `${(total - to) * rowPx}px` }} />
        </tbody>
      </table>
    </div>
  );
}

/** The rows that a scrolled table has in view, and some around them. */
function viewOf(host: HTMLElement) {
  const rowPx = host.querySelector<HTMLElement>("tbody tr:not(.space)")?.offsetHeight || 24;
  const first = Math.max(0, Math.floor(host.scrollTop / rowPx) - aheadRows);
  return { first, count: Math.ceil(host.clientHeight / rowPx) + 2 * aheadRows, rowPx };
}

function ColumnPicker({ columns }: { readonly columns: readonly string[] }) {
  const names = [...labels.value, ...fields.value].map(({ name }) => name);
  return (
    <select
      class="field"
      aria-label="Add a column"
      onChange={(event) => {
        const { value } = event.currentTarget;
        if (value !== "") navigate({ cols: [...columns, value] }, "replace");
        event.currentTarget.value = "";
      }}
    >
      <option value="">Add a column…</option>
      {names
        .filter((name) => !columns.includes(name))
        .map((name) => (
          <option key={name}>{name}</option>
        ))}
    </select>
  );
}

/** Places of the lines in the order of a column; numbers by size. */
function sortedRows(sort: { name: string; down: boolean } | undefined): number[] {
  const list = source.peek();
  const indexes = Array.from({ length: list.count }, (_, index) => index);
  if (sort === undefined) return indexes;
  const { name, down } = sort;
  const values = indexes.map((index) => {
    const line = list.at(index);
    if (line === undefined) return "";
    return name === "time" ? line.ns : name === "line" ? line.text : (valueIn(line, name) ?? "");
  });
  const isNumeric = values.every(
    (value) => value === "" || !Number.isNaN(Number.parseFloat(value)),
  );
  const compare = (a: number, b: number) => {
    const [one, other] = [values[a] ?? "", values[b] ?? ""];
    if (isNumeric && name !== "time")
      return (Number.parseFloat(one) || 0) - (Number.parseFloat(other) || 0);
    return one < other ? -1 : one > other ? 1 : 0;
  };
  return indexes.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
}

function startDrag(event: PointerEvent, onWidth: (width: number) => void): void {
  const cell = (event.currentTarget as Element).closest("th");
  if (cell === null) return;
  event.preventDefault();
  const start = event.clientX - cell.offsetWidth;
  const move = ({ clientX }: PointerEvent) => onWidth(Math.max(40, clientX - start));
  addEventListener("pointermove", move);
  addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
}
