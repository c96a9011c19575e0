import { useSignal } from "@preact/signals";
import { type Answer, answer, percentOf, progress } from "../answer/ask.js";
import { busy } from "../answer/run.js";
import { bytesToRead } from "../api/stats.js";
import { formatBytes, formatCount, formatMs } from "../parts/format.js";
import type { Problem } from "../query/problem.js";
import { draft } from "../state/explore.js";
import { asksAgain, cost, type KnownCost } from "./cost-state.js";

interface CostProps {
  readonly problem: Problem | undefined;
  readonly onFix: (text: string) => void;
}

/** The line below the query: what is wrong with it, or what it holds, will read and has read. */
export function Cost({ problem, onFix }: CostProps) {
  const before = cost.value;
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
      <Before {...before} />{" "}
      {busy.value && progress.value !== undefined ? (
        <span id="progress">
          <b>{percentOf(progress.value)} %</b> of about {formatBytes(progress.value.bytes)} done
        </span>
      ) : null}
      {!busy.value && answer.value?.text === draft.value.trim() && (
        <After found={answer.value} held={before.holding?.bytes} />
      )}
      <span class="keys">Enter runs · Shift+Enter new line · Ctrl+Space suggests</span>
    </div>
  );
}

function Before({ holding, explained }: KnownCost) {
  if (holding === undefined) return <span />;
  const toRead = explained === undefined ? 0 : bytesToRead(explained);
  if (asksAgain.value) {
    return (
      <span class="bad" role="status">
        About {formatBytes(toRead)}. Narrow the range, or press again
      </span>
    );
  }
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
