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
/** Pixels of a character at least, so that a row gets no more text than it can show. */
const leastCharPx = 5;

/**
 * A list of any number of lines with some 40 elements: rows that leave the view are filled again for those that enter it. All
 * rows have one height, or their measured heights where lines wrap.
 */
export class LineList {
  readonly element: HTMLDivElement;
  readonly #space: HTMLDivElement;
  /** The rows, one below the other, which are moved to their place together. */
  readonly #window: HTMLDivElement;
  readonly #events: ListEvents;
  /** Those in the page, in its order. */
  readonly #rows: Row[] = [];
  readonly #spare: Row[] = [];
  readonly #byIndex = new Map<number, Row>();
  #source: LineSource = { count: 0, at: () => undefined };
  #look: RowLook | undefined;
  #heights = new Heights(22);
  /** Where the list was scrolled to last, by itself or by somebody. */
  #top = 0;
  /** Pixels of the list, as it was drawn last. */
  #size = { width: 0, height: 0 };
  #at = -1;
  #picked: (index: number) => boolean = () => false;

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
    this.#space.setAttribute("role", "presentation");
    this.#window = document.createElement("div");
    this.#window.className = "window";
    this.#window.setAttribute("role", "rowgroup");
    this.#space.append(this.#window);
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

  /** Takes note that the source has more lines at its end, or others; `follow` shows its end. */
  grow(source: LineSource, follow: boolean): void {
    this.#source = source;
    this.#heights.grow(source.count);
    if (follow) this.#toEnd();
    else this.refresh();
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

  #toEnd(): void {
    this.#scrollToEnd();
    this.refresh();
    // Rows that wrap have their heights only now.
    if (this.#look?.wrap) {
      this.#scrollToEnd();
      this.draw();
    }
  }

  /** Before rows are filled: the layout that it asks for is then that of the height alone. */
  #scrollToEnd(): void {
    const height = this.#heights.topOf(this.#source.count);
    this.#space.style.height = `${height}px`;
    this.element.scrollTop = height;
    this.#top = this.element.scrollTop;
  }

  get atEnd(): boolean {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 4;
  }

  get rowsInView(): number {
    return Math.ceil(this.#size.height / this.#heights.rowHeight);
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
    const { scrollTop, clientWidth, clientHeight } = this.element;
    this.#size = { width: clientWidth, height: clientHeight };
    const { count } = this.#source;
    const first = Math.max(0, this.#heights.indexAt(scrollTop) - spareRows);
    let last = this.#heights.indexAt(scrollTop + clientHeight) + spareRows;
    last = Math.min(count - 1, last);
    // In the order of the page, so that where all rows are others none is moved.
    const free = this.#rows.filter(({ index }) => index < first || index > last);
    const moved = new Set<Row>();
    let taken = 0;
    for (let index = first; index <= last; index++) {
      if (this.#byIndex.has(index)) continue;
      const row = free[taken++] ?? this.#addRow();
      moved.add(row);
      this.#byIndex.delete(row.index);
      row.index = index;
      this.#byIndex.set(index, row);
      this.#fill(row);
    }
    for (const row of free.slice(taken)) this.#leave(row);
    this.#order(moved);
    if (this.#look?.wrap) this.#measure();
    this.#window.style.transform = `translateY(${this.#heights.topOf(first)}px)`;
    this.#space.style.height = `${this.#heights.topOf(count)}px`;
    if (count > 0) this.#events.onView(first, last);
  }

  /** Puts the elements in the order of their rows. The others than those that are told are in order already. */
  #order(moved: ReadonlySet<Row>): void {
    this.#rows.sort((a, b) => a.index - b.index);
    let after: Element | null = null;
    for (const row of this.#rows.toReversed()) {
      const { element } = row;
      const isThere = element.isConnected && element.nextElementSibling === after;
      if (moved.has(row) && !isThere) this.#window.insertBefore(element, after);
      after = element;
    }
  }

  #measure(): void {
    for (const row of this.#byIndex.values()) {
      this.#heights.set(row.index, row.element.offsetHeight);
    }
  }

  #addRow(): Row {
    const row = this.#spare.pop() ?? makeRow();
    this.#rows.push(row);
    return row;
  }

  #leave(row: Row): void {
    this.#byIndex.delete(row.index);
    this.#rows.splice(this.#rows.indexOf(row), 1);
    row.index = -1;
    this.#spare.push(row);
    row.element.remove();
  }

  #fill(row: Row): void {
    if (this.#look === undefined) return;
    const chars = this.#look.wrap ? Number.POSITIVE_INFINITY : this.#size.width / leastCharPx;
    fillRow(row, this.#source.at(row.index), this.#look, chars);
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
    // It is drawn there already, where the list scrolled by itself.
    if (scrollTop === this.#top) return;
    const isUp = scrollTop < this.#top;
    this.#top = scrollTop;
    this.draw();
    this.#events.onScroll(isUp && !this.atEnd);
  }

  #onClick(event: MouseEvent): void {
    const element = (event.target as Element).closest(".row");
    const row = this.#rows.find((one) => one.element === element);
    if (row === undefined) return;
    const selection = getSelection();
    if (selection !== null && !selection.isCollapsed && !event.shiftKey) return;
    const toggle = event.ctrlKey || event.metaKey;
    this.#events.onPick(row.index, { extend: event.shiftKey, toggle });
  }
}
