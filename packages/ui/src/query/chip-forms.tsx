import { useSignal } from "@preact/signals";
import { type Matcher, quote } from "@skald/model";
import { Menu } from "../parts/menu.js";
import { addMatcher, addStage } from "./edit.js";

const ops = ["=", "!=", "=~", "!~"] as const;

export function MatcherForm(props: {
  readonly matcher: Matcher;
  readonly labels: readonly string[];
  readonly onClose: () => void;
  readonly onDone: (matcher: Matcher) => void;
}) {
  const { matcher, labels, onClose, onDone } = props;
  return (
    <Menu label="Change the label" onClose={onClose}>
      <form
        class="chip-form"
        onSubmit={(event) => {
          event.preventDefault();
          const data = new FormData(event.currentTarget);
          const [name, value] = [String(data.get("name")).trim(), String(data.get("value"))];
          if (/^[A-Za-z_]\w*$/.test(name))
            onDone({ name, op: data.get("op") as Matcher["op"], value });
        }}
      >
        <div class="row">
          <input
            class="field mono"
            name="name"
            list="chip-labels"
            aria-label="Label"
            value={matcher.name}
          />
          <select class="field" name="op" aria-label="Operator">
            {ops.map((op) => (
              <option selected={op === matcher.op}>{op}</option>
            ))}
          </select>
        </div>
        <datalist id="chip-labels">
          {labels.map((label) => (
            <option value={label} key={label} />
          ))}
        </datalist>
        <input class="field mono" name="value" aria-label="Value" value={matcher.value} />
        <button class="button small" type="submit">
          Apply
        </button>
      </form>
    </Menu>
  );
}

const added = {
  contains: "line contains",
  lacks: "line does not contain",
  label: "label is",
  field: "field is",
  parser: "read fields by",
} as const;

export function AddForm(props: {
  readonly text: string;
  readonly labels: readonly string[];
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { text, labels, onClose, onDone } = props;
  const kind = useSignal<keyof typeof added>("contains");
  const named = kind.value === "label" || kind.value === "field";
  const submit = (form: HTMLFormElement) => {
    const data = new FormData(form);
    const [name, value] = [String(data.get("name") ?? ""), String(data.get("value") ?? "")];
    if (named && !/^[A-Za-z_]\w*$/.test(name)) return;
    if (kind.value === "contains") onDone(addStage(text, `|= ${quote(value)}`));
    else if (kind.value === "lacks") onDone(addStage(text, `!= ${quote(value)}`));
    else if (kind.value === "label") onDone(addMatcher(text, { name, op: "=", value }));
    else if (kind.value === "field") onDone(addStage(text, `| ${name}=${quote(value)}`));
    else onDone(addStage(text, `| ${value}`));
  };
  return (
    <Menu label="Add a filter" onClose={onClose}>
      <form
        class="chip-form"
        onSubmit={(event) => {
          event.preventDefault();
          submit(event.currentTarget);
        }}
      >
        <select
          class="field"
          aria-label="Kind of filter"
          onChange={(event) => (kind.value = event.currentTarget.value as keyof typeof added)}
        >
          {Object.entries(added).map(([value, says]) => (
            <option value={value} key={value}>
              {says}
            </option>
          ))}
        </select>
        {named && (
          <input
            class="field mono"
            name="name"
            list="add-labels"
            aria-label="Name"
            placeholder="name"
          />
        )}
        <datalist id="add-labels">
          {kind.value === "label" && labels.map((label) => <option value={label} key={label} />)}
        </datalist>
        {kind.value === "parser" ? (
          <select class="field" name="value" aria-label="Parser">
            {["json", "logfmt", "unpack"].map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        ) : (
          <input class="field mono" name="value" aria-label="Value" placeholder="value" />
        )}
        <button class="button small" type="submit">
          Add
        </button>
      </form>
    </Menu>
  );
}
