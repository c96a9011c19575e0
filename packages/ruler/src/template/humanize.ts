/** Go's `%.4g`: four digits that count. */
export function formatShort(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const [digits = "", power = "0"] = value.toExponential(3).split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 4) {
    const sign = exponent < 0 ? "-" : "+";
    return `${trimZeros(digits)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
  }
  return trimZeros(value.toFixed(Math.max(0, 3 - exponent)));
}

function trimZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

const large = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const small = ["m", "u", "n", "p", "f", "a", "z", "y"];
const binary = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];

/** `1.234k`, `5m`: metric prefixes. */
export function humanize(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return formatShort(value);
  return Math.abs(value) >= 1 ? scaledDown(value, large, 1000) : scaledUp(value);
}

/** `1.5Mi`: powers of 1024. */
export function humanize1024(value: number): string {
  if (Math.abs(value) <= 1 || !Number.isFinite(value)) return formatShort(value);
  return scaledDown(value, binary, 1024);
}

/** `1h 2m 3s` of seconds. */
export function humanizeDuration(value: number): string {
  if (!Number.isFinite(value)) return formatShort(value);
  if (value === 0) return `${formatShort(value)}s`;
  if (Math.abs(value) < 1) return `${scaledUp(value)}s`;
  const sign = value < 0 ? "-" : "";
  const whole = Math.trunc(Math.abs(value));
  const seconds = whole % 60;
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600) % 24;
  const days = Math.floor(whole / 86_400);
  if (days !== 0) return `${sign}${days}d ${hours}h ${minutes}m ${seconds}s`;
  if (hours !== 0) return `${sign}${hours}h ${minutes}m ${seconds}s`;
  if (minutes !== 0) return `${sign}${minutes}m ${seconds}s`;
  return `${formatShort(value)}s`;
}

/** `12.34%` of a share. */
export function humanizePercentage(value: number): string {
  return `${formatShort(value * 100)}%`;
}

function scaledDown(value: number, prefixes: readonly string[], by: number): string {
  let scaled = value;
  let prefix = "";
  for (const next of prefixes) {
    if (Math.abs(scaled) < by) break;
    prefix = next;
    scaled /= by;
  }
  return formatShort(scaled) + prefix;
}

function scaledUp(value: number): string {
  let scaled = value;
  let prefix = "";
  for (const next of small) {
    if (Math.abs(scaled) >= 1) break;
    prefix = next;
    scaled *= 1000;
  }
  return formatShort(scaled) + prefix;
}
