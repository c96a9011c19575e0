import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Answer, answer } from "../answer/run.js";
import { fetchHolding, type Holding } from "../api/stats.js";
import { formatBytes, formatCount, formatMs } from "../parts/format.js";
import { logIn, selectorText, tryParse } from "../query/derive.js";
import type { Problem } from "../query/problem.js";
import { draft, route } from "../state/explore.js";
import { resolveRange } from "../state/range.js";

interface CostProps {
  readonly problem: Problem | undefined;
  readonly onFix: (text: string) => void;
}

const askAfterMs = 200;

/** The line below the query: what is wrong with it, or what it holds, will read and has read. */
export function Cost({ problem, onFix }: CostProps) {
  const holding = useHolding(draft.value);
  if (problem?.kind === "unfinished") {
    return (
      <div class="cost" id="problem">
        <span>{problem.says}</span>
        <span class="keys">Last good answer stays below</span>
      </div>
    );
  }
  if (problem !== undefined) {
    const where =
      problem.line > 1 ? `line ${problem.line}, col ${problem.column}` : `col ${problem.column}`;
    const { fix } = problem;
    return (
      <div class="cost" id="problem">
        <span class="bad">
          {where}: {problem.says}
        </span>
        {fix !== undefined && (
          <button class="link" type="button" id="fix" onClick={() => onFix(fix.text)}>
            {fix.label}
          </button>
        )}
        <span class="keys">Last good answer stays below</span>
      </div>
    );
  }
  return (
    <div class="cost" id="problem">
      <Before holding={holding} />
      {answer.value?.text === draft.value.trim() && (
        <After found={answer.value} held={holding?.bytes} />
      )}
      <span class="keys">Enter runs · Shift+Enter new line · Ctrl+Space suggests</span>
    </div>
  );
}

/** What the streams of a query hold, before it runs. */
function useHolding(text: string): Holding | undefined {
  const state = useSignal<Holding | undefined>(undefined);
  const { from, to, tenant } = route.value;
  const ran = answer.value;
  useEffect(() => {
    const expr = tryParse(text);
    const log = expr === undefined ? undefined : logIn(expr);
    if (log === undefined) return;
    const asked = new AbortController();
    const timer = setTimeout(async () => {
      const { fromNs, toNs } = resolveRange({ from, to }, Date.now());
      const span = { startNs: String(fromNs), endNs: String(toNs) };
      const holding = await fetchHolding(selectorText(log), span, asked.signal).catch(
        () => undefined,
      );
      if (!asked.signal.aborted) state.value = holding;
    }, askAfterMs);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [text, from, to, tenant, ran]);
  return state.value;
}

function Before({ holding }: { readonly holding: Holding | undefined }) {
  if (holding === undefined) return <span />;
  return (
    <span>
      Holds <b>{formatBytes(holding.bytes)}</b> in <b>{formatCount(holding.streams)}</b> streams,{" "}
      <b>{formatCount(holding.entries)}</b> lines
    </span>
  );
}

function After({ found, held = 0 }: { readonly found: Answer; readonly held: number | undefined }) {
  const { stats, tookMs } = found;
  const { bytes } = stats;
  const share = held > 0 ? Math.min(1, bytes / held) : 0;
  const isCounted = bytes === 0 && stats.lines === 0 && held > 0;
  return (
    <span class="anchor cost">
      <span class="sep" />
      <span class="meter">
        <i style={{ width: `${share * 100}%` }} />
      </span>
      {isCounted ? (
        <span>
          counted from headers in <b>{formatMs(tookMs)}</b>
        </span>
      ) : (
        <span>
          read <b>{formatBytes(bytes)}</b> {held > 0 && `(${Math.round(share * 100)} %) `}in{" "}
          <b>{formatMs(tookMs)}</b>
        </span>
      )}
    </span>
  );
}
