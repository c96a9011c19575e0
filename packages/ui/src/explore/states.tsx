import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { answer } from "../answer/ask.js";
import { cancel, setRange, trouble } from "../answer/run.js";
import { copy } from "../parts/toast.js";
import { config } from "../state/config.js";
import { route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";

/** What is wrong with the answer, and what happens next. */
export function Strip() {
  const found = trouble.value;
  const left = useSignal(0);
  useEffect(() => {
    if (found?.retryMs === undefined) return;
    const until = performance.now() + found.retryMs;
    const tick = () => {
      left.value = Math.max(0, Math.ceil((until - performance.now()) / 1000));
    };
    tick();
    const timer = setInterval(tick, 500);
    return () => clearInterval(timer);
  }, [found]);
  if (found === undefined) return null;
  const isTold = found.detail !== "" && found.detail !== found.title;
  return (
    <div class="strip" role="alert">
      <span class="grow">
        <b>{found.title}</b> {found.retryMs !== undefined && `In ${left.value} s. `}
        {isTold && <span class="dim">{found.detail}</span>}
      </span>
      {(found.status === 401 || found.status === 403) && config.value.multiTenant && (
        <button
          class="button small"
          type="button"
          onClick={() => document.getElementById("tenant")?.click()}
        >
          Choose a tenant
        </button>
      )}
      {found.status === 504 && (
        <button class="button small" type="button" onClick={narrow}>
          Only the newest quarter
        </button>
      )}
      <button
        class="button small"
        type="button"
        onClick={() => void copy(`${found.title}\n${found.detail}`, "the error")}
      >
        Copy
      </button>
      {found.retryMs !== undefined && (
        <button class="button small" type="button" onClick={cancel}>
          Cancel
        </button>
      )}
    </div>
  );
}

/** The last quarter of the range, for a query that took too long. */
function narrow(): void {
  const { fromNs, toNs } = resolveRange(route.peek(), Date.now());
  setRange({ from: String(toNs - (toNs - fromNs) / 4n), to: String(toNs) });
}

/** What the server says is missing in the answer, or was different from what was asked. */
export function Missing() {
  const warnings = answer.value?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <div class="strip" role="status">
      <span class="grow">
        <b>Not all is here.</b> {warnings.join(" ")}
      </span>
    </div>
  );
}
