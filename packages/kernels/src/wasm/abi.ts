/** The part of WebAssembly that is used here; the type libraries of Node have none. */
export interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object, imports: object) => { readonly exports: unknown };
  validate(bytes: Uint8Array): boolean;
}

/** Undefined where the runtime has no WebAssembly. */
export const webAssembly = (globalThis as { WebAssembly?: WebAssemblyApi }).WebAssembly;

/** A linear memory; its buffer is another one after it has grown. */
interface LinearMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** What assembly/index.ts exports: addresses and sizes in bytes, nothing is checked beyond what is said there. */
export interface KernelExports {
  readonly memory: LinearMemory;
  dataEnd(): number;
  snappyDecode(source: number, length: number, target: number, size: number): number;
  scanProtobufPush(bytes: number, length: number, control: number): number;
  scanJsonPush(bytes: number, length: number, control: number): number;
  packPush(source: number, control: number, columns: number, texts: number): number;
  detectLevels(
    bytes: number,
    size: number,
    lineStart: number,
    lineLength: number,
    rows: number,
    out: number,
    fields: number,
    depth: number,
  ): void;
  selectContains(
    bytes: number,
    low: number,
    size: number,
    offsets: number,
    rows: number,
    needle: number,
    length: number,
    folds: number,
    firstRare: number,
    secondRare: number,
    scratch: number,
    selection: number,
    count: number,
    ignoreCase: number,
    negate: number,
  ): number;
  selectContainsAny(
    bytes: number,
    low: number,
    size: number,
    offsets: number,
    texts: number,
    selection: number,
    count: number,
    negate: number,
  ): number;
  scanJsonFields(...input: [...FieldScanInput, enough: number, complete: number]): void;
  scanLogfmtFields(
    ...input: [
      ...FieldScanInput,
      enough: number,
      strict: number,
      keepEmpty: number,
      lastWins: number,
    ]
  ): void;
  scanJsonKeys(...input: [...FieldScanInput, enough: number]): void;
  scanPattern(...input: [...FieldScanInput, columns: number, columnCount: number]): void;
  collectNeedleKeys(
    bytes: number,
    offsets: number,
    rows: number,
    tables: number,
    scratch: number,
  ): number;
  solveNeedleFilter(
    keys: number,
    counts: number,
    blocks: number,
    slots: number,
    firstBlock: number,
    rows: number,
    words: number,
    bits: number,
    scratch: number,
  ): void;
  markNeedleKeys(
    bytes: number,
    offsets: number,
    rows: number,
    slots: number,
    hasExtra: number,
    threshold: number,
    scratch: number,
    bits: number,
  ): number;
  markValueKeys(
    first: number,
    count: number,
    slots: number,
    threshold: number,
    scratch: number,
    bits: number,
  ): number;
  groupNeedleBits(maps: number, blocks: number, slots: number, words: number, bits: number): void;
  hashRows(
    bytes: number,
    size: number,
    offsets: number,
    rows: number,
    high: number,
    low: number,
  ): void;
}

/** Addresses and sizes in the order of the compiled scans. */
export type FieldScanInput = readonly [
  bytes: number,
  low: number,
  size: number,
  offsets: number,
  selection: number,
  count: number,
  names: number,
  starts: number,
  lengths: number,
  kinds: number,
  isRead: number,
];
