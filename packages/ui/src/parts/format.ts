/** Numbers and sizes for people: `166 k`, `45.4 MB`, `484 ms`. */

export function formatCount(value: number): string {
  if (value < 1000) return String(Math.round(value * 100) / 100);
  const unit =
    value < 1e6
      ? ([1e3, "k"] as const)
      : value < 1e9
        ? ([1e6, "M"] as const)
        : ([1e9, "G"] as const);
  const scaled = value / unit[0];
  return `${scaled < 9.95 ? scaled.toFixed(1).replace(/\.0$/, "") : Math.round(scaled)} ${unit[1]}`;
}

export function formatWhole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  for (const unit of ["kB", "MB", "GB", "TB", "PB"]) {
    bytes /= 1000;
    if (bytes < 999.95) return `${bytes < 99.95 ? bytes.toFixed(1) : Math.round(bytes)} ${unit}`;
  }
  return `${bytes.toFixed(1)} PB`;
}

export function formatMs(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A value of a chart, in four digits. */
export function formatValue(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e9)) return value.toExponential(2);
  if (size >= 1000) return formatWhole(value);
  return value.toPrecision(3);
}
