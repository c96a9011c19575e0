import { effect, signal } from "@preact/signals";
import { printQuery } from "@skald/logql/syntax";
import { isAbort } from "../api/client.js";
import { type Field, fetchFields, fetchLabels, type LabelInfo } from "../api/fields.js";
import { selectorText } from "../query/derive.js";
import { answer } from "./ask.js";

/** Labels and fields of the last answer. */
export const labels = signal<readonly LabelInfo[]>([]);
export const fields = signal<readonly Field[]>([]);
/** Whether the panel is open as a sheet on a phone. */
export const sheetOpen = signal(false);

const afterMs = 300;
const sampleLines = 500;

/** Asks for labels and fields a moment after each answer. */
export function startPanel(): void {
  let asked: AbortController | undefined;
  effect(() => {
    const found = answer.value;
    asked?.abort();
    if (found?.log === undefined) return;
    const { log, span } = found;
    asked = new AbortController();
    const { signal } = asked;
    setTimeout(() => {
      if (!signal.aborted) void ask(selectorText(log), printQuery(log), span, signal);
    }, afterMs);
  });
}

async function ask(
  selector: string,
  query: string,
  span: { startNs: string; endNs: string },
  signal: AbortSignal,
): Promise<void> {
  const keep = async <T>(into: { value: T }, found: Promise<T>) => {
    try {
      into.value = await found;
    } catch (error) {
      // The panel keeps what it had; the list says what is wrong.
      if (!isAbort(error)) return;
    }
  };
  await Promise.all([
    keep(labels, fetchLabels(selector, span, signal)),
    keep(fields, fetchFields(query, span, { lineLimit: sampleLines, signal })),
  ]);
}
