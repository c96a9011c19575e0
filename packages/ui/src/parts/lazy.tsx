import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

/** A part that is loaded when it is shown first. */
export function Lazy({ load }: { readonly load: () => Promise<{ default: ComponentType }> }) {
  const part = useSignal<ComponentType | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    load().then(
      (found) => (part.value = found.default),
      () =>
        (problem.value =
          "This part could not be loaded. The server may have a newer version: load the page again."),
    );
  }, [load]);
  const Part = part.value;
  if (problem.value !== "") return <p class="nothing">{problem.value}</p>;
  return Part === undefined ? null : <Part />;
}
