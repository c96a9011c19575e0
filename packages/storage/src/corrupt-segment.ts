import { SkaldError } from "@skald/model";

interface CorruptSegment {
  readonly kind: "corrupt_segment";
  readonly name: string;
}

/** The error of a segment that is not what was written; it names the file or key, also to `corruptSegmentOf`. */
export function corruptSegment(name: string, cause: SkaldError): SkaldError {
  const detail: CorruptSegment = { kind: "corrupt_segment", name };
  if (cause.message.includes(name)) return new SkaldError("internal", cause.message, { detail });
  const text = `segment ${name} cannot be read: ${cause.message}`;
  return new SkaldError("internal", text, { cause, detail });
}

/** The file or key of the segment whose damage an error tells of; undefined for any other error. */
export function corruptSegmentOf(error: unknown): string | undefined {
  const detail = error instanceof SkaldError ? error.detail : undefined;
  const { kind, name } = (detail ?? {}) as Partial<CorruptSegment>;
  return kind === "corrupt_segment" ? name : undefined;
}
