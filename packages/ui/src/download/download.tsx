import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { answer } from "../answer/ask.js";
import { isAbort } from "../api/client.js";
import { Dialog } from "../parts/dialog.js";
import { formatBytes, formatWhole } from "../parts/format.js";
import { type DownloadFormat, download, type Progress } from "./run.js";

const formats: readonly (readonly [DownloadFormat, string])[] = [
  ["text", "Text, a line each"],
  ["jsonl", "JSON, an object each line"],
  ["csv", "CSV: time, labels, line"],
  ["parquet", "Parquet, made by the server"],
];

/** Saves all lines that match, not only those on show. */
export default function DownloadDialog({ onClose }: { readonly onClose: () => void }) {
  const format = useSignal<DownloadFormat>("text");
  const progress = useSignal<Progress | undefined>(undefined);
  const problem = useSignal("");
  const running = useRef<AbortController>(undefined);
  const found = answer.value;
  const start = async () => {
    if (found?.log === undefined) return;
    running.current = new AbortController();
    problem.value = "";
    try {
      const { signal } = running.current;
      await download(found.text, found.span, {
        format: format.value,
        signal,
        done: progress.peek()?.slices ?? 0,
        onProgress: (now) => (progress.value = now),
      });
    } catch (error) {
      if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
    }
    running.current = undefined;
  };
  const close = () => {
    running.current?.abort();
    onClose();
  };
  const now = progress.value;
  const isRunning = now !== undefined && !now.finished && problem.value === "";
  return (
    <Dialog title="Download all lines that match" onClose={close}>
      <p class="mono">{found?.text}</p>
      <fieldset disabled={isRunning}>
        <legend class="hidden">Format</legend>
        {formats.map(([name, label]) => (
          <p key={name}>
            <label>
              <input
                type="radio"
                name="format"
                checked={format.value === name}
                onChange={() => (format.value = name)}
              />{" "}
              {label}
            </label>
          </p>
        ))}
      </fieldset>
      <p role="status" aria-live="polite">
        {now !== undefined &&
          `${formatWhole(now.lines)} lines, ${formatBytes(now.bytes)}, ${Math.round(now.share * 100)} %${now.finished ? ": done" : ""}`}
        {now?.note}
      </p>
      {problem.value !== "" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      <p class="mono dim">{commandFor(found?.text ?? "", found?.span)}</p>
      <div class="ways">
        {isRunning ? (
          <button class="button" type="button" onClick={() => running.current?.abort()}>
            Cancel
          </button>
        ) : (
          <button class="button primary" type="button" onClick={() => void start()}>
            {problem.value === "" ? "Download" : "Try again"}
          </button>
        )}
      </div>
    </Dialog>
  );
}

/** The same from a shell. */
function commandFor(query: string, span: { startNs: string; endNs: string } | undefined): string {
  const quoted = `'${query.replaceAll("'", `'\\''`)}'`;
  const range = span === undefined ? "" : ` --from ${span.startNs} --to ${span.endNs}`;
  return `curl -G ${new URL("../loki/api/v1/query_range", document.baseURI).href} --data-urlencode query=${quoted}${range
    .replace(" --from ", " -d start=")
    .replace(" --to ", " -d end=")} -d limit=5000`;
}
