import { useSignal } from "@preact/signals";
import { formatMatcher } from "@skald/model";
import { Menu } from "../parts/menu.js";
import { AddForm, MatcherForm } from "./chip-forms.js";
import { hasMore, metricChips, wordsOf } from "./chip-words.js";
import { removeMatcher, removeStage, replaceMatcher, replaceStage, splice } from "./edit.js";
import { partsOf } from "./parts.js";

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
