import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { cancel, trouble } from "../answer/run.js";
import { copy } from "../parts/toast.js";

/** What is wrong with the answer, and what happens next. */
export function Strip() {
  const found = trouble.value;
  const left = useSignal(0);
  useEffect(() => {
    if (found?.retryMs === undefined) return;
    const until = Date.now() + found.retryMs;
    const tick = () => {
      left.value = Math.max(0, Math.ceil((until - Date.now()) / 1000));
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
