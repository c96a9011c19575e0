/** The tenant under which all others are counted together; no real id has a space. */
const others = "other tenants";
const tenantLabel = /([{,](?:tenant|user)=")([^"]*)"/;

/**
 * Keeps the lines of the tenants that it saw first in a text of metrics, and adds up those of all others: many tenants would
 * otherwise make a page that is slow to write, send and store.
 */
export class TenantFolder {
  readonly #max: number;
  readonly #kept = new Set<string>();

  /** 0 means that all are kept. */
  constructor(max: number) {
    this.#max = max;
  }

  fold(text: string): string {
    if (this.#max === 0) return text;
    const lines: string[] = [];
    /** Sums by name and labels, each with its place among the lines. */
    const sums = new Map<string, { at: number; value: number }>();
    for (const line of text.split("\n")) {
      const match = line.startsWith("#") ? null : tenantLabel.exec(line);
      if (match === null || this.#keeps(match[2] as string)) {
        lines.push(line);
        continue;
      }
      const end = line.lastIndexOf(" ");
      const key = line.slice(0, end).replace(tenantLabel, `$1${others}"`);
      const value = Number(line.slice(end + 1));
      const sum = sums.get(key);
      if (sum !== undefined) sum.value += value;
      else sums.set(key, { at: lines.push(key) - 1, value });
    }
    for (const [key, { at, value }] of sums) lines[at] = `${key} ${value}`;
    return lines.join("\n");
  }

  #keeps(tenant: string): boolean {
    if (tenant === "" || this.#kept.has(tenant)) return true;
    if (this.#kept.size >= this.#max) return false;
    this.#kept.add(tenant);
    return true;
  }
}
