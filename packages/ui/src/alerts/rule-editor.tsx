import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchGroup, saveGroup } from "../api/rules.js";
import { Dialog } from "../parts/dialog.js";
import { problemOf } from "../query/problem.js";

interface RuleEditorProps {
  /** Empty for a new group. */
  readonly namespace: string;
  readonly group: string;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

const example = `name: errors
interval: 1m
rules:
  - alert: ManyErrors
    expr: sum by (app) (rate({app=~".+"} |= "error" [5m])) > 1
    for: 5m
    labels:
      severity: warning
`;

/** A group of rules as YAML; its queries are checked as they are typed. */
export function RuleEditor({ namespace, group, onClose, onSaved }: RuleEditorProps) {
  const name = useSignal(namespace);
  const text = useSignal(group === "" ? example : "");
  const problem = useSignal("");
  useEffect(() => {
    if (group === "") return;
    fetchGroup(namespace, group).then(
      (yaml) => (text.value = yaml),
      (error: unknown) => (problem.value = error instanceof Error ? error.message : String(error)),
    );
  }, [namespace, group]);
  const wrong = queryProblems(text.value);
  const save = async () => {
    try {
      await saveGroup(name.value, text.value);
      onSaved();
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <Dialog title={group === "" ? "New group of rules" : `Group ${group}`} onClose={onClose}>
      <p>
        <input
          class="field"
          aria-label="Namespace"
          placeholder="Namespace"
          value={name.value}
          disabled={group !== ""}
          onInput={(event) => (name.value = event.currentTarget.value)}
        />
      </p>
      <textarea
        class="field"
        rows={16}
        aria-label="Group as YAML"
        spellcheck={false}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <div role="status" aria-live="polite">
        {wrong.map((one) => (
          <p class="bad" key={one}>
            {one}
          </p>
        ))}
        {problem.value !== "" && <p class="bad">{problem.value}</p>}
      </div>
      <p>
        <button
          class="button primary"
          type="button"
          disabled={name.value === "" || wrong.length > 0}
          onClick={() => void save()}
        >
          Save
        </button>
      </p>
    </Dialog>
  );
}

/** What is wrong with the queries in a YAML text that stand on one line. */
function queryProblems(yaml: string): string[] {
  return yaml.split("\n").flatMap((line, at) => {
    const query = /^\s*(?:- )?expr:\s*([^\s|>'"].*)$/.exec(line)?.[1];
    const problem = query === undefined ? undefined : problemOf(query, 0);
    return problem === undefined ? [] : [`line ${at + 1}: ${problem.says}`];
  });
}
