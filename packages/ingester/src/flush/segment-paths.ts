import { sep } from "node:path";

/** The file of a segment is named by its id and this. */
export const segmentSuffix = ".parquet";
const uploadedSuffix = ".uploaded";
const uploadingSuffix = ".uploading";
const temporarySuffix = ".tmp";
const unfinished = /\.parquet(\.tmp)+$/;

/** Where the file of a segment is written until it is placed. */
export function temporaryOf(path: string): string {
  return path + temporarySuffix;
}

/** Whether a path is what a seal that did not end leaves behind. */
export function isUnfinished(path: string): boolean {
  return unfinished.test(path);
}

/** Stands beside a segment that the store has. */
export function markerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadedSuffix;
}

/** Stands beside a segment of which an upload was begun. */
export function uploadingMarkerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadingSuffix;
}

/** Whether a path is the marker of a segment that is there no more: a process ended between the two when it dropped them. */
export function isStray(path: string, paths: ReadonlySet<string>): boolean {
  const suffix = [uploadedSuffix, uploadingSuffix].find((one) => path.endsWith(one));
  return suffix !== undefined && !paths.has(path.slice(0, -suffix.length) + segmentSuffix);
}

/** The directory of a tenant. Long names are cut into several, because file systems take 255 bytes for each. */
export function tenantDir(tenant: string): string {
  const escaped = encodeURIComponent(tenant).replaceAll(".", "%2E");
  return (escaped.match(/.{1,200}/g) as string[]).join(sep);
}

/** Whose directory it is. */
export function tenantOf(dir: string): string {
  return decodeURIComponent(dir.split(sep).join(""));
}
