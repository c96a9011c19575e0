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
