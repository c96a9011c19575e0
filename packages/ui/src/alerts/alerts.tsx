import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { editQuery } from "../answer/run.js";
import { isAbort } from "../api/client.js";
import { deleteGroup, fetchRules, type Rule, type RuleGroup } from "../api/rules.js";
import { Dialog } from "../parts/dialog.js";
import { formatMs, formatValue } from "../parts/format.js";
import { say } from "../parts/toast.js";
import { navigate, zone } from "../state/explore.js";
import { formatTime } from "../state/range.js";
import { RuleEditor } from "./rule-editor.js";
import { TryRule } from "./try-rule.js";

const askEveryMs = 15_000;
/** Once somebody changed a group: a ruler takes a moment to evaluate it. */
const askSoonMs = 2000;
const states = ["all", "firing", "pending", "inactive", "failed"] as const;
type State = (typeof states)[number];

/** Rules with their states, firing ones first; they can be tried, written and deleted. */
export default function Alerts() {
  const groups = useSignal<readonly RuleGroup[] | undefined | null>(null);
  const problem = useSignal("");
  const state = useSignal<State>("all");
  const text = useSignal("");
  const editing = useSignal<{ namespace: string; group: string } | undefined>(undefined);
  const asked = useSignal(0);
  useEffect(() => {
    const controller = new AbortController();
    const ask = () =>
      fetchRules(controller.signal).then(
        (found) => {
          groups.value = found;
          problem.value = "";
        },
        (error: unknown) => {
          if (!isAbort(error))
            problem.value = error instanceof Error ? error.message : String(error);
        },
      );
    void ask();
    const timer = setInterval(ask, asked.value === 0 ? askEveryMs : askSoonMs);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [asked.value]);
  if (groups.value === undefined) {
    return (
      <main class="page">
        <h1>Alerts</h1>
        <p>This process has no rules. Ask one of the target ruler, backend or all.</p>
      </main>
    );
  }
  const shown = (groups.value ?? [])
    .map((group) => ({
      ...group,
      rules: group.rules.filter((rule) => matches(rule, state.value, text.value)),
    }))
    .filter(
      ({ rules, name }) => rules.length > 0 || (state.value === "all" && name.includes(text.value)),
    )
    .sort((a, b) => firing(b.rules) - firing(a.rules));
  return (
    <main class="page">
      <h1>Alerts</h1>
      <div class="bar">
        <input
          class="field"
          type="search"
          placeholder="Find a rule"
          aria-label="Find a rule"
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
        {states.map((name) => (
          <button
            class={`button small${state.value === name ? " on" : ""}`}
            type="button"
            key={name}
            aria-pressed={state.value === name}
            onClick={() => (state.value = name)}
          >
            {name}
          </button>
        ))}
        <button
          class="button small primary"
          type="button"
          onClick={() => (editing.value = { namespace: "", group: "" })}
        >
          New group
        </button>
      </div>
      {problem.value !== "" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      {groups.value?.length === 0 && (
        <p>No rules yet. A group of rules is written as YAML, as in Loki.</p>
      )}
      {shown.map((group) => (
        <Group
          key={`${group.file}/${group.name}`}
          group={group}
          onEdit={() => (editing.value = { namespace: group.file, group: group.name })}
          onChanged={() => asked.value++}
        />
      ))}
      {editing.value !== undefined && (
        <RuleEditor
          {...editing.value}
          onClose={() => (editing.value = undefined)}
          onSaved={() => {
            editing.value = undefined;
            asked.value++;
          }}
        />
      )}
    </main>
  );
}

function firing(rules: readonly Rule[]): number {
  return rules.filter((rule) => rule.state === "firing").length;
}

function matches(rule: Rule, state: State, text: string): boolean {
  const isState =
    state === "all" || (state === "failed" ? rule.health === "err" : rule.state === state);
  return isState && `${rule.name} ${rule.query}`.toLowerCase().includes(text.toLowerCase());
}

interface GroupProps {
  readonly group: RuleGroup;
  readonly onEdit: () => void;
  readonly onChanged: () => void;
}

function Group({ group, onEdit, onChanged }: GroupProps) {
  const deleting = useSignal(false);
  const rules = [...group.rules].sort(
    (a, b) => Number(b.state === "firing") - Number(a.state === "firing"),
  );
  return (
    <section class="card" aria-label={`Group ${group.name}`}>
      <header>
        <b>{group.name}</b>
        <span class="dim grow">
          {group.file}, every {group.interval} s
        </span>
        <button class="button small" type="button" onClick={onEdit}>
          Edit
        </button>
        <button class="button small danger" type="button" onClick={() => (deleting.value = true)}>
          Delete
        </button>
      </header>
      <div class="inside">
        {rules.map((rule) => (
          <RuleRow key={rule.name + rule.query} rule={rule} />
        ))}
      </div>
      {deleting.value && (
        <DeleteGroup group={group} onClose={() => (deleting.value = false)} onDeleted={onChanged} />
      )}
    </section>
  );
}

function RuleRow({ rule }: { readonly rule: Rule }) {
  const trying = useSignal(false);
  const open = () => {
    navigate({ screen: "explore" });
    editQuery(rule.query);
  };
  const evaluated = Date.parse(rule.lastEvaluation);
  return (
    <div class="rule-row">
      <p>
        <span class={`state ${rule.health === "err" ? "bad" : (rule.state ?? "ok")}`}>
          {rule.health === "err" ? "failed" : (rule.state ?? "recording")}
        </span>{" "}
        <b>{rule.name}</b>{" "}
        <span class="dim">
          {evaluated > 0 &&
            `evaluated ${formatTime(BigInt(evaluated) * 1_000_000n, zone.value, "s")} in ${formatMs(rule.evaluationTime * 1000)}`}
        </span>
      </p>
      <p class="mono">{rule.query}</p>
      {rule.lastError !== undefined && rule.lastError !== "" && <p class="bad">{rule.lastError}</p>}
      {rule.alerts?.map(({ labels, state, value }) => (
        <p class="mono" key={JSON.stringify(labels)}>
          <span class={`state ${state}`}>{state}</span> {formatValue(Number(value))}{" "}
          {Object.entries(labels)
            .map(([name, one]) => `${name}=${one}`)
            .join(" ")}
        </p>
      ))}
      <p class="ways">
        <button class="button small" type="button" onClick={open}>
          Open in Explore
        </button>
        <button
          class="button small"
          type="button"
          aria-expanded={trying.value}
          onClick={() => (trying.value = !trying.value)}
        >
          Try over the past
        </button>
      </p>
      {trying.value && <TryRule query={rule.query} />}
    </div>
  );
}

function DeleteGroup(props: { group: RuleGroup; onClose: () => void; onDeleted: () => void }) {
  const { group, onClose, onDeleted } = props;
  const typed = useSignal("");
  const remove = async () => {
    try {
      await deleteGroup(group.file, group.name);
      say(`Deleted ${group.name}`);
      onClose();
      onDeleted();
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title={`Delete the group ${group.name}`} onClose={onClose}>
      <p>
        Its {group.rules.length} rules stop. Type <b>{group.name}</b> to delete it.
      </p>
      <p>
        <input
          class="field"
          aria-label="Name of the group"
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
      </p>
      <button
        class="button danger"
        type="button"
        disabled={typed.value !== group.name}
        onClick={() => void remove()}
      >
        Delete
      </button>
    </Dialog>
  );
}
