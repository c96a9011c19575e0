const binaryUnits: ReadonlyMap<string, number> = new Map(
  Object.entries({
    "": 1,
    b: 1,
    k: 2 ** 10,
    kb: 2 ** 10,
    kib: 2 ** 10,
    m: 2 ** 20,
    mb: 2 ** 20,
    mib: 2 ** 20,
    g: 2 ** 30,
    gb: 2 ** 30,
    gib: 2 ** 30,
    t: 2 ** 40,
    tb: 2 ** 40,
    tib: 2 ** 40,
  }),
);

/** Parses a size of the configuration: `256KB`, `1.5GB`, `1048576`; units are powers of 1024. Bytes, or undefined. */
export function parseSize(text: string): number | undefined {
  const m = /^\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z]*)\s*$/i.exec(text);
  const unit = m === null ? undefined : binaryUnits.get((m[2] as string).toLowerCase());
  return m === null || unit === undefined ? undefined : Math.round(Number(m[1]) * unit);
}

/** `256KB`, `15MB`, `12B`: whole units, one decimal where needed. */
export function formatSize(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)}${units[unit]}`;
}
