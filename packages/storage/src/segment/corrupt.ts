import { SkaldError } from "@skald/model";

interface CorruptSegment {
  readonly kind: "corrupt_segment";
  readonly name: string;
}

/** The error of a segment that is not what was written; it names the file or key, also to `corruptSegmentOf`. */
export function corruptSegment(name: string, reason: SkaldError): SkaldError {
  const detail: CorruptSegment = { kind: "corrupt_segment", name };
  const { message } = reason;
  const text = message.includes(name) ? message : `segment ${name} cannot be read: ${message}`;
  return new SkaldError("internal", text, { detail });
}

/** The file or key of the segment whose damage an error tells of; undefined for any other error. */
export function corruptSegmentOf(error: unknown): string | undefined {
  const detail = error instanceof SkaldError ? error.detail : undefined;
  const { kind, name } = (detail ?? {}) as Partial<CorruptSegment>;
  return kind === "corrupt_segment" ? name : undefined;
}

/** Says of a part of a file that its bytes are not those that its checksum was made of. */
export function wrongChecksum(part: string, expected: number, found: number): string {
  const hex = (crc: number) => crc.toString(16).padStart(8, "0");
  return `${part} does not match its checksum: expected ${hex(expected)}, found ${hex(found)}`;
}
