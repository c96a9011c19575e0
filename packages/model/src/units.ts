/** ns in each unit of a Prometheus duration, largest first; a year is 365 days. */
const prometheusUnits: readonly (readonly [string, bigint])[] = [
  ["y", 31_536_000_000_000_000n],
  ["w", 604_800_000_000_000n],
  ["d", 86_400_000_000_000n],
  ["h", 3_600_000_000_000n],
  ["m", 60_000_000_000n],
  ["s", 1_000_000_000n],
  ["ms", 1_000_000n],
];
/** ns in each unit of a duration of Go. */
export const goDurationUnits: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ns: 1,
    us: 1e3,
    µs: 1e3,
    μs: 1e3,
    ms: 1e6,
    s: 1e9,
    m: 60e9,
    h: 3600e9,
  }),
);
const maxInt64 = 9_223_372_036_854_775_807n;

/** Parses `1h30m`, `1d`, `0`: integers, units descending, each once. ns, or undefined. */
export function parsePrometheusDuration(text: string): bigint | undefined {
  if (text === "0") return 0n;
  const m =
    /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(
      text,
    );
  if (m === null || text === "") return undefined;
  let total = 0n;
  for (let i = 0; i < prometheusUnits.length; i++) {
    const count = m[i + 1];
    if (count !== undefined)
      total += BigInt(count) * (prometheusUnits[i] as readonly [string, bigint])[1];
  }
  return total > maxInt64 ? undefined : total;
}

/** Why a text is not a Prometheus duration; of a long text only the beginning is shown. */
export function describePrometheusDuration(text: string): string {
  if (text === "") return "empty duration string";
  const shown = JSON.stringify(
    text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text,
  );
  for (const [, unit = ""] of text.slice(0, shownCharsMax).matchAll(/\d+(\D*)/gy)) {
    if (unit === "") break;
    if (prometheusUnits.some(([name]) => name === unit)) continue;
    return `unknown unit ${JSON.stringify(unit)} in duration ${shown}`;
  }
  return `not a valid duration string: ${shown}`;
}

const shownCharsMax = 64;

/** Parses Go's form: `1.5s`, `-2h45m30.5s`, `20us`, `0`. ns rounded to an integer, or undefined. */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = text[0] === "-" ? -1n : 1n;
  const rest = text[0] === "-" || text[0] === "+" ? text.slice(1) : text;
  if (rest === "0") return 0n;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let total = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of rest.matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g,
  )) {
    const scale = goDurationUnits.get(unit) as number;
    total += BigInt(whole === "" ? 0 : whole) * BigInt(scale);
    // Digits first and one factor, as Go does: 0.1 * 1e9 would miss whole nanoseconds.
    const digits = fraction.slice(0, 18);
    if (digits !== "") total += BigInt(Math.trunc(Number(digits) * (scale / 10 ** digits.length)));
  }
  const fits = total <= maxInt64 || (sign < 0n && total === maxInt64 + 1n);
  return fits ? sign * total : undefined;
}

/** Go's `Duration.String`: `1h30m0s`, `1.5s`, `250ms`, `0s`. */
export function formatGoDuration(ns: bigint): string {
  if (ns === 0n) return "0s";
  const sign = ns < 0n ? "-" : "";
  const abs = ns < 0n ? -ns : ns;
  if (abs < 1_000n) return `${sign}${abs}ns`;
  if (abs < 1_000_000n) return `${sign}${decimal(abs, 1_000n)}µs`;
  if (abs < 1_000_000_000n) return `${sign}${decimal(abs, 1_000_000n)}ms`;
  const minutes = abs / 60_000_000_000n;
  const seconds = `${decimal(abs % 60_000_000_000n, 1_000_000_000n)}s`;
  if (minutes === 0n) return sign + seconds;
  const hours = minutes / 60n;
  return hours === 0n
    ? `${sign}${minutes}m${seconds}`
    : `${sign}${hours}h${minutes % 60n}m${seconds}`;
}

/** Prometheus' form: `1h30m`, `30d1h`; weeks and years only when nothing smaller is left; ms precision. */
export function formatPrometheusDuration(ns: bigint): string {
  let ms = ns / 1_000_000n;
  if (ms === 0n) return "0s";
  const sign = ms < 0n ? "-" : "";
  if (ms < 0n) ms = -ms;
  let out = "";
  for (const [unit, unitNs] of prometheusUnits) {
    const unitMs = unitNs / 1_000_000n;
    const exactOnly = unit === "y" || unit === "w";
    if (ms < unitMs || (exactOnly && ms % unitMs !== 0n)) continue;
    out += `${ms / unitMs}${unit}`;
    ms %= unitMs;
  }
  return sign + out;
}

function decimal(value: bigint, unit: bigint): string {
  const fraction = (value % unit)
    .toString()
    .padStart(unit.toString().length - 1, "0")
    .replace(/0+$/, "");
  return fraction === "" ? `${value / unit}` : `${value / unit}.${fraction}`;
}

/** Parses a size of the configuration: `256KB`, `1.5GB`, `1048576`; units are powers of 1024. Bytes, or undefined. */
export function parseSize(text: string): number | undefined {
  const m = /^\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:b|([kmgt])(?:i?b)?)?\s*$/i.exec(text);
  if (m === null) return undefined;
  const power = m[2] === undefined ? 0 : 1 + "kmgt".indexOf(m[2].toLowerCase());
  return Math.round(Number(m[1]) * 1024 ** power);
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
