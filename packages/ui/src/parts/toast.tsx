import { signal } from "@preact/signals";

const toasts = signal<readonly { readonly id: number; readonly text: string }[]>([]);
const shownMs = 4000;
let lastId = 0;

/** Says something for a few seconds. */
export function say(text: string): void {
  const id = ++lastId;
  toasts.value = [...toasts.value.slice(-2), { id, text }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one.id !== id);
  }, shownMs);
}

/** Copies a text, and says so. */
export async function copy(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}`);
  } catch {
    // Pages without TLS have no clipboard of that kind.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    say(done ? `Copied ${what}` : "This browser does not let the page copy");
  }
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text }) => (
        <div class="toast" key={id}>
          {text}
        </div>
      ))}
    </div>
  );
}
