import type { Line } from "../api/lines.js";
import { Heights } from "./heights.js";
import { fillRow, makeRow, type Row, type RowLook } from "./row.js";

/** Lines by place; undefined for one that is not held. */
export interface LineSource {
  readonly count: number;
  at(index: number): Line | undefined;
}

export interface ListEvents {
  /** A row was chosen, with the keys that were held. */
  onPick(index: number, how: { readonly extend: boolean; readonly toggle: boolean }): void;
  /** Rows came into view; the last index may be the end of what is held. */
  onView(first: number, last: number): void;
  /** Somebody scrolled; `up`: away from the end. */
  onScroll(up: boolean): void;
}

const spareRows = 6;

/**
 * A list of any number of lines with some 40 elements: rows that leave the view are filled again for those that enter it. All
 * rows have one height, or their measured heights where lines wrap.
 */
export class LineList {
  readonly element: HTMLDivElement;
  readonly #space: HTMLDivElement;
  readonly #events: ListEvents;
  readonly #rows: Row[] = [];
  readonly #byIndex = new Map<number, Row>();
  #source: LineSource = { count: 0, at: () => undefined };
  #look: RowLook | undefined;
  #heights = new Heights(22);
  /** Where the list was scrolled to last, by itself or by somebody. */
  #top = 0;
  #at = -1;
  #picked: (index: number) => boolean = () => false;
  /** Rows that were filled since the page was opened; a test reads it. */
  filled = 0;

  constructor(events: ListEvents) {
    this.#events = events;
    this.element = document.createElement("div");
    this.element.className = "list";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "grid");
    this.element.setAttribute("aria-label", "Lines");
    this.element.setAttribute("aria-colcount", "4");
    this.#space = document.createElement("div");
    this.#space.className = "space";
    this.#space.setAttribute("role", "rowgroup");
    this.element.append(this.#space);
    this.element.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    this.element.addEventListener("click", (event) => this.#onClick(event));
  }

  /** Shows other lines from the top. */
  set(source: LineSource, look: RowLook): void {
    this.#source = source;
    this.#at = -1;
    this.element.scrollTop = 0;
    this.setLook(look);
  }

  /** Draws the same lines in another way. */
  setLook(look: RowLook): void {
    this.#look = look;
    this.element.classList.toggle("wrap", look.wrap);
    const top = this.#heights.indexAt(this.element.scrollTop);
    this.#heights = new Heights(this.#rowHeight(), look.wrap ? this.#source.count : undefined);
    this.element.scrollTop = this.#heights.topOf(top);
    this.#top = this.element.scrollTop;
    this.refresh();
  }

  /** Takes note that the list has another size, which may come with another height of rows. */
  resize(): void {
    if (this.#look !== undefined && this.#rowHeight() !== this.#heights.rowHeight) {
      this.setLook(this.#look);
    } else this.refresh();
  }

  #rowHeight(): number {
    return Number.parseInt(getComputedStyle(this.element).getPropertyValue("--row"), 10) || 22;
  }

  /** Takes note that the source has more lines at its end, or others. */
  grow(source: LineSource = this.#source): void {
    this.#source = source;
    this.#heights.grow(source.count);
    this.refresh();
  }

  /** Marks the row that is current, and those that are picked. */
  mark(at: number, picked: (index: number) => boolean): void {
    this.#at = at;
    this.#picked = picked;
    for (const row of this.#byIndex.values()) this.#markRow(row);
    if (at >= 0) this.element.setAttribute("aria-activedescendant", `row-${at}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Scrolls as little as is needed to show a row. */
  reveal(index: number): void {
    const top = this.#heights.topOf(index);
    const height = this.#heights.heightOf(index);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + height > scrollTop + clientHeight)
      this.element.scrollTop = top + height - clientHeight;
    this.refresh();
  }

  toEnd(): void {
    this.element.scrollTop = this.element.scrollHeight;
    this.#top = this.element.scrollTop;
    this.refresh();
  }

  get atEnd(): boolean {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 4;
  }

  get rowsInView(): number {
    return Math.ceil(this.element.clientHeight / this.#heights.rowHeight);
  }

  /** Fills all rows in view anew. */
  refresh(): void {
    this.#byIndex.clear();
    for (const row of this.#rows) row.index = -1;
    this.element.setAttribute("aria-rowcount", String(this.#source.count));
    this.draw();
  }

  /** Fills the rows that came into view, and gives them their places. */
  draw(): void {
    const { scrollTop, clientHeight } = this.element;
    const { count } = this.#source;
    const first = Math.max(0, this.#heights.indexAt(scrollTop) - spareRows);
    let last = this.#heights.indexAt(scrollTop + clientHeight) + spareRows;
    last = Math.min(count - 1, last);
    const free = this.#rows.filter(({ index }) => index < first || index > last);
    for (let index = first; index <= last; index++) {
      if (this.#byIndex.has(index)) continue;
      const row = free.pop() ?? this.#addRow();
      this.#byIndex.delete(row.index);
      row.index = index;
      this.#byIndex.set(index, row);
      this.#fill(row);
    }
    for (const row of free) {
      if (row.index >= 0) this.#byIndex.delete(row.index);
      row.index = -1;
      row.element.hidden = true;
    }
    this.#order();
    if (this.#look?.wrap) this.#measure();
    for (const row of this.#byIndex.values()) {
      row.element.style.transform = `translateY(${this.#heights.topOf(row.index)}px)`;
    }
    this.#space.style.height = `${this.#heights.topOf(count)}px`;
    if (count > 0) this.#events.onView(first, last);
  }

  /** Puts the elements in the order of their rows, which is the one that screen readers read them in. */
  #order(): void {
    this.#rows.sort((a, b) => a.index - b.index);
    let before: Element | null = null;
    for (const { element } of this.#rows) {
      const next: Element | null =
        before === null ? this.#space.firstElementChild : before.nextElementSibling;
      if (next !== element) this.#space.insertBefore(element, next);
      before = element;
    }
  }

  #measure(): void {
    for (const row of this.#byIndex.values()) {
      this.#heights.set(row.index, row.element.offsetHeight);
    }
  }

  #addRow(): Row {
    const row = makeRow();
    this.#rows.push(row);
    this.#space.append(row.element);
    return row;
  }

  #fill(row: Row): void {
    if (this.#look === undefined) return;
    this.filled++;
    fillRow(row, this.#source.at(row.index), this.#look);
    row.element.hidden = false;
    row.element.id = `row-${row.index}`;
    row.element.setAttribute("aria-rowindex", String(row.index + 1));
    this.#markRow(row);
  }

  #markRow({ element, index }: Row): void {
    element.classList.toggle("at", index === this.#at);
    element.classList.toggle("picked", this.#picked(index));
    element.setAttribute("aria-selected", String(index === this.#at || this.#picked(index)));
  }

  #onScroll(): void {
    const { scrollTop } = this.element;
    const isUp = scrollTop < this.#top;
    this.#top = scrollTop;
    this.draw();
    this.#events.onScroll(isUp && !this.atEnd);
  }

  #onClick(event: MouseEvent): void {
    const element = (event.target as Element).closest(".row");
    const row = this.#rows.find((one) => one.element === element);
    if (row === undefined || row.index < 0) return;
    const selection = getSelection();
    if (selection !== null && !selection.isCollapsed && !event.shiftKey) return;
    const toggle = event.ctrlKey || event.metaKey;
    this.#events.onPick(row.index, { extend: event.shiftKey, toggle });
  }
}
