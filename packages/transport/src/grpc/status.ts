/** Status codes of gRPC. */
export const grpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalid_argument: 3,
  deadline_exceeded: 4,
  not_found: 5,
  permission_denied: 7,
  resource_exhausted: 8,
  failed_precondition: 9,
  out_of_range: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

/** `grpc-message` is percent-encoded text: everything but printable ASCII, and the sign itself. */
export function encodeStatusText(text: string): string {
  return text.replace(/[^ -$&-~]+/gu, (letters) => {
    const bytes = Buffer.from(letters);
    return Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`).join(
      "",
    );
  });
}

/** The text again; what is no encoding stays as it is. */
export function decodeStatusText(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

const unitsMs = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 } as const;
/** A timeout has at most so many digits. */
const maxDigits = 8;

/** `grpc-timeout` of so many ms, rounded up. */
export function encodeTimeout(timeoutMs: number): string {
  const ms = Math.max(0, Math.ceil(timeoutMs));
  return ms < 10 ** maxDigits
    ? `${ms}m`
    : `${Math.min(Math.ceil(ms / 1000), 10 ** maxDigits - 1)}S`;
}

/** The ms of a `grpc-timeout`; undefined when there is none, or none that makes sense. */
export function decodeTimeout(text: string | undefined): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(text ?? "");
  if (match === null) return undefined;
  return Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
}
