/** What this browser remembers; all of it works, until the page is left, where storage is forbidden or full. */
const memory = new Map<string, string>();
const prefix = "skald.";

export function recall<T>(name: string, otherwise: T): T {
  const text = memory.get(name) ?? stored(name);
  if (text === null) return otherwise;
  try {
    return JSON.parse(text) as T;
  } catch {
    // Something else wrote there.
    return otherwise;
  }
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(prefix + name);
  } catch {
    return null;
  }
}

export function remember(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(prefix + name, text);
    memory.delete(name);
  } catch {
    // Until the page is left it knows better than what is stored.
    memory.set(name, text);
  }
}

/** Says when another tab of this browser has remembered something else. */
export function onRemembered(name: string, changed: () => void): void {
  globalThis.addEventListener?.("storage", ({ key }) => {
    if (key === prefix + name) changed();
  });
}
