import { Dialog } from "../parts/dialog.js";
import { saveFile } from "../parts/file.js";
import { Menu } from "../parts/menu.js";
import { say } from "../parts/toast.js";
import { exportSaved, history, importSaved, save, saved } from "../state/saved.js";

const shownMax = 12;

/** Saved queries, then those that ran lately. */
export function SavedMenu(props: {
  readonly onClose: () => void;
  readonly onTake: (query: string) => void;
}) {
  const { onClose, onTake } = props;
  const take = (query: string) => {
    onClose();
    onTake(query);
  };
  const recent = history().slice(0, shownMax);
  return (
    <Menu label="Saved queries and history" onClose={onClose} class="saved">
      {saved.value.length > 0 && <div class="head">Saved</div>}
      {saved.value.map(({ name, query }) => (
        <button class="item" type="button" key={name} title={query} onClick={() => take(query)}>
          {name}
        </button>
      ))}
      {recent.length > 0 && <div class="head">History</div>}
      {recent.map((query) => (
        <button
          class="item mono"
          type="button"
          key={query}
          title={query}
          onClick={() => take(query)}
        >
          {query.length > 70 ? `${query.slice(0, 70)}…` : query}
        </button>
      ))}
      <div class="head">File</div>
      <button
        class="item"
        type="button"
        onClick={() => saveFile("skald-queries.json", exportSaved())}
      >
        Export saved queries
      </button>
      <label class="item">
        Import saved queries
        <input
          class="hidden"
          type="file"
          accept="application/json"
          onChange={(event) => void takeFile(event.currentTarget, onClose)}
        />
      </label>
    </Menu>
  );
}

async function takeFile(input: HTMLInputElement, onClose: () => void): Promise<void> {
  const text = await input.files?.[0]?.text();
  if (text === undefined) return;
  try {
    say(`${importSaved(text)} queries imported`);
  } catch {
    say("This file has no saved queries");
  }
  onClose();
}

export function SaveDialog({
  query,
  onClose,
}: {
  readonly query: string;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title="Save this query" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const name = String(new FormData(event.currentTarget).get("name")).trim();
          if (name === "") return;
          save(name, query);
          say(`Saved as ${name}`);
          onClose();
        }}
      >
        <p class="mono">{query}</p>
        <p>
          <input class="field" name="name" aria-label="Name" placeholder="Name" />
        </p>
        <button class="button primary" type="submit">
          Save
        </button>
      </form>
    </Dialog>
  );
}
