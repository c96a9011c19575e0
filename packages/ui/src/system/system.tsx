import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  fetchBuild,
  fetchConfigDiff,
  fetchLimits,
  fetchServices,
  rings,
  type Service,
} from "../api/system.js";
import { config } from "../state/config.js";
import { Deletes } from "./deletes.js";
import { Rates } from "./rates.js";
import { RingView } from "./ring.js";

/** What this process is and does: services, rings, rates, deletes, limits and configuration. */
export default function System() {
  return (
    <main class="page">
      <h1>System</h1>
      <Build />
      <h2>Rates</h2>
      <Rates />
      <h2>Services</h2>
      <Services />
      <h2>Rings</h2>
      <div class="rings">
        {ringsHere().map(([name, path, targets]) => (
          <RingView key={path} {...{ name, path, targets }} />
        ))}
      </div>
      {config.value.deletes ? (
        <Deletes />
      ) : (
        <section>
          <h2>Deletes</h2>
          <p class="dim">Off. The key compactor.retention_enabled turns them on.</p>
        </section>
      )}
      <h2>Limits of this tenant</h2>
      <Text load={fetchLimits} label="Limits" />
      <h2>Configuration that differs from the defaults</h2>
      <Text load={fetchConfigDiff} label="Configuration" />
    </main>
  );
}

/** The rings of the cluster, once it is known whether patterns have one. */
function ringsHere() {
  const { version, patterns } = config.value;
  if (version === "") return [];
  return rings.filter(([, path]) => patterns || path !== "pattern/ring");
}

/** The answer to a question that is asked once: null while it is on its way, undefined where another process has it. */
function useAnswer<T>(load: () => Promise<T | undefined>) {
  const found = useSignal<T | undefined | null>(null);
  const problem = useSignal("");
  useEffect(() => {
    load().then(
      (answer) => (found.value = answer),
      (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
    );
  }, []);
  return { found: found.value, problem: problem.value };
}

function Build() {
  const { found } = useAnswer(fetchBuild);
  const { version, targets } = config.value;
  return (
    <p class="dim">
      {version !== "" && `Skald ${version}. `}
      {found && `Speaks as Loki ${found.version ?? ""}, on ${found.goVersion ?? ""}. `}
      {targets.length > 0 && `Targets: ${targets.join(", ")}.`}
    </p>
  );
}

function Services() {
  const { found, problem } = useAnswer<readonly Service[]>(fetchServices);
  if (problem !== "") return <p class="bad">{problem}</p>;
  return (
    <p class="ways">
      {found?.map(({ name, state }) => (
        <span class={`state ${state === "Running" ? "ok" : "warn"}`} key={name}>
          {name}: {state.toLowerCase()}
        </span>
      ))}
    </p>
  );
}

function Text({
  load,
  label,
}: {
  readonly load: () => Promise<string | undefined>;
  readonly label: string;
}) {
  const { found, problem } = useAnswer(load);
  if (problem !== "") return <p class="bad">{problem}</p>;
  if (found === undefined) return <p class="dim">Another process of the cluster has this.</p>;
  return (
    <details>
      <summary>{label}</summary>
      <div class="code">{found}</div>
    </details>
  );
}
