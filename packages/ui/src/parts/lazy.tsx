import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

interface LazyProps<Props> {
  readonly load: () => Promise<{ readonly default: ComponentType<Props> }>;
  readonly props: Props;
}

/** A part that is loaded when it is shown first. */
export function Lazy<Props extends object>({ load, props }: LazyProps<Props>) {
  const part = useSignal<ComponentType<Props> | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    load().then(
      (found) => (part.value = found.default),
      () => (problem.value = "This part could not be loaded. Load the page again."),
    );
  }, [load]);
  const Part = part.value;
  if (problem.value !== "") return <p class="nothing">{problem.value}</p>;
  return Part === undefined ? null : <Part {...props} />;
}
