import { useSignal } from "@preact/signals";
import { formatMatcher, type Matcher } from "@skald/model";
import { useEffect, useRef } from "preact/hooks";
import { isAbort } from "../api/client.js";
import { fetchLines, type Line } from "../api/lines.js";
import { keyOf } from "./paging.js";
import { parsedOf } from "./row.js";

const around = 25;
const hour = 3_600_000_000_000n;
const windowMax = 24n * hour;
/** Labels by which one stream of a program becomes several: off, or the line before is often missing. */
const levelLike = /^(?:level|lvl|severity|detected_level|stream|filename)$/i;

/** The lines before and after one in its stream. */
export function Context({ line }: { readonly line: Line }) {
  const labels = Object.entries(line.stream.labels);
  const off = useSignal<ReadonlySet<string>>(
    new Set(
      labels.map(([name]) => name).filter((name) => labels.length > 1 && levelLike.test(name)),
    ),
  );
  const before = useSignal<readonly Line[]>([]);
  const after = useSignal<readonly Line[]>([]);
  const counts = useSignal({ before: around, after: around });
  const find = useSignal("");
  const problem = useSignal("");
  const self = useRef<HTMLLIElement>(null);
  useEffect(() => {
    counts.value = { before: around, after: around };
  }, [line]);
  useEffect(() => {
    const asked = new AbortController();
    const used = labels.filter(([name]) => !off.value.has(name));
    const matchers = used.map(([name, value]): Matcher => ({ name, op: "=", value }));
    const query = `{${matchers.map(formatMatcher).join(", ")}}`;
    const ask = async () => {
      try {
        const [older, newer] = await Promise.all([
          nearby(line, {
            query,
            count: counts.value.before,
            direction: "backward",
            signal: asked.signal,
          }),
          nearby(line, {
            query,
            count: counts.value.after,
            direction: "forward",
            signal: asked.signal,
          }),
        ]);
        before.value = older;
        after.value = newer;
        problem.value = "";
        requestAnimationFrame(() => self.current?.scrollIntoView({ block: "center" }));
      } catch (error) {
        if (!isAbort(error)) problem.value = error instanceof Error ? error.message : String(error);
      }
    };
    void ask();
    return () => asked.abort();
  }, [line, off.value, counts.value]);
  const toggle = (name: string) => {
    const next = new Set(off.value);
    if (!next.delete(name)) next.add(name);
    if (next.size < labels.length) off.value = next;
  };
  const more = (side: "before" | "after") => {
    counts.value = { ...counts.value, [side]: counts.value[side] + around };
  };
  const row = (one: Line, at: number) => (
    <ContextRow key={at} line={one} base={line} find={find.value} />
  );
  return (
    <div class="context">
      <div class="bar">
        {labels.map(([name, value]) => (
          <button
            class={`button small${off.value.has(name) ? "" : " on"}`}
            type="button"
            key={name}
            aria-pressed={!off.value.has(name)}
            onClick={() => toggle(name)}
          >
            {name}={value}
          </button>
        ))}
        <input
          class="field"
          type="search"
          placeholder="Find in context"
          aria-label="Find in context"
          onInput={(event) => (find.value = event.currentTarget.value)}
        />
        {problem.value !== "" && <p class="bad">{problem.value}</p>}
      </div>
      <ol>
        <li>
          <button class="link" type="button" onClick={() => more("after")}>
            {around} more after
          </button>
        </li>
        {[...after.value].reverse().map(row)}
        <li class="self" ref={self}>
          <span class="when">0</span>
          <span>{shortText(line)}</span>
        </li>
        {before.value.map(row)}
        <li>
          <button class="link" type="button" onClick={() => more("before")}>
            {around} more before
          </button>
        </li>
      </ol>
    </div>
  );
}

function ContextRow({ line, base, find }: { line: Line; base: Line; find: string }) {
  const text = shortText(line);
  const at = find === "" ? -1 : text.toLowerCase().indexOf(find.toLowerCase());
  return (
    <li class={`l-${line.level}`}>
      <span class="when">{relative(BigInt(line.ns) - BigInt(base.ns))}</span>
      <span>
        {at < 0 ? (
          text
        ) : (
          <>
            {text.slice(0, at)}
            <mark>{text.slice(at, at + find.length)}</mark>
            {text.slice(at + find.length)}
          </>
        )}
      </span>
    </li>
  );
}

function shortText(line: Line): string {
  const { message } = parsedOf(line);
  return (message === "" ? line.text : message).slice(0, 500).replace(/\s+/g, " ");
}

function relative(ns: bigint): string {
  const sign = ns < 0n ? "−" : "+";
  const ms = Math.abs(Number(ns)) / 1e6;
  if (ms < 1000) return `${sign}${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 60_000
    ? `${sign}${(ms / 1000).toFixed(1)} s`
    : `${sign}${(ms / 60_000).toFixed(1)} min`;
}

interface Nearby {
  readonly query: string;
  readonly count: number;
  readonly direction: "forward" | "backward";
  readonly signal: AbortSignal;
}

/** Lines on one side of a line, nearest first: of an hour, then of twice as long until there are enough. */
async function nearby(line: Line, { query, count, direction, signal }: Nearby): Promise<Line[]> {
  const at = BigInt(line.ns);
  for (let window = hour; ; window *= 2n) {
    const [startNs, endNs] = direction === "backward" ? [at - window, at + 1n] : [at, at + window];
    const range = { startNs: String(startNs), endNs: String(endNs) };
    const { lines } = await fetchLines({ query, ...range, limit: count + 50, direction }, signal);
    const others = besides(lines, line, direction);
    if (others.length >= count || window >= windowMax) return others.slice(0, count);
  }
}

/** Lines of the same nanosecond are before the line in one direction only, so that none is doubled. */
function besides(lines: readonly Line[], line: Line, direction: "forward" | "backward"): Line[] {
  if (direction === "forward") return lines.filter(({ ns }) => ns > line.ns);
  let isSelfLeft = true;
  return lines.filter((one) => {
    if (one.ns !== line.ns || !isSelfLeft || keyOf(one) !== keyOf(line)) return true;
    isSelfLeft = false;
    return false;
  });
}
