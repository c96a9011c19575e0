import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { answer } from "../answer/ask.js";
import { currentTenant, isAbort } from "../api/client.js";
import type { Span } from "../api/fields.js";
import { Dialog } from "../parts/dialog.js";
import { formatBytes, formatWhole } from "../parts/format.js";
import { copy } from "../parts/toast.js";
import { config } from "../state/config.js";
import { route } from "../state/explore.js";
import { Download, type DownloadFormat, type Progress } from "./run.js";

const formats: readonly (readonly [DownloadFormat, string])[] = [
  ["text", "Text, a line each"],
  ["jsonl", "JSON, an object each line"],
  ["csv", "CSV: time, labels, the columns of the table, line"],
  ["parquet", "Parquet, made by the server"],
];

/** Only some servers make Parquet. */
function isOffered([name]: (typeof formats)[number]): boolean {
  return name !== "parquet" || config.value.parquet;
}

/** Saves all lines that match, not only those on show. */
export default function DownloadDialog({ onClose }: { readonly onClose: () => void }) {
  const format = useSignal<DownloadFormat>("text");
  const progress = useSignal<Progress | undefined>(undefined);
  const problem = useSignal("");
  const running = useSignal<AbortController | undefined>(undefined);
  /** What goes on after an error or Cancel. */
  const begun = useRef<Download>(undefined);
  // A list that grows, or another answer, does not change what is saved.
  const { current: found } = useRef(answer.peek());
  if (found?.log === undefined) return null;
  const { text: query, span } = found;
  const start = async () => {
    const columns = route.peek().cols;
    begun.current ??= new Download({ query, span, format: format.value, columns });
    const controller = new AbortController();
    running.value = controller;
    problem.value = "";
    try {
      await begun.current.run(controller.signal, (now) => {
        progress.value = now;
      });
      begun.current = undefined;
    } catch (error) {
      problem.value = isAbort(error)
        ? "Cancelled."
        : error instanceof Error
          ? error.message
          : String(error);
    }
    running.value = undefined;
  };
  const keep = async () => {
    await begun.current?.finish();
    begun.current = undefined;
    onClose();
  };
  const close = () => {
    running.peek()?.abort();
    onClose();
  };
  const now = progress.value;
  const isPart = problem.value !== "" && begun.current !== undefined && (now?.bytes ?? 0) > 0;
  const command = commandFor(query, span, format.value);
  return (
    <Dialog title="Download all lines that match" onClose={close}>
      <p class="mono">{query}</p>
      <fieldset disabled={running.value !== undefined || isPart}>
        <legend class="hidden">Format</legend>
        {formats.filter(isOffered).map(([name, label]) => (
          <p key={name}>
            <label>
              <input
                type="radio"
                name="format"
                checked={format.value === name}
                onChange={() => {
                  format.value = name;
                  begun.current = progress.value = undefined;
                }}
              />{" "}
              {label}
            </label>
          </p>
        ))}
      </fieldset>
      <p role="status" aria-live="polite" id="downloaded">
        {now !== undefined && said(now)}
      </p>
      {problem.value !== "" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      <div class="ways">
        {running.value !== undefined ? (
          <button class="button" type="button" onClick={() => running.peek()?.abort()}>
            Cancel
          </button>
        ) : (
          <button class="button primary" type="button" onClick={() => void start()}>
            {isPart ? "Go on" : "Download"}
          </button>
        )}
        {isPart && (
          <button class="button" type="button" onClick={() => void keep()}>
            Keep what came
          </button>
        )}
      </div>
      <p class="dim">More than 1 GB, or in a script:</p>
      <p class="mono dim">{command}</p>
      <button class="button small" type="button" onClick={() => void copy(command, "the command")}>
        Copy
      </button>
    </Dialog>
  );
}

function said({ lines, bytes, share, finished, crowded }: Progress): string {
  const missing = crowded
    ? " Some lines of one nanosecond are missing: the server gives no more at once."
    : "";
  const state = finished ? "done." : `${Math.round(share * 100)} % of the range.`;
  return `${formatWhole(lines)} lines, ${formatBytes(bytes)}: ${state}${missing}`;
}

/** The same from a shell. */
function commandFor(query: string, { startNs, endNs }: Span, format: DownloadFormat): string {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const address = new URL("../", document.baseURI).href.replace(/\/$/, "");
  const tenant = currentTenant() === "" ? "" : ` --org-id ${quoted(currentTenant())}`;
  const name = `skald.${format === "text" ? "log" : format}`;
  return `skald export ${quoted(query)} --from ${startNs} --to ${endNs} --addr ${address}${tenant} -o ${name}`;
}
