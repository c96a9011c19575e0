import { invalidArgument } from "@skald/model";

export function tooManyBytesRead(bytes: number, limit: number): Error {
  return invalidArgument(
    `the query would read too many bytes (query: ${formatBytes(bytes)}, limit: ${formatBytes(limit)}); use a narrower selector or a shorter time range`,
  );
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `512 B`, `5.0 GiB`, `150 GiB`. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}
