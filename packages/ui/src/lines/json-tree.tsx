import { useState } from "preact/hooks";

const openLevels = 3;
const childrenMax = 200;

/** A JSON value as a tree that folds. */
export function JsonTree({ value }: { readonly value: unknown }) {
  return (
    <div class="tree">
      <Node name="" value={value} level={0} />
    </div>
  );
}

interface NodeProps {
  readonly name: string;
  readonly value: unknown;
  readonly level: number;
}

function Node({ name, value, level }: NodeProps) {
  const [open, setOpen] = useState(level < openLevels);
  const [max, setMax] = useState(childrenMax);
  const label = name === "" ? "" : `${name}: `;
  if (value === null || typeof value !== "object") {
    return (
      <div class="leaf">
        <span class="k">{label}</span>
        <span class={typeof value === "string" ? "t-string" : "t-number"}>
          {JSON.stringify(value)}
        </span>
      </div>
    );
  }
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="k">{label}</span>
        {isList ? `[${entries.length}]` : `{${entries.length}}`}
      </summary>
      {open &&
        entries
          .slice(0, max)
          .map(([key, inner]) => <Node key={key} name={key} value={inner} level={level + 1} />)}
      {open && entries.length > max && (
        <button class="link" type="button" onClick={() => setMax(max + childrenMax)}>
          {entries.length - max} more
        </button>
      )}
    </details>
  );
}
