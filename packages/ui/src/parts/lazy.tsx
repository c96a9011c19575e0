import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { backoffMs } from "../api/errors.js";

interface LazyProps<Props> {
  readonly load: () => Promise<{ readonly default: ComponentType<Props> }>;
  readonly props: Props;
}

/** A part that is loaded when it is shown first. */
export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const part = useSignal<ComponentType<Props> | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    void loadPart(load, () => (problem.value = notLoaded)).then(
      (found) => (part.value = found.default),
    );
  }, [load]);
  const Part = part.value;
  if (Part !== undefined) return <Part {...props} />;
  return problem.value === "" ? null : <p class="nothing">{problem.value}</p>;
}

const notLoaded = "The server does not give this part of the page. Trying again.";

/** Loads a part of the page, however often it takes: the server may be away for a while. */
export async function loadPart<T>(load: () => Promise<T>, onFailure = () => {}): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await load();
    } catch {
      onFailure();
    }
    if (attempt > 0) await loadPageAgain();
    await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
  }
}

/** A page that was loaded again stays for this long, even if a part is missing. */
const minPageMs = 60_000;

/**
 * Loads the page again if the server answers but a part cannot be loaded. Browsers from before summer 2026 never retry a module that
 * failed (https://github.com/whatwg/html/pull/10327), and a newer server has other modules.
 */
async function loadPageAgain(): Promise<void> {
  const [begun] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  if (begun?.type === "reload" && performance.now() < minPageMs) return;
  const page = await fetch(document.baseURI, { method: "HEAD" }).catch(() => undefined);
  if (page?.ok === true) location.reload();
}
