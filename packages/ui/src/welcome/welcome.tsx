import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { addressOf, call } from "../api/client.js";
import { fetchLabels } from "../api/fields.js";
import { beginWithData } from "../explore/start.js";
import { onTabKey } from "../parts/tabs.js";
import { copy } from "../parts/toast.js";
import { config } from "../state/config.js";
import { tenant } from "../state/explore.js";
import { sendSample } from "./sample.js";
import { waysFor } from "./ways.js";

const askEveryMs = 2000;
const lookBackNs = 24n * 3600n * 1_000_000_000n;

/** What a server without logs shows: how to send some. It opens Explore by itself when the first line comes. */
export default function Welcome() {
  const address = addressOf("").href.replace(/\/$/, "");
  const ways = waysFor(address, tenant.value);
  const way = useSignal(0);
  const sent = useSignal<number | undefined>(undefined);
  const problem = useSignal("");
  const isReady = useSignal(false);
  useEffect(() => {
    const askReady = () =>
      call("ready").then(
        () => (isReady.value = true),
        () => (isReady.value = false),
      );
    void askReady();
    const timer = setInterval(async () => {
      void askReady();
      // The sample is shown once all of it is there.
      if (sent.peek() !== undefined) return;
      const now = BigInt(Date.now()) * 1_000_000n;
      const span = { startNs: String(now - lookBackNs), endNs: String(now + 1_000_000_000n) };
      const labels = await fetchLabels(undefined, span).catch(() => []);
      if (labels.length > 0 && sent.peek() === undefined) await beginWithData();
    }, askEveryMs);
    return () => clearInterval(timer);
  }, []);
  const fill = async () => {
    problem.value = "";
    try {
      await sendSample(Date.now(), (share) => (sent.value = share));
      await beginWithData();
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
      sent.value = undefined;
    }
  };
  const [, text = ""] = ways[way.value] ?? [];
  return (
    <main class="page">
      <div class="narrow welcome">
        <h1>No logs yet. Send the first line.</h1>
        <p class="lead">
          Skald listens here. Point any agent that speaks to Loki or OpenTelemetry at this address;
          lines appear on this page as they come.
        </p>
        <div class="ways" role="tablist" aria-label="Ways to send" onKeyDown={onTabKey}>
          {ways.map(([name], at) => (
            <button
              key={name}
              class={`button small${way.value === at ? " on" : ""}`}
              type="button"
              role="tab"
              aria-selected={way.value === at}
              tabIndex={way.value === at ? 0 : -1}
              onClick={() => (way.value = at)}
            >
              {name}
            </button>
          ))}
        </div>
        <div class="code" role="tabpanel" aria-label={ways[way.value]?.[0]}>
          {text}
          <button class="button small" type="button" onClick={() => void copy(text, "the example")}>
            Copy
          </button>
        </div>
        <button
          class="button primary"
          type="button"
          id="fill"
          disabled={sent.value !== undefined}
          onClick={() => void fill()}
        >
          {sent.value === undefined
            ? "Fill with sample logs"
            : `Sending ${Math.round(sent.value * 100)} %`}
        </button>{" "}
        <span class="dim">
          10,000 lines of six applications, with the label <span class="mono">sample="true"</span>
          {config.value.deletes && "; one click removes them"}
        </span>
        {problem.value !== "" && (
          <p class="bad" role="alert">
            {problem.value}
          </p>
        )}
        <div class="wait" role="status">
          <i aria-hidden="true" />
          Waiting for the first line
          <span class="dim aside">
            {isReady.value ? "This server is ready" : "This server is not ready yet"}
          </span>
        </div>
      </div>
    </main>
  );
}
