import { useSignal } from "@preact/signals";
import { FieldRow, type PanelProps } from "./field.js";

/** Labels, then fields, with the number of their values; opened ones with counts. */
export function FieldPanel(props: PanelProps) {
  const { labels, fields, open, onOpen, sheet } = props;
  const wanted = useSignal("");
  const isLabel = new Set(labels.map(({ name }) => name));
  const matches = (name: string) => name.toLowerCase().includes(wanted.value.toLowerCase());
  const shownLabels = labels.filter(({ name }) => matches(name));
  const shownFields = fields.filter(({ name }) => !isLabel.has(name) && matches(name));
  const toggle = (name: string) =>
    onOpen(open.includes(name) ? open.filter((one) => one !== name) : [...open, name]);
  return (
    <aside class={`fields${sheet ? " sheet" : ""}`} aria-label="Fields">
      <div class="find">
        <input
          class="field"
          id="find-field"
          type="search"
          placeholder="Find a field   F"
          aria-label="Find a field"
          value={wanted.value}
          onInput={(event) => (wanted.value = event.currentTarget.value)}
        />
      </div>
      <h2>
        Labels <span>values</span>
      </h2>
      {shownLabels.map(({ name, values }) => (
        <FieldRow
          key={name}
          {...props}
          field={{ name, parser: undefined, isLabel: true }}
          kind="L"
          values={values}
          sampled={false}
          isOpen={open.includes(name)}
          onToggle={() => toggle(name)}
        />
      ))}
      {shownFields.length > 0 && (
        <h2>
          Fields <span>values</span>
        </h2>
      )}
      {shownFields.map(({ name, type, values, parsers }) => (
        <FieldRow
          key={name}
          {...props}
          field={{ name, parser: parsers[0], isLabel: false }}
          kind={type === "string" || type === "boolean" ? "a" : "#"}
          values={values}
          sampled={values > 100}
          isOpen={open.includes(name)}
          onToggle={() => toggle(name)}
        />
      ))}
      {props.onRemoveSample !== undefined && (
        <div class="note-row">
          <button type="button" onClick={props.onRemoveSample}>
            Remove the sample logs
          </button>
        </div>
      )}
    </aside>
  );
}
