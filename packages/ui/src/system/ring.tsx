import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchRing, forgetMember, type Member } from "../api/system.js";
import { say } from "../parts/toast.js";

const whole = 2 ** 32;
const colors = ["--bar-info", "--q-label", "--q-function", "--q-number", "--warn", "--critical"];
const late = 60_000;

interface RingViewProps {
  readonly name: string;
  readonly path: string;
  /** Where to look for the ring when this process has none. */
  readonly targets: string;
}

/** A ring as a circle: which part of all streams each member has, and how it is. */
export function RingView({ name, path, targets }: RingViewProps) {
  const members = useSignal<readonly Member[] | undefined | null>(null);
  const asked = useSignal(0);
  useEffect(() => {
    fetchRing(path).then(
      (found) => (members.value = found),
      () => (members.value = undefined),
    );
  }, [path, asked.value]);
  if (members.value === null) return null;
  if (members.value === undefined) {
    return (
      <figure>
        <figcaption>
          <b>{name}</b> <span class="dim">ask a process of the target {targets}</span>
        </figcaption>
      </figure>
    );
  }
  const shares = sharesOf(members.value);
  const forget = async (id: string) => {
    try {
      await forgetMember(path, id);
      asked.value++;
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <figure>
      <Circle members={members.value} name={name} />
      <figcaption>
        <b>{name}</b>
        {members.value.map(({ id, state, address, timestamp }, at) => {
          const age = Date.now() - Date.parse(timestamp);
          return (
            <div key={id} title={address}>
              <span style={{ color: `var(${colors[at % colors.length]})` }}>●</span> {id}{" "}
              <span class={`state ${state === "ACTIVE" && age < late ? "ok" : "warn"}`}>
                {state.toLowerCase()}
              </span>{" "}
              <span class="dim">
                {shares.size > 0 && `${Math.round((shares.get(id) ?? 0) * 100)} %, `}seen{" "}
                {Math.max(0, Math.round(age / 1000))} s ago
              </span>
              {age > late && (
                <button class="button small" type="button" onClick={() => void forget(id)}>
                  Forget
                </button>
              )}
            </div>
          );
        })}
      </figcaption>
    </figure>
  );
}

interface Arc {
  readonly at: number;
  readonly to: number;
  readonly member: number;
}

/** Arcs between tokens: each belongs to the member of the token at its end. */
function arcsOf(members: readonly Member[]): Arc[] {
  const tokens = members
    .flatMap(({ tokens: own }, member) => (own ?? []).map((token) => ({ token, member })))
    .sort((a, b) => a.token - b.token);
  const arcs: Arc[] = [];
  let at = (tokens.at(-1)?.token ?? 0) - whole;
  for (const { token, member } of tokens) {
    const last = arcs.at(-1);
    if (last?.member === member) arcs[arcs.length - 1] = { ...last, to: token };
    else arcs.push({ at, to: token, member });
    at = token;
  }
  return arcs;
}

function sharesOf(members: readonly Member[]): Map<string, number> {
  const shares = new Map<string, number>();
  for (const { at, to, member } of arcsOf(members)) {
    const { id } = members[member]!;
    shares.set(id, (shares.get(id) ?? 0) + (to - at) / whole);
  }
  return shares;
}

function Circle({ members, name }: { readonly members: readonly Member[]; readonly name: string }) {
  const point = (share: number) => {
    const angle = share * 2 * Math.PI - Math.PI / 2;
    return `${(50 + 42 * Math.cos(angle)).toFixed(2)} ${(50 + 42 * Math.sin(angle)).toFixed(2)}`;
  };
  const arcs = arcsOf(members);
  return (
    <svg
      viewBox="0 0 100 100"
      role="img"
      aria-label={`Ring of the ${name}: ${members.length} members`}
    >
      <circle cx="50" cy="50" r="42" fill="none" stroke="var(--line)" stroke-width="10" />
      {arcs.map(({ at, to, member }) => {
        const [from, end] = [at / whole, to / whole];
        const color = `var(${colors[member % colors.length]})`;
        if (end - from > 0.999) {
          return (
            <circle key={at} cx="50" cy="50" r="42" fill="none" stroke={color} stroke-width="10" />
          );
        }
        const large = end - from > 0.5 ? 1 : 0;
        return (
          <path
            key={at}
            d={`M${point(from)} A42 42 0 ${large} 1 ${point(end)}`}
            fill="none"
            stroke={color}
            stroke-width="10"
          />
        );
      })}
    </svg>
  );
}
