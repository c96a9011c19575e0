import { useSignal } from "@preact/signals";
import { classOf, rangeOps, vectorOps } from "@skald/logql/syntax";
import { formatMatcher, type Matcher, quote } from "@skald/model";
import { Menu } from "../parts/menu.js";
import { addMatcher, addStage, removeMatcher, removeStage, replaceMatcher, replaceStage, splice } from "./edit.js";
import { partsOf, type StagePart } from "./parts.js";

interface ChipsProps {
  readonly text: string;
  /** The text has changed since it was last right, so these are the parts of an older one. */
  readonly stale: boolean;
  readonly labels: readonly string[];
  readonly onEdit: (text: string) => void;
}

/** The parts of a query as chips, which change the same text. */
export function Chips({ text, stale, labels, onEdit }: ChipsProps) {
  const open = useSignal("");
  const { selectors } = partsOf(text);
  const close = () => {
    open.value = "";
  };
  const edit = (next: string) => {
    close();
    onEdit(next);
  };
  return (
    <section class={`chips${stale ? " stale" : ""}`} aria-label="Parts of the query">
      {metricChips(text).map(({ name, value, start, end }) => (
        <TextChip
          key={`m${start}`}
          {...{ name, value, open, id: `m${start}` }}
          onEdit={(part) => edit(splice(text, [{ start, end, text: part }]))}
        />
      ))}
      {selectors.flatMap(({ matchers }, s) =>
        matchers.map((matcher, m) => (
          <span class="chip anchor" key={`${s}.${m}`}>
            <button type="button" onClick={() => (open.value = `${s}.${m}`)}>
              <span class="n">{matcher.name}</span>
              <span class="o">{matcher.op === "=" ? "=" : ` ${matcher.op}`}</span>
              <span class="v">{matcher.value}</span>
            </button>
            <button
              type="button"
              class="x"
              aria-label={`Remove ${formatMatcher(matcher)}`}
              onClick={() => edit(removeMatcher(text, s, m))}
            >
              ×
            </button>
            {open.value === `${s}.${m}` && (
              <MatcherForm
                {...{ matcher, labels }}
                onClose={close}
                onDone={(next) => edit(replaceMatcher(text, s, m, next))}
              />
            )}
          </span>
        )),
      )}
      {selectors.flatMap(({ stages }, s) =>
        stages.map((stage, at) => {
          const { name, value } = wordsOf(text, stage);
          return (
            <TextChip
              key={`s${s}.${at}`}
              {...{ name, value, open, id: `s${s}.${at}` }}
              whole={text.slice(stage.start, stage.end)}
              onEdit={(part) => edit(replaceStage(text, s, at, part))}
              onRemove={() => edit(removeStage(text, s, at))}
            />
          );
        }),
      )}
      {hasMore(text) && <span class="chip grey">more</span>}
      {selectors.length > 0 && (
        <span class="chip add anchor">
          <button type="button" onClick={() => (open.value = "add")}>
            + Filter
          </button>
          {open.value === "add" && <AddForm {...{ text, labels }} onClose={close} onDone={edit} />}
        </span>
      )}
    </section>
  );
}

interface TextChipProps {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  readonly whole?: string;
  readonly open: { value: string };
  readonly onEdit: (text: string) => void;
  readonly onRemove?: () => void;
}

/** A part that is edited as text. */
function TextChip({ id, name, value, whole = value, open, onEdit, onRemove }: TextChipProps) {
  return (
    <span class="chip anchor">
      <button type="button" onClick={() => (open.value = id)}>
        <span class="o">{name}</span>
        <span class="v">{value}</span>
      </button>
      {onRemove && (
        <button type="button" class="x" aria-label={`Remove ${whole}`} onClick={onRemove}>
          ×
        </button>
      )}
      {open.value === id && (
        <Menu label={`Change ${whole}`} onClose={() => (open.value = "")}>
          <form
            class="chip-form"
            onSubmit={(event) => {
              event.preventDefault();
              onEdit(String(new FormData(event.currentTarget).get("part")));
            }}
          >
            <input class="field mono" name="part" aria-label="Part of the query" value={whole} />
            <button class="button small" type="submit">
              Change
            </button>
          </form>
        </Menu>
      )}
    </span>
  );
}

const ops = ["=", "!=", "=~", "!~"] as const;

function MatcherForm(props: {
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
          if (/^[A-Za-z_]\w*$/.test(name)) onDone({ name, op: data.get("op") as Matcher["op"], value });
        }}
      >
        <div class="row">
          <input class="field mono" name="name" list="chip-labels" aria-label="Label" value={matcher.name} />
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

function AddForm(props: {
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
        {named && <input class="field mono" name="name" list="add-labels" aria-label="Name" placeholder="name" />}
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

const filterWords: Readonly<Record<string, string>> = {
  ...{ "|=": "contains", "!=": "lacks", "|~": "matches", "!~": "matches not" },
  ...{ "|>": "pattern", "!>": "not pattern" },
};

/** A stage in words: `contains timeout`, `json`, `status >= 500`. */
function wordsOf(text: string, { start, end, tokens }: StagePart): { name: string; value: string } {
  const word = filterWords[tokens[0]?.type ?? ""];
  if (word === undefined) return { name: "", value: text.slice(start, end).replace(/^\|\s*/, "") };
  const [value] = tokens.slice(1);
  const single = tokens.length === 2 && value?.type === "STRING";
  return { name: word, value: single ? String(value.value) : text.slice(value?.start, end) };
}

interface MetricChip {
  readonly name: string;
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

const calls: ReadonlySet<string> = new Set([...rangeOps, ...vectorOps]);

/** Functions, windows and groupings of a metric query. */
function metricChips(text: string): MetricChip[] {
  const { tokens } = partsOf(text);
  return tokens.flatMap(({ type, start, end }, at): MetricChip[] => {
    if (calls.has(type)) return [{ name: "", value: text.slice(start, end), start, end }];
    if (type === "RANGE") return [{ name: "window", value: text.slice(start, end), start, end }];
    if (type !== "by" && type !== "without") return [];
    const close = tokens.slice(at).find((token) => token.type === ")");
    if (close === undefined) return [];
    return [{ name: "", value: text.slice(start, close.end), start, end: close.end }];
  });
}

/** Whether a query has parts that no chip shows. */
function hasMore(text: string): boolean {
  const { tokens, selectors } = partsOf(text);
  const covered = (start: number) =>
    selectors.some(
      ({ start: from, end, stages }) => start >= from && start < (stages.at(-1)?.end ?? end),
    );
  return tokens.some(({ type, start }) => {
    if (covered(start) || calls.has(type) || type === "$end") return false;
    const kind = classOf(type);
    return kind === "function" || kind === "number" ? type !== "RANGE" : type === "unwrap" || type === "offset";
  });
}
