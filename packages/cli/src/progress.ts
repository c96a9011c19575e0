export interface ProgressOutput {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

const barWidth = 30;
/** Parts of the whole after which something new is shown: on a terminal, and in lines. */
const terminalSteps = 1000;
const lineSteps = 10;

/** Shows how far a long work is: a bar on a terminal, a line for every tenth elsewhere. */
export class Progress {
  readonly #out: ProgressOutput;
  readonly #totalBytes: number;
  readonly #files: number;
  #doneBytes = 0;
  #doneFiles = 0;
  #shown = 0;

  constructor(out: ProgressOutput, total: { readonly bytes: number; readonly files: number }) {
    this.#out = out;
    this.#totalBytes = total.bytes;
    this.#files = total.files;
  }

  add(bytes: number): void {
    this.#doneBytes = Math.min(this.#doneBytes + bytes, this.#totalBytes);
    this.#show();
  }

  /** A file is done; `restBytes` of it were not counted yet. */
  addFile(restBytes: number): void {
    this.#doneFiles++;
    this.add(restBytes);
  }

  /** Takes the bar away. */
  finish(): void {
    if (this.#out.isTTY === true) this.#out.write("\r\x1b[K");
  }

  #show(): void {
    const part = this.#totalBytes === 0 ? 1 : this.#doneBytes / this.#totalBytes;
    const isTerminal = this.#out.isTTY === true;
    const step = Math.floor(part * (isTerminal ? terminalSteps : lineSteps));
    if (step <= this.#shown) return;
    this.#shown = step;
    const percent = `${Math.floor(part * 100)} %`;
    const files = `${this.#doneFiles} of ${this.#files} files`;
    const bytes = `${sizeText(this.#doneBytes)} of ${sizeText(this.#totalBytes)}`;
    if (!isTerminal) {
      this.#out.write(`${percent}, ${files}, ${bytes}\n`);
      return;
    }
    const bar = "#".repeat(Math.floor(part * barWidth)).padEnd(barWidth, ".");
    this.#out.write(`\r\x1b[K[${bar}] ${percent}, ${files}, ${bytes}`);
  }
}

/** `1.5 GiB` */
export function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
