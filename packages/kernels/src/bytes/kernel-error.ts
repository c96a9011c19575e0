/** Why a kernel refused its input: the bytes are not what they claim, or they go beyond a limit. */
export type KernelErrorCode = "corrupt" | "too_large";

/** The one error that kernels throw on bad input; callers branch on the code and answer 400 or 413. */
export class KernelError extends Error {
  readonly code: KernelErrorCode;

  constructor(code: KernelErrorCode, message: string) {
    super(message);
    this.name = "KernelError";
    this.code = code;
  }
}

export function corrupt(message: string): KernelError {
  return new KernelError("corrupt", message);
}

export function tooLarge(message: string): KernelError {
  return new KernelError("too_large", message);
}

/** The error of a body above the size limit, in the words that clients of the push API know. */
export function bodyTooLarge(bytes: number, maxBytes: number): KernelError {
  return tooLarge(`request body too large: ${bytes} bytes decompressed, limit ${maxBytes} bytes`);
}
