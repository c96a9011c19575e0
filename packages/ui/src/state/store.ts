/** What this browser remembers; all of it works, until the page is left, where storage is forbidden or full. */
const memory = new Map<string, string>();
const prefix = "skald.";

export function recall<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(prefix + name) ?? memory.get(name);
    return text === undefined || text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    const text = memory.get(name);
    return text === undefined ? otherwise : (JSON.parse(text) as T);
  }
}

export function remember(name: string, value: unknown): void {
  const text = JSON.stringify(value);
  memory.set(name, text);
  try {
    localStorage.setItem(prefix + name, text);
  } catch {
    // The memory of this page has it.
  }
}
