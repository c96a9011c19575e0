/** What is used of a zlib stream's insides, which are no documented interface. */
export interface ZlibHandle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputAt: number,
    inputBytes: number,
    output: Uint8Array,
    outputAt: number,
    outputBytes: number,
  ): void;
  reset(): void;
  onerror: (...error: unknown[]) => void;
}

/** The handle of a stream of node:zlib, with what it writes to: bytes left of the output, then of the input. */
export function zlibHandle(
  stream: object,
): { readonly handle: ZlibHandle; readonly state: Uint32Array } | undefined {
  const { _handle: handle, _writeState: state } = stream as {
    readonly _handle?: ZlibHandle;
    readonly _writeState?: Uint32Array;
  };
  if (typeof handle?.writeSync !== "function" || typeof handle.reset !== "function") return;
  if (!ArrayBuffer.isView(state) || state.length < 2) return;
  return { handle, state };
}
