import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Answer, answer, busy } from "../answer/run.js";
import { type Explanation, fetchExplanation, fetchHolding, type Holding } from "../api/stats.js";
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
  const before = useCost(draft.value);
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
      <Before {...before} />
      {answer.value?.text === draft.value.trim() && (
        <After found={answer.value} held={before.holding?.bytes} />
      )}
      <span class="keys">Enter runs · Shift+Enter new line · Ctrl+Space suggests</span>
    </div>
  );
}

interface BeforeCost {
  readonly holding: Holding | undefined;
  readonly explained: Explanation | undefined;
}

/** What the server says of a query before it runs. */
function useCost(text: string): BeforeCost {
  const state = useSignal<BeforeCost>({ holding: undefined, explained: undefined });
  const { from, to, tenant } = route.value;
  const ran = answer.value;
  useEffect(() => {
    const expr = tryParse(text);
    const log = expr === undefined ? undefined : logIn(expr);
    // While a query runs its lines come first; its answer asks again.
    if (log === undefined || busy.peek()) return;
    const asked = new AbortController();
    const timer = setTimeout(async () => {
      const { fromNs, toNs } = resolveRange({ from, to }, Date.now());
      const span = { startNs: String(fromNs), endNs: String(toNs) };
      const explained = await fetchExplanation(text, span, 1000, asked.signal);
      const holding =
        explained === undefined
          ? await fetchHolding(selectorText(log), span, asked.signal).catch(() => undefined)
          : sumOf(explained);
      if (!asked.signal.aborted) state.value = { holding, explained };
    }, askAfterMs);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [text, from, to, tenant, ran]);
  return state.value;
}

function sumOf({ parts }: Explanation): Holding {
  const sum = (of: (part: Explanation["parts"][number]) => number) =>
    parts.reduce((total, part) => total + of(part), 0);
  return {
    streams: sum((one) => one.streams),
    bytes: sum((one) => one.bytes),
    entries: sum((one) => one.entries),
  };
}

function Before({ holding, explained }: BeforeCost) {
  if (holding === undefined) return <span />;
  const toRead = explained?.parts.reduce((sum, { bytesToRead }) => sum + bytesToRead, 0) ?? 0;
  const refuses = explained?.parts.some(({ blocks, blocksToRead }) => blocksToRead < blocks);
  if (explained?.refusedBy) {
    return <span class="bad">The server will refuse this: {explained.refusedBy}</span>;
  }
  return (
    <span>
      Holds <b>{formatBytes(holding.bytes)}</b> in <b>{formatCount(holding.streams)}</b> streams,{" "}
      <b>{formatCount(holding.entries)}</b> lines
      {refuses && <>, will read about {formatBytes(toRead)}</>}
    </span>
  );
}

function After({ found, held = 0 }: { readonly found: Answer; readonly held: number | undefined }) {
  const open = useSignal(false);
  const { stats, tookMs } = found;
  const { bytes, skald } = stats;
  const share = held > 0 ? Math.min(1, bytes / held) : 0;
  const fromHeaders = bytes === 0 && stats.lines === 0 && (skald?.blocks.counted ?? 0) > 0;
  const text = fromHeaders ? (
    <>
      counted from headers in <b>{formatMs(tookMs)}</b>
    </>
  ) : (
    <>
      read <b>{formatBytes(bytes)}</b> {held > 0 && `(${Math.round(share * 100)} %) `}in{" "}
      <b>{formatMs(tookMs)}</b>
    </>
  );
  return (
    <span class="anchor cost">
      <span class="sep" />
      <span class="meter">
        <i style={{ width: `${share * 100}%` }} />
      </span>
      {skald === undefined ? (
        <span>{text}</span>
      ) : (
        <button
          class="plain"
          type="button"
          aria-expanded={open.value}
          onClick={() => (open.value = !open.value)}
        >
          {text}
        </button>
      )}
      {open.value && skald !== undefined && (
        <div class="menu" role="group" aria-label="Where the time went">
          {Object.entries(skald.phases).map(([name, value]) => (
            <div class="item" key={name}>
              {name}
              <span class="note">{formatMs(value)}</span>
            </div>
          ))}
          {Object.entries(skald.blocks).map(([name, value]) => (
            <div class="item" key={name}>
              blocks {name}
              <span class="note">{formatCount(value)}</span>
            </div>
          ))}
        </div>
      )}
    </span>
  );
}
